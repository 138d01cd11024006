"""Repeated runs: found where they are, put back as they were, in linear time."""

from __future__ import annotations

from random import Random

import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from tapestry import repeats as module_of_repeats
from tapestry.frontend import parse_module, run_pipeline, verify_module
from tapestry.repeats import repeats, structure, wiring

X = "!loom.tensor<[0, 0] : [4, 4], f32>"


def program(layers: int, seed: int = 0, before: int = 0, after: int = 0) -> ModuleOp:
    """A few maps, layers that are drawn once, a few maps."""
    random = Random(seed)
    lines: list[str] = []
    newest = "%x"

    def add(text: str) -> str:
        nonlocal newest
        newest = f"%v{len(lines)}"
        lines.append(f"{newest} = weft.apply {text}")
        return newest

    for _ in range(before):
        add(f"@{random.choice(['tanh', 'neg'])}({newest}) : ({X}) -> {X}")
    state = random.getstate()
    for layer in range(layers):
        random.setstate(state)
        made = [newest]
        for _ in range(random.randint(1, 4)):
            a, b = random.choice(made), random.choice([*made, f"%w{layer}", "%shared"])
            made.append(
                add(f"@{random.choice(['matmul', 'add', 'sub'])}({a}, {b}) : ({X}, {X}) -> {X}")
            )
        add(f"@relu({newest}) : ({X}) -> {X}")
    for _ in range(after):
        add(f"@{random.choice(['tanh', 'neg'])}({newest}) : ({X}) -> {X}")
    arguments = ", ".join(
        f"%{name}: {X}" for name in ("x", "shared", *(f"w{n}" for n in range(layers)))
    )
    body = "\n  ".join(lines)
    text = f"func.func @main({arguments}) -> {X} {{\n  {body}\n  func.return {newest} : {X}\n}}"
    return parse_module(text)


def block_of(module: ModuleOp) -> Block:
    function = module.body.block.first_op
    assert isinstance(function, func.FuncOp)
    return function.body.block


@pytest.mark.parametrize("seed", range(12))
def test_layers_are_found(seed: int) -> None:
    module = program(5, seed, before=seed % 3, after=seed % 2)
    (run, *_) = repeats(block_of(module))
    # Where layers begin is a matter of what passes between them; at most one is spent on it.
    assert len(run) >= 4
    assert len({wiring(segment) for segment in run}) == 1
    names = [[structure(op) for op in segment] for segment in run]
    assert names == [names[0]] * len(run)


@pytest.mark.parametrize("seed", range(12))
def test_inlining_undoes_outlining(seed: int) -> None:
    module = program(4, seed, before=2, after=1)
    naive = module.clone()
    run_pipeline(module, "loom-outline")
    assert any(isinstance(op, func.CallOp) for op in module.walk())
    run_pipeline(module, "loom-inline")
    verify_module(module)
    assert module.is_structurally_equivalent(naive)


def test_time_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = {"structure": 0, "wired": 0}
    plain, wired = module_of_repeats.structure, module_of_repeats.wiring

    def counted(name: str, amount: int) -> None:
        calls[name] += amount

    monkeypatch.setattr(
        module_of_repeats, "structure", lambda op: (counted("structure", 1), plain(op))[1]
    )
    monkeypatch.setattr(
        module_of_repeats, "wiring", lambda s: (counted("wired", len(s)), wired(s))[1]
    )
    per_operation: list[float] = []
    for layers in (20, 80):
        calls.update(structure=0, wired=0)
        block = block_of(program(layers))
        repeats(block)
        per_operation.append(sum(calls.values()) / len(block.ops))
    assert per_operation[1] <= 1.1 * per_operation[0]


def test_nothing_repeats() -> None:
    assert repeats(block_of(program(1))) == []
