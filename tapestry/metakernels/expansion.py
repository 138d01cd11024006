"""What a template becomes for given shapes, dtypes and parameters: an index space and projections.

    >>> from tapestry.metakernels import TensorSpec, expand, load_library
    >>> library = load_library()
    >>> x, w = TensorSpec((64, 784), "f32"), TensorSpec((784, 32), "f32")
    >>> matmul = expand(library.get("matmul"), [x, w], {}, library)
    >>> matmul.space.extents, matmul.space.kinds, matmul.body.monoid
    ((64, 32, 784), ('map', 'map', 'fold'), 'add')
    >>> [str(read) for read in matmul.reads]
    ['(d0, d1, d2) -> (d0, d2)', '(d0, d1, d2) -> (d2, d1)']

An expansion is plain data. Ranges start at zero here; who applies it moves the projections by the
starts of the tensors it is applied to.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal, TypeAlias

from tapestry.metakernels.scalars import Constant, Scalar
from tapestry.metakernels.values import Value
from tapestry.zspace import AffineMap, Domain, Point, Projection, Range

Kind: TypeAlias = Literal["map", "scan", "fold"]


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """The shape and dtype of a tensor."""

    shape: Point
    dtype: str

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.shape))}] {self.dtype}"


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output by its name in the template, and by its position if it is of a list."""

    name: str
    spec: TensorSpec
    position: int | None = None

    @property
    def cell(self) -> str:
        """What bodies call a cell of it: `x`, or `tensors.2` for one of a list."""
        return self.name if self.position is None else f"{self.name}.{self.position}"

    @property
    def title(self) -> str:
        """What messages call it: `x`, or `tensors[2]`."""
        return self.name if self.position is None else f"{self.name}[{self.position}]"

    def __str__(self) -> str:
        return f"{self.title}: {self.spec}"


@dataclass(frozen=True, slots=True)
class Space:
    """An index space: the map dimensions, then what is scanned or folded, each with its label.

    Outputs are over the dimensions that are *kept*: all but the folded ones.
    """

    extents: Point
    labels: tuple[str | None, ...]
    maps: int
    scans: int = 0

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Per dimension, `map`, `scan` or `fold`."""
        runs: tuple[tuple[Kind, int], ...] = (
            ("map", self.maps), ("scan", self.scans), ("fold", len(self.extents) - self.kept),
        )  # fmt: skip
        return tuple(kind for kind, count in runs for _ in range(count))

    @property
    def kept(self) -> int:
        """How many dimensions are kept; they come first."""
        return self.maps + self.scans

    @property
    def kept_range(self) -> Range:
        """The range of the dimensions that are kept."""
        return Range.of(self.extents[: self.kept])

    @property
    def size(self) -> int:
        """How many points there are."""
        return prod(self.extents)


@dataclass(frozen=True, slots=True)
class MonoidBody:
    """A monoid that the template defines, on a state of typed parts.

    `merge` reads the parts of the left state, then those of the right one (`Folded`).
    """

    name: str
    state: tuple[str, ...]
    zero: tuple[Scalar, ...]
    merge: tuple[Scalar, ...]
    commutative: bool


@dataclass(frozen=True, slots=True)
class MapFold:
    """One block operation.

    `wrap` gives the parts of the folded state, or the outputs when nothing is folded; `unwrap`
    gives the outputs from the folded state, and None leaves it as it is. `ins` are the inputs (by
    position) that wrap reads, `extras` those that unwrap reads. The monoid is a built-in one by its
    name, or the template's own.
    """

    monoid: str | MonoidBody | None
    ins: tuple[int, ...]
    extras: tuple[int, ...]
    wrap: tuple[Scalar, ...]
    unwrap: tuple[Scalar, ...] | None


@dataclass(frozen=True, slots=True)
class Move:
    """Data movement alone: the result's cell at p is the cell at `source(p)` of input `operand`."""

    source: AffineMap
    operand: int = 0


@dataclass(frozen=True, slots=True)
class Reshape:
    """The input's cells in row-major order, under the result's shape."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """A kernel that is registered by name: what it computes of the boxes it reads is not known."""

    kernel: str
    parameters: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class StepCall:
    """One step of a composite: an expansion on values named by inputs and earlier steps.

    `made` names its outputs: like the step for a single one, else `step.output`, and `.0`, `.1`,
    ... after that for the tensors of a list.
    """

    name: str
    operands: tuple[str, ...]
    expansion: Expansion
    made: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Composite:
    """Several expansions in order; `results` names the values that are the outputs."""

    calls: tuple[StepCall, ...]
    results: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """Cells of an output: those that a member writes. Its cell at p is the one at `placement(p)`.

    Without a placement the part is the whole output.
    """

    output: int
    placement: AffineMap | None


@dataclass(frozen=True, slots=True)
class Member:
    """One operation of a family: it reads `operands`, by their number, and writes `parts`."""

    expansion: Expansion
    operands: tuple[int, ...]
    parts: tuple[Part, ...]

    def covers(self, inputs: int, outputs: int) -> bool:
        """Whether this is all there is: it reads every input and writes every output as a whole."""
        whole = tuple(Part(number, None) for number in range(outputs))
        return self.operands == tuple(range(inputs)) and self.parts == whole


@dataclass(frozen=True, slots=True)
class Family:
    """Several operations on the same inputs, whose parts tile the outputs."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Expansion:
    """A template applied to shapes, dtypes and parameters.

    `reads` has one projection per input, over all index dimensions; `writes` one per output, over
    those that are kept; `fills` what each input is outside its tensor, None where it is read inside
    alone. Points outside the domain `inside`, if there is one, contribute the monoid's zero. A
    composite, a family or a reshape has no index space of its own.
    """

    template: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    space: Space | None
    reads: tuple[Projection, ...]
    writes: tuple[Projection, ...]
    body: MapFold | Move | Reshape | Opaque | Composite | Family
    fills: tuple[Constant | None, ...] = ()
    inside: Domain | None = None
