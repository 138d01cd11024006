"""Plans: what the host of a lowered program becomes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from xdsl.context import Context

import tapestry
from tapestry.codegen.module_printer import print_module
from tapestry.codegen.planning import plan_of
from tapestry.codegen.plans import Filling, Launch, Plan
from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects.triton import Schedule
from tapestry.frontend import parse_text
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.tasks import give

T = "!loom.tensor<[0] : [1000], f32>"


def maps(lines: str, returned: str, args: str = "%x") -> str:
    """@main over vectors; `%y = %x` is an operation that doubles."""
    body = []
    for line in filter(None, map(str.strip, lines.splitlines())):
        made, _, taken = line.partition(" = ")
        body.append(
            f"{made} = loom.operation @double over <[0] : [1000]> [map] "
            f"ins({taken} : (d0) -> (d0)) outs((d0) -> (d0)) "
            f"wrap (%a: f32) {{ %s = arith.addf %a, %a : f32 loom.yield %s : f32 }} "
            f": ({T}) -> {T}"
        )
    given = ", ".join(f"{name}: {T}" for name in args.split())
    kinds = ", ".join([T] * len(returned.split()))
    result = f"({kinds})" if " " in returned else kinds
    return (
        f"func.func @main({given}) -> {result} {{ {' '.join(body)} "
        f"func.return {', '.join(returned.split())} : {kinds} }}"
    )


def plan(text: str) -> Plan:
    module = parse_text(text)
    LoomToTriton().apply(Context(), module)
    return plan_of(module, print_module(module).kernels).placed()


def test_a_chain_of_any_length_takes_two_places() -> None:
    names = ["%x", *(f"%h{n}" for n in range(6)), "%y"]
    chain = "\n".join(f"{b} = {a}" for a, b in pairwise(names))
    made = plan(maps(chain, "%y"))
    assert [one.kind for one in made.buffers] == ["input", *["temporary"] * 6, "output"]
    assert made.arena == 2 * 4096
    assert made.temporaries == 6 * 4000
    assert [step.programs for step in made.launches] == [1] * 7
    assert {step.kernel for step in made.launches} == {"double"}
    assert [step.buffers for step in made.launches] == [(n, n + 1) for n in range(7)]


def test_what_is_needed_later_keeps_its_place() -> None:
    made = plan(maps("%a = %x\n%b = %a\n%c = %b\n%y = %a\n%z = %c", "%y %z"))
    over, buffers = made.lives(), made.buffers
    for one in (1, 2, 3):
        for two in range(one + 1, 4):
            if over[one].meets(over[two]):
                assert buffers[one].offset != buffers[two].offset
    assert buffers[1].offset == 0


def test_results_may_be_inputs_and_each_other() -> None:
    made = plan(maps("%y = %x", "%x %y %y"))
    assert [one.buffer for one in made.returned] == [0, 1, 1]
    assert [one.kind for one in made.buffers] == ["input", "output"]
    assert made.arena == 0


def test_what_is_not_used_takes_no_room() -> None:
    made = plan(maps("%y = %x", "%y", "%x %unused"))
    assert [one.kind for one in made.buffers] == ["input", "input", "output"]


def test_states_are_filled_right_before_they_are_folded_into() -> None:
    x = tapestry.input("x", (9, 40))
    module = tapestry.shard(x.max(axis=1).exp(), grid=(3, 2)).lowered.clone()
    LoomToTriton().apply(Context(), module)
    made = plan_of(module, print_module(module).kernels).placed()
    fills = [n for n, step in enumerate(made.steps) if isinstance(step, Filling)]
    assert fills
    for place in fills:
        step, after = made.steps[place], made.steps[place + 1 :]
        assert isinstance(step, Filling)
        assert np.frombuffer(step.cell, np.float32)[0] == -np.inf
        following = next(one for one in after if isinstance(one, Launch))
        assert step.buffer in following.buffers
        assert made.lives()[step.buffer].first == place


def test_shards_are_launches_with_numbers() -> None:
    x = tapestry.input("x", (64,))
    module = tapestry.shard(x + x, shards=4).lowered.clone()
    LoomToTriton().apply(Context(), module)
    made = plan_of(module, print_module(module).kernels)
    assert [step.numbers for step in made.launches] == [(0, 16), (16, 32), (32, 48), (48, 64)]
    assert all("model" not in step.operation for step in made.launches)


@pytest.mark.parametrize(("most", "programs"), [(0, 256), (7, 7), (1000, 256)])
def test_a_persistent_kernel_runs_at_most_so_many_programs(most: int, programs: int) -> None:
    x = tapestry.input("x", (256, 256), "float16")
    module = tapestry.compile(x @ x).lowered.clone()
    (op,) = [op for op in module.walk() if op.name == "loom.operation"]
    give(op, Schedule.parse(f"M = 16, N = 16, K = 16, programs = {most}"))
    LoomToTriton().apply(Context(), module)
    (launch,) = plan_of(module, print_module(module).kernels).launches
    assert launch.programs == programs


def test_scratch_is_a_temporary_of_its_launch() -> None:
    made = plan(maps("%a = %x\n%y = %a", "%y"))
    with_scratch = made.placed({"double": 384})
    assert [step.scratch for step in with_scratch.launches] == [3, 4]
    assert [one.bytes for one in with_scratch.buffers[3:]] == [384, 384]
    assert with_scratch.arena == 4096 + 512


def test_more_programs_than_a_gpu_runs_are_refused() -> None:
    kind = f"!loom.tensor<[0] : [{1 << 43}], f32>"
    text = maps("%y = %x", "%y").replace(T, kind).replace("[1000]", f"[{1 << 43}]")
    with pytest.raises(InvalidProgramError, match="a GPU runs at most 2147483647"):
        plan(text)


@pytest.mark.parametrize(("shared", "fits"), [("", True), (", programs = 132", False)])
def test_shared_blocks_and_a_step_beyond_them_are_counted_in_32_bits(
    shared: str, fits: bool
) -> None:
    size = 16 * ((1 << 31) - 100)
    kind = f"!loom.tensor<[0] : [{size}], f32>"
    text = maps("%y = %x", "%y").replace(T, kind).replace("[1000]", f"[{size}]")
    module = parse_text(text)
    LoomToTriton(schedules=(f"double: P = 16{shared}",)).apply(Context(), module)
    if fits:
        (launch,) = plan_of(module, print_module(module).kernels).launches
        assert launch.programs == (1 << 31) - 100
    else:
        with pytest.raises(InvalidProgramError, match="a GPU runs at most 2147483647"):
            plan_of(module, print_module(module).kernels)
