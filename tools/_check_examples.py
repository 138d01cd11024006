"""What `tapestry metakernel check` does with an example: run it, split it, lower it.

    report = check_example(template, 0, library, Depth())
    report.partitions, report.kernels            # how often it was split, and the kernels' source

The reference must give what the example says; any partition, and Triton's kernels, must give what
the reference gives. What does not hold is an ExampleError at the example.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar, cast

from xdsl.dialects.builtin import ModuleOp

from tapestry.codegen.module_printer import print_module
from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom
from tapestry.dialects.zspace import PartitionAttr
from tapestry.frontend import run_pipeline, verify_module
from tapestry.metakernels import Library, Template
from tapestry.metakernels.errors import OperandError, WeftError, nearest
from tapestry.metakernels.expansion import Tensor
from tapestry.runtime.executor import Array, NoWatch
from tapestry.runtime.running import run
from tapestry.runtime.triton.devices import find_device
from tapestry.runtime.triton.executor import TritonExecutor
from tapestry.tools._applications import Application, array_of, example_application
from tapestry.tools._compare import Tolerance, compare
from tapestry.tools._report import agreement_line
from tapestry.zspace import Partition, Range

FUSE = "loom-simplify,loom-fuse"
LOWER = f"{FUSE},loom-to-triton"


class ExampleError(TapestryError):
    """An example of a template that does not hold."""

    kind: ClassVar[str] = "example"


@dataclass(frozen=True)
class Depth:
    """How much of an example is tried: random partitions, and up to how many points of kernels."""

    partitions: int = 4
    points: int = 1 << 16
    seed: int = 0


@dataclass(frozen=True)
class Report:
    """An example that holds.

    `partitions` counts the partitions under which something was split; `source` is the kernels'
    module, and `ran` says whether they ran too.
    """

    operations: int
    partitions: int
    shards: int
    kernels: int
    source: str
    ran: bool


def check_example(template: Template, position: int, library: Library, depth: Depth) -> Report:
    """Check one example of `template`; a located error says what does not hold."""
    what = f"template {template.name}: example {position + 1}"
    place = template.document.at("examples", position).location
    try:
        return _check(template, position, library, depth)
    except WeftError as error:
        where = f" (template at {error.location})" if error.location is not None else ""
        raise ExampleError(
            f"{what}: {error.message}{where}", location=place, hint=error.hint
        ) from None
    except TapestryError as error:
        raise ExampleError(f"{what}: {error.message}", location=place, hint=error.hint) from None


def _check(template: Template, position: int, library: Library, depth: Depth) -> Report:
    example = template.examples[position]
    application = example_application(template, example, library)
    module = application.module(library)
    whole = run(module, application.inputs, on="reference").outputs
    _compare_with_values(application, whole, example.outputs)
    named = {
        tensor.cell: array
        for tensor, array in zip(application.expansion.outputs, whole, strict=True)
    }
    random = Random(f"{depth.seed} {template.name} {position}")
    split = [
        shards
        for number in range(depth.partitions)
        if (shards := _check_split(application, module, named, random, fuse=number % 2 == 1))
    ]
    kernels = module.clone()
    run_pipeline(kernels, LOWER)
    printed = print_module(kernels)
    points = sum(op.index.size for op in _operations(module))
    ran = points <= depth.points
    if ran:
        fused = module.clone()
        run_pipeline(fused, FUSE)
        # Examples are small: the interpreter is as good as a GPU.
        executor = TritonExecutor(device=find_device(quiet=True))
        outputs = executor.run(fused, application.inputs, NoWatch()).outputs
        _compare(named, outputs, "its Triton kernels")
    return Report(
        len(_operations(module)),
        len(split),
        max(split, default=0),
        len(printed.kernels),
        printed.source,
        ran,
    )


def _operations(module: ModuleOp) -> list[loom.OperationOp | loom.FusedOp]:
    return [op for op in module.walk() if isinstance(op, loom.OperationOp | loom.FusedOp)]


def _compare_with_values(
    application: Application, outputs: tuple[Array, ...], values: Mapping[str, object]
) -> None:
    wanted: dict[str, Array] = {}
    known = [tensor.name for tensor in application.expansion.outputs]
    for name in values:
        if name not in known:
            raise OperandError(f"{name} is no output", hint=nearest(name, known))
    for tensor in application.expansion.outputs:
        array = array_of(_value_of(tensor, values), tensor.spec.dtype, tensor.title)
        if array.shape != tensor.spec.shape:
            raise ExampleError(
                f"{tensor.title} has shape {list(tensor.spec.shape)}, and the example gives "
                f"{list(array.shape)}"
            )
        wanted[tensor.cell] = array
    _compare(wanted, outputs, "the reference")


def _value_of(tensor: Tensor, values: Mapping[str, object]) -> object:
    """What the example says an output is: for a list of outputs, an element of its list."""
    if tensor.name not in values:
        raise OperandError(f"the output {tensor.name} is not given")
    value = values[tensor.name]
    if tensor.position is None:
        return value
    tensors = cast("Sequence[object]", value) if isinstance(value, list) else ()
    if tensor.position >= len(tensors):
        raise ExampleError(f"{tensor.title} is not given", hint=f"{tensor.name} is a list")
    return tensors[tensor.position]


def _compare(wanted: Mapping[str, Array], outputs: tuple[Array, ...], what: str) -> None:
    for (name, expected), output in zip(wanted.items(), outputs, strict=True):
        agreement = compare(name, output, expected, Tolerance())
        if not agreement.agrees:
            raise ExampleError(
                f"{what} does not agree: {agreement_line(agreement)}",
                hint=f"it gives {shortened(output)}, and {shortened(expected)} is expected",
            )


def shortened(array: Array) -> str:
    """An array on one line, cut where it is long."""
    text = str(array.tolist())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _check_split(
    application: Application,
    module: ModuleOp,
    whole: Mapping[str, Array],
    random: Random,
    *,
    fuse: bool,
) -> int:
    """Run the program under random partitions; how many shards there were, 0 when nothing split."""
    split = module.clone()
    if fuse:
        run_pipeline(split, FUSE)
    shards = 0
    chosen: list[str] = []
    for op in _operations(split):
        partition = _partition(op, random)
        if partition is not None:
            op.shards = PartitionAttr(partition)
            shards += partition.count
            chosen.append(f"@{op.label.data} by {partition}")
    if not shards:
        return 0
    verify_module(split)
    outputs = run(split, application.inputs, on="numpy").outputs
    _compare(whole, outputs, f"split ({'; '.join(chosen)}), it")
    return shards


def _partition(op: loom.OperationOp | loom.FusedOp, random: Random) -> Partition | None:
    """A random partition of more than one part, that the operation may be split by."""
    for _ in range(8):
        partition = _random_partition(op.index, random)
        if partition.count > 1 and not op.sharding_problems(partition):
            return partition
    return None


def _random_partition(box: Range, random: Random) -> Partition:
    """A random grid, or random boxes, over map and fold dimensions alike."""
    if random.random() < 0.5:
        return Partition.explicit(_cut(box, random, 3))
    cuts: list[list[int]] = []
    for start, end in zip(box.start, box.end, strict=True):
        inside = range(start + 1, end)
        chosen = random.sample(inside, min(len(inside), random.randint(0, 2)))
        cuts.append([start, *sorted(chosen), end])
    return Partition.grid(cuts)


def _cut(box: Range, random: Random, depth: int) -> list[Range]:
    """A box cut into up to 2 ** depth parts, at random places of random dimensions."""
    dims = [dim for dim in range(box.rank) if box.shape[dim] > 1]
    if depth == 0 or not dims or random.random() < 0.25:
        return [box]
    dim = random.choice(dims)
    at = random.randint(1, box.shape[dim] - 1)
    parts = box.split_sizes(dim, [at, box.shape[dim] - at])
    return [piece for part in parts for piece in _cut(part, random, depth - 1)]
