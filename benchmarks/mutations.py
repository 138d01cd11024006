"""What share of wrong programs is seen: by the verifier, or by `tapestry equal`.

    python benchmarks/mutations.py                 # 300 mutations, a few minutes
    python benchmarks/mutations.py --count 30

A correct program (as it is, fused, sharded, or spelled out shard by shard) is changed in one place
that should change its meaning: operands swapped, a projection off by one, another monoid, a shard
dropped or overlapping, an unwrap left out, another constant, comparison, axis or operand. Either it
no longer verifies, or it is compared with the program it came from. What is accepted is run against
it at full size on the reference executor: mutants that give equal numbers are no mistakes, whatever
was meant (softmax is the same with any peak); the others are misses. Both are listed.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
from machine import machine
from rich.console import Console
from rich.table import Table
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, ModuleOp, SymbolRefAttr
from xdsl.ir import Block, Operation
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import DiagnosticException

from tapestry.dialects import loom
from tapestry.dialects.loom import projections_attr, tensor_type
from tapestry.dialects.zspace import PartitionAttr, RangeAttr
from tapestry.frontend import parse_module, run_pipeline, verify_module
from tapestry.proving.equality import Options, compare_programs
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.program import arguments
from tapestry.zspace import Partition, Projection, Range, ZSpaceError

RESULTS = Path(__file__).parent / "results" / "mutations.json"

PIPELINES = (
    "",
    "loom-simplify,loom-fuse",
    "loom-shard{shards=4}",
    "loom-simplify,loom-fuse,loom-shard{shards=4},loom-expand-shards",
)


def tensor(*shape: int) -> str:
    return f"!loom.tensor<{[0] * len(shape)} : {list(shape)}, f64>"


def program(
    inputs: dict[str, tuple[int, ...]], *lines: tuple[str, str, str, tuple[int, ...]]
) -> str:
    """A weft program: lines are (kernel, operands, parameters, shape), named v0, v1, ..."""
    shapes = dict(inputs)
    text: list[str] = []
    for number, (kernel, operands, parameters, shape) in enumerate(lines):
        names = operands.split()
        types = ", ".join(tensor(*shapes[name]) for name in names)
        values = ", ".join(f"%{name}" for name in names)
        applied = f"weft.apply @{kernel}({values}) {parameters}"
        text.append(f"%v{number} = {applied} : ({types}) -> {tensor(*shape)}")
        shapes[f"v{number}"] = shape
    taken = ", ".join(f"%{name}: {tensor(*shape)}" for name, shape in inputs.items())
    last, kind = f"%v{len(lines) - 1}", tensor(*lines[-1][3])
    body = "\n  ".join(text)
    return f"func.func @main({taken}) -> {kind} {{\n  {body}\n  func.return {last} : {kind}\n}}"


PROGRAMS = {
    "mlp": program(
        {"x": (24, 20), "w": (20, 40), "b": (40,), "u": (40, 20), "c": (20,)},
        ("linear", "x w b", "", (24, 40)),
        ("gelu", "v0", "", (24, 40)),
        ("linear", "v1 u c", "", (24, 20)),
        ("add", "x v2", "", (24, 20)),
    ),
    "softmax": program(
        {"x": (24, 36), "y": (36,)},
        ("mul", "x y", "", (24, 36)),
        ("softmax", "v0", "{axis = 1 : i64}", (24, 36)),
    ),
    "norm": program(
        {"x": (20, 32), "g": (32,), "b": (32,)},
        ("mean", "x", "{axis = 1 : i64, keepdim = true}", (20, 1)),
        ("sub", "x v0", "", (20, 32)),
        ("mul", "v1 v1", "", (20, 32)),
        ("mean", "v2", "{axis = 1 : i64, keepdim = true}", (20, 1)),
        ("sqrt", "v3", "", (20, 1)),
        ("div", "v1 v4", "", (20, 32)),
        ("mul", "v5 g", "", (20, 32)),
        ("add", "v6 b", "", (20, 32)),
    ),
    "attention": program(
        {"q": (24, 48), "k": (28, 48), "v": (28, 48)},
        ("reshape", "q", "{shape = [24, 4, 12]}", (24, 4, 12)),
        ("transpose", "v0", "{perm = [1, 0, 2]}", (4, 24, 12)),
        ("reshape", "k", "{shape = [28, 4, 12]}", (28, 4, 12)),
        ("transpose", "v2", "{perm = [1, 2, 0]}", (4, 12, 28)),
        ("matmul", "v1 v3", "", (4, 24, 28)),
        ("softmax", "v4", "{axis = 2 : i64}", (4, 24, 28)),
        ("reshape", "v", "{shape = [28, 4, 12]}", (28, 4, 12)),
        ("transpose", "v6", "{perm = [1, 0, 2]}", (4, 28, 12)),
        ("matmul", "v5 v7", "", (4, 24, 12)),
        ("transpose", "v8", "{perm = [1, 0, 2]}", (24, 4, 12)),
        ("reshape", "v9", "{shape = [24, 48]}", (24, 48)),
    ),
    "relu max": program(
        {"x": (30, 26), "y": (30, 26)},
        ("sub", "x y", "", (30, 26)),
        ("relu", "v0", "", (30, 26)),
        ("max", "v1", "{axis = 0 : i64, keepdim = false}", (26,)),
        ("sub", "y v2", "", (30, 26)),
        ("sum", "v3", "{axis = 1 : i64, keepdim = false}", (30,)),
    ),
}


Mutation = Callable[[ModuleOp, random.Random], str | None]


def operations(module: ModuleOp) -> list[loom.OperationOp | loom.KernelOp]:
    return [op for op in module.walk() if isinstance(op, loom.OperationOp | loom.KernelOp)]


def bodies(module: ModuleOp) -> Iterator[Block]:
    for op in operations(module):
        for region in op.regions:
            yield from region.blocks


def scalars(module: ModuleOp, *kinds: type[Operation]) -> list[Operation]:
    return [op for block in bodies(module) for op in block.ops if isinstance(op, kinds)]


def swap_operands(module: ModuleOp, rng: random.Random) -> str | None:
    found = [
        op for op in scalars(module, arith.SubfOp, arith.DivfOp) if op.operands[0] != op.operands[1]
    ]
    if not found:
        return None
    op = rng.choice(found)
    op.operands[0], op.operands[1] = op.operands[1], op.operands[0]
    return f"operands of {op.name} swapped"


def other_operation(module: ModuleOp, rng: random.Random) -> str | None:
    others: dict[type[Operation], type[Operation]] = {
        arith.AddfOp: arith.SubfOp,
        arith.SubfOp: arith.AddfOp,
        arith.MulfOp: arith.AddfOp,
        arith.DivfOp: arith.MulfOp,
        arith.MaximumfOp: arith.MinimumfOp,
    }
    found = scalars(module, *others)
    if not found:
        return None
    op = rng.choice(found)
    new = others[type(op)](*op.operands)
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    op.results[0].replace_all_uses_with(new.results[0])
    op.detach()
    op.erase()
    return f"{new.name} for {op.name}"


def dropped_operation(module: ModuleOp, rng: random.Random) -> str | None:
    found = scalars(module, math.ExpOp, math.SqrtOp, math.ErfOp, arith.NegfOp)
    if not found:
        return None
    op = rng.choice(found)
    op.results[0].replace_all_uses_with(op.operands[0])
    return f"{op.name} left out"


def other_constant(module: ModuleOp, rng: random.Random) -> str | None:
    found = [
        op
        for op in scalars(module, arith.ConstantOp)
        if isinstance(op.properties["value"], FloatAttr)
    ]
    if not found:
        return None
    op = rng.choice(found)
    value = op.properties["value"]
    assert isinstance(value, FloatAttr)
    new = value.value.data * rng.choice([1.001, 0.5, 2.0]) + rng.choice([0.001, 1.0])
    op.properties["value"] = FloatAttr(new, value.type)
    return f"constant {value.value.data} is {new}"


def other_monoid(module: ModuleOp, rng: random.Random) -> str | None:
    found = [op for op in operations(module) if op.monoid_name in ("add", "max", "min", "mul")]
    if not found:
        return None
    op = rng.choice(found)
    name = rng.choice([n for n in ("add", "max", "min", "mul") if n != op.monoid_name])
    old = op.monoid_name
    op.monoid = SymbolRefAttr(name)
    return f"folded by @{name}, not @{old}"


def missing_unwrap(module: ModuleOp, rng: random.Random) -> str | None:
    found = [op for op in operations(module) if op.unwrap_block is not None]
    if not found:
        return None
    op = rng.choice(found)
    block = op.unwrap_block
    assert block is not None
    end = block.last_op
    assert end is not None
    end.operands[0] = block.args[0]
    return "unwrap left out"


def off_by_one(module: ModuleOp, rng: random.Random) -> str | None:
    found = [op for op in operations(module) if op.in_maps]
    op = rng.choice(found)
    maps = list(op.in_maps)
    place = rng.randrange(len(maps))
    if not maps[place].outputs:
        return None
    row, step = rng.randrange(maps[place].outputs), rng.choice([-1, 1])
    offset = [step if n == row else 0 for n in range(maps[place].outputs)]
    maps[place] = Projection(maps[place].map.translate(offset), maps[place].shape)
    op.in_projections = projections_attr(maps)
    return f"input {place} of @{_label(op)} off by {step} in row {row}"


def wrong_axis(module: ModuleOp, rng: random.Random) -> str | None:
    found = [op for op in operations(module) if any(p.outputs > 1 for p in op.in_maps)]
    if not found:
        return None
    op = rng.choice(found)
    maps = list(op.in_maps)
    place = rng.choice([n for n, p in enumerate(maps) if p.outputs > 1])
    order = list(range(maps[place].outputs))
    one, other = rng.sample(order, 2)
    order[one], order[other] = order[other], order[one]
    maps[place] = Projection.cells(maps[place].map.permute_output(order))
    op.in_projections = projections_attr(maps)
    return f"rows {one} and {other} of input {place} of @{_label(op)} swapped"


def wrong_stride(module: ModuleOp, rng: random.Random) -> str | None:
    found = [
        (op, place, row, dim)
        for op in operations(module)
        for place, p in enumerate(op.in_maps)
        for row, terms in enumerate(p.map.terms)
        for _, dim in terms
    ]
    if not found:
        return None
    op, place, row, dim = rng.choice(found)
    maps = list(op.in_maps)
    matrix = [list(r) for r in maps[place].map.matrix]
    matrix[row][dim] = 0 if rng.random() < 0.5 else matrix[row][dim] - 1
    maps[place] = Projection.of(matrix, maps[place].map.offset, inputs=maps[place].inputs)
    op.in_projections = projections_attr(maps)
    return f"input {place} of @{_label(op)} moves otherwise with dimension {dim}"


def other_operand(module: ModuleOp, rng: random.Random) -> str | None:
    found = [
        (op, n)
        for op in module.walk()
        if isinstance(op, loom.OperationOp | loom.ApplicationOp | loom.MergeOp)
        for n in range(len(op.operands))
    ]
    rng.shuffle(found)
    for op, place in found:
        block = op.parent
        assert block is not None
        have = [*block.args, *(r for o in block.ops if o.is_before_in_block(op) for r in o.results)]
        like = [v for v in have if v.type == op.operands[place].type and v != op.operands[place]]
        if like:
            op.operands[place] = rng.choice(like)
            return f"operand {place} of {op.name} is another value"
    return None


def dropped_shard(module: ModuleOp, rng: random.Random) -> str | None:
    return _reshard(module, rng, lambda boxes, n: boxes[:n] + boxes[n + 1 :], "dropped")


def overlapping_shard(module: ModuleOp, rng: random.Random) -> str | None:
    def grow(boxes: list[Range], n: int) -> list[Range]:
        box = boxes[n]
        dim = rng.randrange(box.rank)
        end = tuple(e + (d == dim) for d, e in enumerate(box.end))
        return [*boxes[:n], Range(box.start, end), *boxes[n + 1 :]]

    return _reshard(module, rng, grow, "overlaps")


def _reshard(
    module: ModuleOp,
    rng: random.Random,
    change: Callable[[list[Range], int], list[Range]],
    verb: str,
) -> str | None:
    """Change a partition, or what an assembly or a merge is made of."""
    sharded = [op for op in module.walk() if isinstance(op, loom.OperationOp) and op.partition]
    if sharded:
        op = rng.choice(sharded)
        assert op.partition is not None
        boxes = list(op.partition.ranges())
        place = rng.randrange(len(boxes))
        op.shards = PartitionAttr(Partition.explicit(change(boxes, place)))
        return f"shard {place} of @{op.label.data} {verb}"
    assemblies = [op for op in module.walk() if isinstance(op, loom.AssembleOp)]
    if verb == "dropped" and assemblies:
        op = rng.choice(assemblies)
        place = rng.randrange(len(op.parts))
        op.operands = [part for n, part in enumerate(op.parts) if n != place]
        return f"part {place} of an assembly dropped"
    applied = [op for op in module.walk() if isinstance(op, loom.ApplicationOp)]
    merges = [op for op in module.walk() if isinstance(op, loom.MergeOp)]
    if verb == "dropped" and merges and rng.random() < 0.5:
        merge = rng.choice(merges)
        states = list(merge.states)
        place = rng.randrange(len(states))
        extras = list(merge.extras)
        left = states[:place] + states[place + 1 :]
        kinds = [tensor_type(result) for result in merge.outs]
        new = loom.MergeOp(merge.kernel_name, merge.index, left, extras, kinds)
        Rewriter.replace_op(merge, new)
        return f"state {place} of a merge dropped"
    if not applied or verb == "dropped":
        return None
    op = rng.choice(applied)
    (box,) = change([op.index], 0)
    op.properties["index_range"] = RangeAttr(box)
    return f"the range of an application of @{op.kernel_name}: a shard {verb}"


def _label(op: loom.OperationOp | loom.KernelOp) -> str:
    return op.label.data if isinstance(op, loom.OperationOp) else op.sym_name.data


MUTATIONS: tuple[Mutation, ...] = (
    swap_operands,
    other_operation,
    dropped_operation,
    other_constant,
    other_monoid,
    missing_unwrap,
    off_by_one,
    wrong_axis,
    wrong_stride,
    other_operand,
    dropped_shard,
    overlapping_shard,
)


@dataclass(frozen=True)
class Outcome:
    """One mutation: what it was, and what saw it."""

    program: str
    pipeline: str
    mutation: str
    what: str
    seen_by: str
    reason: str
    seconds: float


def mutate(number: int) -> tuple[str, str, str, str, ModuleOp, ModuleOp]:
    """Mutation `number`: always the same for one number."""
    rng = random.Random(number)
    while True:
        name, pipeline = rng.choice(list(PROGRAMS)), rng.choice(PIPELINES)
        mutation = MUTATIONS[number % len(MUTATIONS)]
        right = parse_module(PROGRAMS[name])
        run_pipeline(right, "weft-apply")
        wrong = right.clone()
        if pipeline:
            run_pipeline(wrong, pipeline)
        try:
            what = mutation(wrong, rng)
        except ZSpaceError as error:
            # The mutant cannot even be written down.
            what = f"refused when built: {error}"
        if what is not None:
            return name, pipeline, mutation.__name__, what, right, wrong


def judge(number: int) -> Outcome:
    """Make a mutation and see whether it is seen."""
    name, pipeline, mutation, what, right, wrong = mutate(number)
    start = perf_counter()

    def outcome(seen_by: str, reason: str = "") -> Outcome:
        seconds = perf_counter() - start
        return Outcome(name, pipeline, mutation, what, seen_by, reason, seconds)

    if what.startswith("refused"):
        return outcome("verify")
    try:
        verify_module(wrong)
    except DiagnosticException:
        return outcome("verify")
    verdict = compare_programs(right, wrong, Options(seeds=1, shrinking=0))
    if verdict.answer == "differs":
        return outcome("equal")
    if verdict.answer == "undecided":
        return outcome("undecided", verdict.reason)
    why = f"equal ({verdict.answer})"
    for scale, where in ((2.0, "on all inputs"), (0.2, "on small inputs; on others unstable")):
        if _same_numbers(right, wrong, scale):
            return outcome("no mistake", f"{why}; at full size equal numbers {where}")
    return outcome("MISSED", f"{why}; at full size other numbers")


def _same_numbers(a: ModuleOp, b: ModuleOp, scale: float, inputs: int = 5) -> bool:
    """Whether the reference executor gives equal numbers at full size, up to rounding."""
    for seed in range(inputs):
        generator = np.random.default_rng(seed)
        given = {x.name: generator.normal(size=x.type.box.shape) * scale for x in arguments(a)}
        one, other = (find_executor("reference").run(m, given, NoWatch()).outputs for m in (a, b))
        for x, y in zip(one, other, strict=True):
            if not np.allclose(x, y, rtol=1e-9, atol=1e-11):
                return False
    return True


def show(outcomes: list[Outcome], console: Console) -> None:
    """Print how many mutations of each kind were seen, and by what."""
    table = Table(title="mutations, by what saw them", title_justify="left")
    columns = ("verify", "equal", "undecided", "no mistake", "MISSED")
    for column in ("mutation", *columns):
        table.add_column(column, justify="left" if column == "mutation" else "right")
    for kind in dict.fromkeys(o.mutation for o in outcomes):
        count = Counter(o.seen_by for o in outcomes if o.mutation == kind)
        table.add_row(kind.replace("_", " "), *(str(count[c] or "") for c in columns))
    count = Counter(o.seen_by for o in outcomes)
    table.add_section()
    table.add_row("all", *(str(count[c]) for c in columns))
    console.print(table)
    for o in outcomes:
        if o.seen_by not in ("verify", "equal"):
            where = f"{o.program}, {o.pipeline or 'as it is'}"
            console.print(f"{o.seen_by}: {where}: {o.what}: {o.reason}")
    mistakes = len(outcomes) - count["no mistake"]
    console.print(f"seen: {count['verify'] + count['equal']} of {mistakes} mistakes")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what share of wrong programs is seen.")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--output", type=Path, default=RESULTS, help="the JSON file to write")
    options = parser.parse_args()
    console = Console(width=120)
    outcomes: list[Outcome] = []
    for number in range(options.count):
        outcomes.append(judge(number))
        console.print(f"{number}: {outcomes[-1].mutation}: {outcomes[-1].seen_by}")
    show(outcomes, console)
    count = Counter(o.seen_by for o in outcomes)
    mistakes = len(outcomes) - count["no mistake"]
    result = {
        "machine": machine(),
        "mutations": len(outcomes),
        "seen": dict(count),
        "share_of_mistakes_seen": (count["verify"] + count["equal"]) / mistakes,
        "not_rejected": [vars(o) for o in outcomes if o.seen_by not in ("verify", "equal")],
        "seconds": sum(o.seconds for o in outcomes),
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
