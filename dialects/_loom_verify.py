"""What is always true of a loom program: ranges, projections, shards, bodies, states.

Each `verify_...` collects every independent violation of one operation and raises them together:

    loom.operation @y: input 0 reads [0, 0] : [65, 784], outside its tensor [0, 0] : [64, 784]

Facts about ranges and projections are exact at full size and cost no more than the rank: nothing
enumerates cells. They depend on attributes alone, so they are remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.utils.exceptions import VerifyException

from tapestry.dialects._loom_types import IteratorsAttr, TensorType, tensor_type
from tapestry.dialects.zspace import PartitionAttr, ProjectionAttr, RangeAttr
from tapestry.zspace import Partition, Projection, Range, ZSpaceError, bounding

if TYPE_CHECKING:
    from tapestry.dialects import loom

_BODY_DIALECTS = ("arith", "math")


def _fail(subject: str, problems: Sequence[str]) -> None:
    if problems:
        raise VerifyException("; ".join(f"{subject}: {problem}" for problem in problems))


def _subrange(box: Range, dims: Sequence[int]) -> Range:
    return Range(tuple(box.start[d] for d in dims), tuple(box.end[d] for d in dims))


def _accesses(
    what: str, projections: Sequence[ProjectionAttr], tensors: Sequence[TensorType], box: Range
) -> list[str]:
    """Rank and bounds of what each projection selects of its tensor over `box`."""
    problems: list[str] = []
    if len(projections) != len(tensors):
        return [f"{len(tensors)} {what} tensors, but {len(projections)} projections"]
    for position, (attribute, tensor) in enumerate(zip(projections, tensors, strict=True)):
        projection = attribute.data
        name = f"{what} {position}"
        if projection.inputs != box.rank:
            problems.append(
                f"{name} is projected from {projection.inputs} dimensions, "
                f"but there are {box.rank} here"
            )
        elif projection.outputs != tensor.box.rank:
            problems.append(
                f"{name} has rank {tensor.box.rank}, but its projection makes rank "
                f"{projection.outputs}"
            )
        elif not projection.is_unit:
            problems.append(
                f"{name} reads boxes of shape {list(projection.shape)}; block inputs are not "
                "supported yet, only single cells"
            )
        elif not box.is_empty:
            selected = projection.apply_range(box)
            if not tensor.box.contains_range(selected):
                verb = "writes" if what == "output" else "reads"
                problems.append(f"{name} {verb} <{selected}>, outside its tensor <{tensor.box}>")
    return problems


def _tilings(
    projections: Sequence[ProjectionAttr], tensors: Sequence[TensorType], map_range: Range
) -> list[str]:
    """Every output is written exactly once per cell."""
    problems: list[str] = []
    for position, (attribute, tensor) in enumerate(zip(projections, tensors, strict=True)):
        projection = attribute.data
        if map_range.size != tensor.box.size:
            problems.append(
                f"output {position} has {tensor.box.size} cells, but {map_range.size} are written"
            )
        elif not projection.map.is_injective_on(map_range):
            problems.append(f"output {position} has cells that are written more than once")
    return problems


def _sharding(
    partition: Partition,
    box: Range,
    map_dims: Sequence[int],
    outs: Sequence[ProjectionAttr],
    *,
    ordered: bool,
) -> list[str]:
    """The shards tile the index space, and those that differ in a map dimension write apart.

    With `ordered` (the monoid is not commutative) the shards of a fold must also follow one another
    in row-major order, because that is the order their states merge in.
    """
    try:
        partition.check(box)
    except ZSpaceError as error:
        return [f"the shards do not tile the index space <{box}>: {error}"]
    if ordered and not _fold_in_order(partition, box, map_dims):
        return [
            "the shards of the fold are not in row-major order, and its monoid does not commute"
        ]
    mixed = [(n, p.data) for n, p in enumerate(outs) if _mixes_rows(p.data)]
    if not mixed:
        # Boxes of the map dimensions write boxes, apart because the output is injective.
        return []
    parts = list(dict.fromkeys(_subrange(r, map_dims) for r in partition.ranges()))
    problems: list[str] = []
    for position, projection in mixed:
        boxes = [projection.apply_range(part) for part in parts]
        try:
            Partition.explicit(boxes).check(projection.apply_range(_subrange(box, map_dims)))
        except ZSpaceError as error:
            problems.append(f"the shards do not write output {position} as boxes: {error}")
    return problems


def _fold_in_order(partition: Partition, box: Range, map_dims: Sequence[int]) -> bool:
    """Whether the shards of each box of the map dimensions read its fold from start to end."""
    fold_dims = [d for d in range(box.rank) if d not in map_dims]
    whole = _subrange(box, fold_dims)
    reached: dict[Range, int] = {}
    for shard in partition.ranges():
        part, map_box = _subrange(shard, fold_dims), _subrange(shard, map_dims)
        # A run of the row-major order: single coordinates, one cut, then whole dimensions.
        cut = [d for d in range(whole.rank) if part.shape[d] != whole.shape[d]]
        if cut and any(part.shape[d] != 1 for d in range(cut[-1])):
            return False
        position = 0
        for d in range(whole.rank):
            position = position * whole.shape[d] + part.start[d] - whole.start[d]
        if position != reached.get(map_box, 0):
            return False
        reached[map_box] = position + part.size
    return all(end == whole.size for end in reached.values())


def _is_ordered(op: loom.OperationOp) -> bool:
    """Whether an operation folds by a monoid that does not commute."""
    from tapestry.algebra.monoids import find_monoid

    name, wrap = op.monoid_name, op.wrap.first_block
    if name is None or wrap is None:
        return False
    monoid = find_monoid(op, name, tuple(_yielded(wrap)))
    return monoid is not None and not monoid.commutative


def sharding_problems(
    op: loom.OperationOp, partition: Partition, outs: Sequence[Projection] | None = None
) -> list[str]:
    """Why a verified operation cannot be split as `partition` says; none when it can.

    With `outs`, as if it wrote through those projections from its map dimensions.
    """
    written = op.out_projections.data if outs is None else [ProjectionAttr(p) for p in outs]
    if partition.rank != op.index.rank:
        return [
            f"the partition has rank {partition.rank}, but the index space has rank "
            + str(op.index.rank)
        ]
    return _sharding(partition, op.index, op.map_dims, written, ordered=_is_ordered(op))


def _mixes_rows(projection: Projection) -> bool:
    """Whether boxes of the index space need not write boxes: some row is not one dimension."""
    rows = projection.map.matrix
    return any(sum(1 for c in row if c) > 1 or any(abs(c) > 1 for c in row) for row in rows)


@lru_cache(maxsize=65536)
def _geometry(
    index: RangeAttr,
    iterators: IteratorsAttr,
    ins: ArrayAttr[ProjectionAttr],
    in_tensors: tuple[TensorType, ...],
    extras: ArrayAttr[ProjectionAttr],
    extra_tensors: tuple[TensorType, ...],
    outs: ArrayAttr[ProjectionAttr],
    out_tensors: tuple[TensorType, ...],
    shards: PartitionAttr | None,
    ordered: bool,
) -> tuple[str, ...]:
    """The violations of an operation's ranges and projections, none when it is right."""
    box, kinds = index.data, iterators.data
    if len(kinds) != box.rank:
        return (f"{len(kinds)} iterators for an index space of rank {box.rank}",)
    map_dims = [d for d, kind in enumerate(kinds) if kind == "map"]
    map_range = _subrange(box, map_dims)
    problems = _accesses("input", ins.data, in_tensors, box)
    problems += _accesses("extra input", extras.data, extra_tensors, map_range)
    written = _accesses("output", outs.data, out_tensors, map_range)
    if not written:
        written = _tilings(outs.data, out_tensors, map_range)
    problems += written
    if shards is not None and not problems:
        problems += _sharding(shards.data, box, map_dims, outs.data, ordered=ordered)
    return tuple(problems)


def _types(values: Iterable[Attribute]) -> str:
    return "(" + ", ".join(map(str, values)) + ")"


def _body(
    name: str, block: Block, arguments: Sequence[Attribute], dims: Sequence[int]
) -> list[str]:
    """Argument types, allowed operations and coordinates of a body."""
    problems: list[str] = []
    have = [argument.type for argument in block.args]
    if have != list(arguments):
        problems.append(f"{name} takes {_types(have)}, but its cells are {_types(arguments)}")
    last = block.last_op
    if last is None or last.name != "loom.yield":
        problems.append(f"{name} does not end with loom.yield")
    defined: set[SSAValue] = set(block.args)
    for op in block.ops:
        dialect = op.name.partition(".")[0]
        if op.name == "loom.index":
            dim = op.properties["dim"]
            if isinstance(dim, IntegerAttr) and dim.value.data not in dims:
                problems.append(
                    f"{name} asks for the coordinate of dimension {dim.value.data}; it has "
                    f"{list(dims)}"
                )
        elif dialect not in _BODY_DIALECTS and op is not last:
            problems.append(f"{name} holds {op.name}; only scalar arith and math operations may")
        problems += [
            f"{name} uses a value from outside itself, or before it is defined"
            for operand in op.operands
            if operand not in defined
        ]
        defined.update(op.results)
    return problems


def _yielded(block: Block) -> list[Attribute]:
    last = block.last_op
    return [] if last is None else [value.type for value in last.operands]


def _signature_bodies(
    op: loom.BlockSignature,
    ins: Sequence[Attribute] | None,
    extras: Sequence[Attribute] | None,
    outs: Sequence[Attribute] | None,
) -> list[str]:
    """Types through wrap, monoid and unwrap; None for types that only operands would tell."""
    from tapestry.algebra.monoids import BUILTIN_MONOIDS, find_monoid

    wrap, unwrap = op.wrap.first_block, op.unwrap.first_block
    if wrap is None:
        return ["the wrap body is missing"]
    if ins is None:
        ins = [argument.type for argument in wrap.args]
    problems = _body("wrap", wrap, ins, range(len(op.kinds)))
    state = _yielded(wrap)
    result, last = state, "wrap"
    name = op.monoid_name
    if name is None:
        if op.fold_dims:
            problems.append("it folds, but names no monoid; add `by @add`, for example")
        if unwrap is not None:
            problems.append("it has an unwrap body, but folds nothing")
        if extras:
            problems.append("it has extra inputs, but folds nothing; make them inputs")
    else:
        if not op.fold_dims:
            problems.append(f"it names the monoid @{name}, but no dimension is folded")
        if find_monoid(op, name, tuple(state)) is None:
            problems.append(
                f"no monoid @{name} folds states of type {_types(state)}; built in are "
                + ", ".join(BUILTIN_MONOIDS)
            )
        if unwrap is not None:
            if extras is None:
                extras = [argument.type for argument in unwrap.args[len(state) :]]
            problems += _body("unwrap", unwrap, [*state, *extras], op.map_dims)
            result, last = _yielded(unwrap), "unwrap"
        elif extras:
            problems.append("it has extra inputs, but no unwrap body that reads them")
    if outs is not None and result != list(outs):
        problems.append(f"{last} yields {_types(result)}, but the outputs hold {_types(outs)}")
    return problems


def verify_operation(op: loom.OperationOp) -> None:
    """Every rule of one `loom.operation`."""
    ins = tuple(tensor_type(value) for value in op.ins)
    extras = tuple(tensor_type(value) for value in op.extras)
    outs = tuple(tensor_type(value) for value in op.outs)
    problems = list(
        _geometry(
            op.index_range,
            op.iterators,
            op.in_projections,
            ins,
            op.extra_projections,
            extras,
            op.out_projections,
            outs,
            op.shards,
            op.shards is not None and _is_ordered(op),
        )
    )
    problems += _signature_bodies(
        op,
        [t.element_type for t in ins],
        [t.element_type for t in extras],
        [t.element_type for t in outs],
    )
    _fail(f"@{op.label.data}", problems)


def verify_kernel(op: loom.KernelOp) -> None:
    """A kernel's bodies and ranks; its ranges are checked at each application."""
    problems: list[str] = []
    for what, projections, inputs in (
        ("input", op.in_maps, len(op.kinds)),
        ("extra input", op.extra_maps, len(op.map_dims)),
        ("output", op.out_maps, len(op.map_dims)),
    ):
        problems += [
            f"{what} {position} is projected from {projection.inputs} dimensions, but there are "
            f"{inputs} here"
            for position, projection in enumerate(projections)
            if projection.inputs != inputs
        ]
    problems += _signature_bodies(op, None, None, None)
    wrap, unwrap = op.wrap.first_block, op.unwrap.first_block
    if wrap is not None and len(wrap.args) != len(op.in_maps):
        problems.append(
            f"wrap takes {len(wrap.args)} cells, but there are {len(op.in_maps)} inputs"
        )
    extra_cells = 0 if unwrap is None else len(unwrap.args) - len(op.state_types)
    if op.monoid_name is not None and extra_cells != len(op.extra_maps):
        problems.append(
            f"unwrap takes {extra_cells} extra cells of {len(op.extra_maps)} extra inputs"
        )
    _fail(f"@{op.sym_name.data}", problems)


def verify_view(op: loom.ViewOp) -> None:
    """A view reads inside its source and keeps its element type."""
    source, result = tensor_type(op.source), tensor_type(op.result)
    problems = _accesses("source", [op.projection], [source], result.box)
    problems += _same_element(source, result)
    _fail("the view", problems)


def _same_element(source: TensorType, result: TensorType) -> list[str]:
    if source.element_type == result.element_type:
        return []
    return [f"it makes {result.element_type} cells of {source.element_type} cells"]


def verify_reshape(op: loom.ReshapeOp) -> None:
    """A reshape keeps the number of cells and their type."""
    source, result = tensor_type(op.source), tensor_type(op.result)
    problems = _same_element(source, result)
    if source.box.size != result.box.size:
        problems.append(f"it makes {result.box.size} cells of {source.box.size}")
    _fail("the reshape", problems)


def verify_assemble(op: loom.AssembleOp) -> None:
    """The parts tile the result exactly."""
    result = tensor_type(op.result)
    problems: list[str] = []
    for part in op.parts:
        problems += _same_element(tensor_type(part), result)
    try:
        Partition.explicit([tensor_type(part).box for part in op.parts]).check(result.box)
    except ZSpaceError as error:
        problems.append(f"its parts do not tile <{result.box}>: {error}")
    _fail("the assembly", problems)


def verify_monoid(op: loom.MonoidOp) -> None:
    """The merge takes two states and yields one, of the zero's types."""
    from tapestry.algebra.monoids import BUILTIN_MONOIDS

    problems: list[str] = []
    if op.sym_name.data in BUILTIN_MONOIDS:
        problems.append("this name is a built-in monoid; choose another")
    state: list[Attribute] = []
    for value in op.zero:
        kind = getattr(value, "type", None)
        if isinstance(value, IntegerAttr | FloatAttr) and isinstance(kind, Attribute):
            state.append(kind)
        else:
            problems.append(f"the zero {value} is not a number with a type")
    block = op.merge.block
    problems += _body("merge", block, [*state, *state], ())
    if _yielded(block) != state:
        problems.append(f"merge yields {_types(_yielded(block))}, but the state is {_types(state)}")
    _fail(f"@{op.sym_name.data}", problems)


def _kernel_of(op: loom.Dispatch) -> loom.KernelOp:
    from tapestry.dialects import loom

    found = loom.find_kernel(op, op.kernel_name)
    if found is None:
        raise VerifyException(f"there is no loom.kernel @{op.kernel_name}")
    return found


def _positioned(
    what: str, tensors: Sequence[TensorType], ranges: Sequence[Range], elements: Sequence[Attribute]
) -> list[str]:
    """Tensors sit exactly on the ranges they must and hold the right elements."""
    if len(tensors) != len(ranges):
        return [f"there are {len(tensors)} {what}s where the kernel has {len(ranges)}"]
    problems: list[str] = []
    rows = zip(tensors, ranges, elements, strict=True)
    for position, (tensor, box, element) in enumerate(rows):
        if tensor.box != box or tensor.element_type != element:
            problems.append(f"{what} {position} is {tensor}, but must be <{box}> of {element}")
    return problems


def verify_application(op: loom.ApplicationOp) -> None:
    """Recorded selections and results are what the kernel's projections make of the range."""
    kernel = _kernel_of(op)
    if op.index.rank != len(kernel.kinds):
        _fail(f"@{op.kernel_name}", [f"<{op.index}> has the wrong rank for the kernel"])
    map_range = kernel.map_range(op.index)
    reads = [p.apply_range(op.index) for p in kernel.in_maps]
    writes = [p.apply_range(map_range) for p in kernel.out_maps]
    end = kernel.unwrap_block or kernel.wrap_block
    elements = _yielded(end)
    if op.is_partial:
        writes = [map_range] * len(kernel.state_types)
        elements = list(kernel.state_types)
    else:
        reads += [p.apply_range(map_range) for p in kernel.extra_maps]
    problems: list[str] = []
    if len(reads) != len(op.args):
        problems.append(f"it has {len(op.args)} operands where the kernel reads {len(reads)}")
    for position, (value, recorded) in enumerate(zip(op.args, op.selections, strict=False)):
        if position < len(reads) and recorded.data != reads[position]:
            problems.append(
                f"operand {position} records <{recorded.data}>, but its projection selects "
                f"<{reads[position]}>"
            )
        if not tensor_type(value).box.contains_range(recorded.data):
            problems.append(f"operand {position} selects <{recorded.data}>, outside its tensor")
    outs = [tensor_type(value) for value in op.outs]
    written = _positioned("result", outs, writes, elements)
    if not written and not op.is_partial:
        written = _tilings(kernel.out_projections.data, outs, map_range)
    _fail(f"@{op.kernel_name}", [*problems, *written])


def verify_merge(op: loom.MergeOp) -> None:
    """States lie inside the merged range, of shards that tile; results sit where they must."""
    kernel = _kernel_of(op)
    if op.index.rank != len(kernel.map_dims):
        _fail(f"@{op.kernel_name}", [f"<{op.index}> has the wrong rank for the kernel's map"])
    parts = len(kernel.state_types)
    problems: list[str] = []
    if len(op.states) == 0 or len(op.states) % parts:
        problems.append(f"{len(op.states)} states do not make states of {parts} parts")
    for position, value in enumerate(op.states):
        state = tensor_type(value)
        if not op.index.contains_range(state.box):
            problems.append(f"state {position} is on <{state.box}>, outside <{op.index}>")
        if state.element_type != kernel.state_types[position % parts]:
            problems.append(f"state {position} holds {state.element_type}")
    writes = [p.apply_range(op.index) for p in kernel.out_maps]
    elements = _yielded(kernel.unwrap_block or kernel.wrap_block)
    outs = [tensor_type(value) for value in op.outs]
    written = _positioned("result", outs, writes, elements)
    problems += written or _tilings(kernel.out_projections.data, outs, op.index)
    problems += _shards_folded(op, kernel)
    problems += _accesses(
        "extra input",
        kernel.extra_projections.data,
        [tensor_type(v) for v in op.extras],
        op.index,
    )
    _fail(f"@{op.kernel_name}", problems)


def _shards_folded(op: loom.MergeOp, kernel: loom.KernelOp) -> list[str]:
    """The shards whose states meet leave no gap and do not overlap, where they can be seen."""
    from tapestry.dialects import loom

    shards: list[Range] = []
    for value in list(op.states)[:: len(kernel.state_types)]:
        shard = value.owner
        if not isinstance(shard, loom.ApplicationOp) or shard.kernel != op.kernel:
            return []
        shards.append(shard.index)
    folded = bounding([kernel.fold_range(shard) for shard in shards])
    start, end = [0] * len(kernel.kinds), [0] * len(kernel.kinds)
    for dims, part in ((kernel.map_dims, op.index), (kernel.fold_dims, folded)):
        for dim, low, high in zip(dims, part.start, part.end, strict=True):
            start[dim], end[dim] = low, high
    try:
        Partition.explicit(shards).check(Range(tuple(start), tuple(end)))
    except ZSpaceError as error:
        return [f"the merged shards do not tile: {error}"]
    return []
