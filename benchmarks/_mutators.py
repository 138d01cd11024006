"""Ways to change a program in one place, so that it should mean something else.

what = swap_operands(module, random.Random(0))      # what was changed; None where nothing could
"""

import random
from collections.abc import Callable, Iterator

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, FloatAttr, ModuleOp, SymbolRefAttr
from xdsl.ir import Block, Operation
from xdsl.rewriter import Rewriter
from xdsl.utils.hints import isa

from tapestry.dialects import loom
from tapestry.dialects.loom import projections_attr, tensor_type
from tapestry.dialects.zspace import PartitionAttr, RangeAttr
from tapestry.zspace import Partition, Projection, Range

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
    assert isa(value, FloatAttr[AnyFloat])
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
