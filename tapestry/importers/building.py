"""Builds a weft program call by call; the types of results come from the templates.

    >>> build = ProgramBuilder()
    >>> x = build.argument("x", (4, 8), "f32")
    >>> w = build.constant(np.ones((8, 2), np.float32))
    >>> (y,) = build.apply("matmul", x, w)
    >>> (largest,) = build.apply("max", y, parameters={"axis": -1}, name="largest")
    >>> print(build.finish([largest]))
    builtin.module {
      func.func @main(%x: !loom.tensor<[0, 0] : [4, 8], f32>) -> !loom.tensor<[0] : [4], f32> {
        %0 = loom.constant 1.0 : !loom.tensor<[0, 0] : [8, 2], f32>
        %1 = weft.apply @matmul(%x, %0) : (!loom.tensor<[0, 0] : [4, 8], f32>, \
!loom.tensor<[0, 0] : [8, 2], f32>) -> !loom.tensor<[0, 0] : [4, 2], f32>
        %largest = weft.apply @max(%1) {axis = -1 : i64} : \
(!loom.tensor<[0, 0] : [4, 2], f32>) -> !loom.tensor<[0] : [4], f32>
        func.return %largest : !loom.tensor<[0] : [4], f32>
      }
    }

An application that does not fit raises a WeftError at once, at the location that was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from xdsl.dialects import func
from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr, ModuleOp, NameLoc, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tapestry.algebra.dtypes import ELEMENT_TYPES, name_of, numpy_dtype, type_named
from tapestry.attributes import attribute_of
from tapestry.diagnostics import Location, UsageError
from tapestry.dialects import loom, weft
from tapestry.dialects._weft_documents import attribute_of as document_attribute
from tapestry.dialects.loom import TensorType, tensor_type
from tapestry.locations import source_locations
from tapestry.metakernels import Library, TensorSpec, WeftError, expand, load_library
from tapestry.metakernels.operands import misapplied
from tapestry.zspace import Projection, Range

Given: TypeAlias = "SSAValue | Sequence[SSAValue] | None"
"""What stands for one input of a metakernel: a tensor, a list, or nothing for an optional one."""

Spec: TypeAlias = "TensorSpec | tuple[TensorSpec, ...] | None"
"""The same without the tensor: shape and dtype."""

_KNOWN: WeakKeyDictionary[Library, dict[tuple[object, ...], tuple[TensorType, ...]]] = (
    WeakKeyDictionary()
)
"""Per library, the results of the applications that were asked for."""


class ProgramBuilder:
    """A `func.func @main` over tensors, under construction."""

    def __init__(self, library: Library | None = None) -> None:
        """`library` finds the metakernels: the one that comes with Tapestry unless given."""
        self.library = load_library() if library is None else library
        self._block = Block()
        self._symbols: list[Operation] = []
        self._meant: dict[str, Library] = {}

    def argument(
        self,
        name: str,
        shape: Sequence[int],
        dtype: str | Attribute,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> SSAValue:
        """An input of the program; `name` is what `run` calls it."""
        value = self._block.insert_arg(kind_of(shape, dtype), len(self._block.args))
        value.name_hint = _hint(name)
        value.location = NameLoc(StringAttr(name), location)
        return value

    def constant(
        self,
        cells: npt.ArrayLike,
        dtype: str | Attribute | None = None,
        shape: Sequence[int] | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> SSAValue:
        """A tensor of known cells; one cell stands for all of `shape`."""
        array = np.asarray(cells)
        if dtype is None:
            dtype = _element_of(array.dtype)
        kind = kind_of(array.shape if shape is None else shape, dtype)
        stored = array.astype(numpy_dtype(kind.element_type))
        if array.size == kind.box.size and array.size > 1 and _equal_cells(stored):
            stored = stored.reshape(-1)[:1]
        op = loom.ConstantOp.of(stored, kind)
        return self.insert(op, location)[0]

    def apply(
        self,
        metakernel: str,
        *inputs: Given,
        parameters: Mapping[str, object] | None = None,
        name: str | None = None,
        location: LocationAttr = UNKNOWN_LOC,
        library: Library | None = None,
    ) -> tuple[SSAValue, ...]:
        """Apply a metakernel; its results, of the types that its template computes.

        A metakernel of another `library` comes into the program. Raises a WeftError, located by
        `location`, if it does not fit, and UsageError if the program has another of its name.
        """
        plain = dict(parameters or {})
        places = source_locations(location)
        place = places[0] if places else None
        own = self.library if library is None else library
        results = result_types(own, metakernel, map(_spec_of, inputs), plain, place)
        self._mean(own, metakernel, place)
        given = [() if value is None else value for value in inputs]
        attributes = {key: attribute_of(value) for key, value in plain.items()}
        made = self.insert(weft.ApplyOp(metakernel, given, results, attributes), location)
        if name is not None and made:
            made[0].name_hint = _hint(name)
        return made

    def external(
        self,
        callee: str,
        inputs: Sequence[SSAValue],
        results: Sequence[TensorType],
        parameters: Mapping[str, object] | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> tuple[SSAValue, ...]:
        """A kernel known by name only, which takes and gives whole tensors, in one piece."""
        attributes = {key: attribute_of(value) for key, value in (parameters or {}).items()}
        op = loom.ExternalOp(
            callee,
            Range.of(()),
            [(value, _whole(tensor_type(value))) for value in inputs],
            [(_whole(kind), kind) for kind in results],
            parameters=attributes,
        )
        return self.insert(op, location)

    def define(self, op: Operation, location: LocationAttr = UNKNOWN_LOC) -> None:
        """Add a definition beside @main: a monoid, or a metakernel of the program's own."""
        op.location = location
        self._symbols.append(op)

    def finish(self, outputs: Sequence[SSAValue]) -> ModuleOp:
        """The module whose @main returns `outputs`; nothing can be added afterwards."""
        self._block.add_op(func.ReturnOp(*outputs))
        kinds = [value.type for value in self._block.args], [value.type for value in outputs]
        definitions = [
            weft.MetakernelOp(name, document_attribute(own.get(name).document))
            for name, own in self._meant.items()
            if not own.shares(name, self.library)
        ]
        main = func.FuncOp("main", kinds, Region(self._block))
        return ModuleOp([*definitions, *self._symbols, main])

    def _mean(self, library: Library, metakernel: str, place: Location | None) -> None:
        """Note which templates an application uses: a program has one of a name."""
        for name in used_templates(library, metakernel):
            if not library.shares(name, self._meant.setdefault(name, library)):
                message = f"two metakernels of one program are named {name}"
                raise UsageError(message, location=place, hint="rename one of them")

    def insert(self, op: Operation, location: LocationAttr = UNKNOWN_LOC) -> tuple[SSAValue, ...]:
        """Any operation over tensors, as it is; its results."""
        op.location = location
        self._block.add_op(op)
        return tuple(op.results)


@lru_cache(maxsize=4096)
def used_templates(library: Library, metakernel: str) -> tuple[str, ...]:
    """The names of the templates that an application uses: its own, and those of its steps."""
    pending, seen = [metakernel], dict[str, None]()
    while pending:
        one = pending.pop()
        if one not in seen:
            seen[one] = None
            pending.extend(step.op for step in library.get(one).steps)
    return tuple(seen)


def result_types(
    library: Library,
    metakernel: str,
    inputs: Iterable[Spec],
    parameters: Mapping[str, object],
    place: Location | None = None,
) -> tuple[TensorType, ...]:
    """What applying a metakernel gives; a WeftError at `place` if it does not fit.

    `inputs` has a TensorSpec per input, a tuple of them for a list, None for what is left out.
    """
    specs = tuple(inputs)
    known = _KNOWN.setdefault(library, {})
    key = (metakernel, specs, repr(sorted(parameters.items())))
    if key not in known:
        try:
            template = library.get(metakernel)
        except WeftError as error:
            raise error.placed(place) from None
        try:
            expansion = expand(template, specs, parameters, library)
        except WeftError as error:
            raise misapplied(error, template, specs, place) from None
        known[key] = tuple(kind_of(out.spec.shape, out.spec.dtype) for out in expansion.outputs)
    return known[key]


def kind_of(shape: Sequence[int], dtype: str | Attribute) -> TensorType:
    """The type of a tensor from zero on; `dtype` is an element type or its name (`f32`)."""
    element = type_named(dtype) if isinstance(dtype, str) else dtype
    if element is None:
        raise ValueError(f"there is no dtype {dtype}")
    return TensorType.of(Range.of(tuple(shape)), element)


def dtype_name(dtype: npt.DTypeLike) -> str:
    """The name of a NumPy dtype's element type: `float32` is `f32`. ValueError without one."""
    return str(_element_of(np.dtype(dtype)))


def _element_of(dtype: np.dtype[Any]) -> Attribute:
    for element in ELEMENT_TYPES:
        if numpy_dtype(element) == dtype:
            return element
    raise ValueError(f"there are no tensors of {dtype}")


def _hint(name: str) -> str | None:
    """`name`, if a value can be called so."""
    return name if SSAValue.is_valid_name(name) else None


def _equal_cells(array: npt.NDArray[Any]) -> bool:
    """Whether all cells have the same bits."""
    cells = np.ascontiguousarray(array).reshape(-1).view(np.dtype((np.void, array.itemsize)))
    return bool((cells == cells[0]).all())


def _spec_of(given: Given) -> Spec:
    if given is None:
        return None
    if isinstance(given, SSAValue):
        kind = tensor_type(given)
        return TensorSpec(kind.box.shape, name_of(kind.element_type))
    specs = tuple(map(_spec_of, given))
    return tuple(spec for spec in specs if isinstance(spec, TensorSpec))


def _whole(kind: TensorType) -> Projection:
    """The one point selects every cell."""
    box = kind.box
    return Projection.of([[] for _ in box.start], box.start, box.shape, inputs=0)
