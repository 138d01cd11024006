"""Prepared programs as plain JSON: functions by name, and what they were given.

    data = stored(run, library)
    same = restored(data, library)          # imports no IR, and prepares nothing

A prepared program is made of functions of arrays: NumPy's, those of a few modules of Tapestry's, by
themselves or with arguments (`partial`, and dataclasses that are called), which are numbers, names,
dtypes, ranges, small arrays and functions again. What is shared is written once. Nothing else has
such a form, and nothing else is ever read: a name stands for what these modules define under it,
and what belongs to the host is that of the `library` which is given again.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, partial
from importlib import import_module
from typing import Any, Final, cast

import numpy as np

from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.library import Library
from tapestry.zspace import AffineMap, Domain, Projection, Range

LARGEST: Final = 1 << 16
"""Bytes of an array that is written."""

_MODULES: Final = (
    *(f"tapestry.algebra.{name}" for name in ("computing", "functions", "named", "philox")),
    "tapestry.algebra.reducing",
    "tapestry.diagnostics",
    *(f"tapestry.runtime.arrays.{name}" for name in ("access", "blocks", "gathering", "matrices")),
    *(f"tapestry.runtime.prepared.{name}" for name in ("assembling", "cells", "library")),
    *(f"tapestry.runtime.prepared.{name}" for name in ("padding", "script", "views")),
    *(
        f"tapestry.runtime.prepared.folds.{name}"
        for name in ("folding", "halving", "scanning", "scatters")
    ),
    *(
        f"tapestry.runtime.prepared.loops.{name}"
        for name in ("copying", "looped_bodies", "looping", "merging")
    ),
    *(f"tapestry.runtime.prepared.parts.{name}" for name in ("alone", "sharing")),
    "tapestry.runtime.prepared.products.tiled",
    *(f"tapestry.runtime.prepared.tapes.{name}" for name in ("kinds", "meanings")),
    *(f"tapestry.runtime.prepared.tapes.{name}" for name in ("sources", "tape")),
    *(f"tapestry.zspace.{name}" for name in ("affine", "domain", "projection", "ranges")),
)
"""Where what is stored by name is defined; none of them knows IR."""

_NUMPY: Final = ("angle", "asarray", "imag", "real")
"""Functions of NumPy's beside those that go cell by cell."""


class NotStorableError(Exception):
    """A value that has no plain form."""


def stored(value: object, library: Library) -> dict[str, Any]:
    """The data of a function. NotStorableError where it is made of more than is said above."""
    writer = _Writer(library)
    last = writer.value(value)
    return {"rows": writer.rows, "value": last}


def restored(data: Mapping[str, Any], library: Library) -> Any:
    """What `stored` made; an error of Python's for other data, and for another library's."""
    reader = _Reader(library)
    for row in data["rows"]:
        reader.made.append(reader.row(row))
    return reader.value(data["value"])


class _Writer:
    """Makes the rows: one for each function, object and array, which others name by number."""

    def __init__(self, library: Library) -> None:
        self.rows: list[list[Any]] = []
        self._numbers: dict[object, tuple[object, int]] = {}
        self._host: dict[int, object] = {id(own): plain for plain, own in library.functions.items()}
        self._host[id(library.multiply)] = "multiply"
        if library.slide is not None:
            self._host[id(library.slide)] = "slide"
        if library.team is not None:
            self._host[id(library.team)] = "team"

    def value(self, value: object) -> Any:
        """Numbers, strings and None as they are, and all else as a list that begins with a name."""
        if value is None or type(value) in (bool, int, str):
            return value
        if isinstance(value, np.generic):  # float64 is a float of Python's as well
            return ["row", self._row(cast(Any, value))]
        match value:
            case float():
                return ["float", value.hex()]
            case complex():
                return ["complex", value.real.hex(), value.imag.hex()]
            case np.dtype():
                return ["dtype", _dtype_name(cast("np.dtype[Any]", value))]
            case slice():
                cut = cast(Any, value)
                return ["slice", *map(self.value, (cut.start, cut.stop, cut.step))]
            case tuple() | list() | frozenset():
                items = cast("Sequence[object]", value)
                return [type(items).__name__, *map(self.value, items)]
            case dict():
                pairs = cast("dict[object, object]", value).items()
                return ["dict", *([self.value(key), self.value(item)] for key, item in pairs)]
            case _ if value is Ellipsis:
                return ["..."]
            case _:
                return ["row", self._row(value)]

    def _row(self, value: object) -> int:
        # Geometry that is equal is the same; of all else, what is shared is one object.
        key = value if isinstance(value, AffineMap | Domain | Projection | Range) else id(value)
        known = self._numbers.get(key)
        if known is None:
            row = self._made(value)
            known = self._numbers[key] = value, len(self.rows)
            self.rows.append(row)
        return known[1]

    def _made(self, value: object) -> list[Any]:
        if id(value) in self._host:
            return ["host", self.value(self._host[id(value)])]
        if isinstance(value, np.ndarray | np.generic):
            return self._array(np.asarray(cast(Any, value)), whole=isinstance(value, np.ndarray))
        if isinstance(value, partial):
            bound = cast("partial[Any]", value)
            return ["partial", *map(self.value, (bound.func, bound.args, bound.keywords))]
        if isinstance(value, np.ufunc) or any(value is getattr(np, name) for name in _NUMPY):
            return ["numpy", cast(Any, value).__name__]
        if id(value) in _names():
            return ["named", *_names()[id(value)]]
        if is_dataclass(value) and id(type(value)) in _names():
            own = [(one.name, getattr(value, one.name)) for one in fields(value) if one.init]
            return ["object", *_names()[id(type(value))], [self.value(held) for _, held in own]]
        raise NotStorableError(f"{type(value).__name__} {getattr(value, '__qualname__', '')}")

    def _array(self, array: Array, *, whole: bool) -> list[Any]:
        if array.nbytes > LARGEST:
            raise NotStorableError(f"an array {array.dtype} {array.shape}")
        cells = b64encode(np.ascontiguousarray(array).tobytes()).decode()
        return [
            "array",
            _dtype_name(array.dtype),
            list(array.shape),
            cells,
            whole,
            array.flags.writeable,
        ]


class _Reader:
    def __init__(self, library: Library) -> None:
        self._library = library
        self.made: list[Any] = []

    def row(self, row: Sequence[Any]) -> Any:
        """What a row stands for, which is made of those before it."""
        match row:
            case ["object", str(module), str(name), [*held]]:
                kind, names = _kind(module, name)
                return kind(**dict(zip(names, map(self.value, held), strict=True)))
            case ["array", str(dtype), [*shape], str(cells), bool(whole), bool(own)]:
                raw = np.frombuffer(b64decode(cells, validate=True), np.dtype(dtype))
                made = raw.reshape(shape).copy()
                made.flags.writeable = own
                return made if whole else made[()]
            case ["partial", function, given, keywords]:
                found = self.value(function)
                return partial(found, *self.value(given), **self.value(keywords))
            case ["numpy", str(name)]:
                found = getattr(np, name)
                if not isinstance(found, np.ufunc) and name not in _NUMPY:
                    raise ValueError(f"NumPy's {name} is not one that is stored")
                return found
            case ["named", str(module), str(name)]:
                return _named(module, name)
            case ["host", "multiply"]:
                return self._library.multiply
            case ["host", "slide"] if self._library.slide is not None:
                return self._library.slide
            case ["host", "team"] if self._library.team is not None:
                return self._library.team
            case ["host", plain]:
                return self._library.functions[self.value(plain)]
            case _:
                raise ValueError(f"a row is {row!r:.80}")

    def value(self, value: Any) -> Any:
        """What `_Writer.value` wrote."""
        if type(value) is not list:
            return value
        if value[0] == "row":  # which most are
            return self.made[value[1]]
        kind, *rest = cast("list[Any]", value)
        match kind:
            case "tuple":
                return tuple(map(self.value, rest))
            case "list":
                return list(map(self.value, rest))
            case "frozenset":
                return frozenset(map(self.value, rest))
            case "dict":
                return {self.value(key): self.value(item) for key, item in rest}
            case "slice":
                return slice(*map(self.value, rest))
            case "dtype":
                return np.dtype(rest[0])
            case "float":
                return float.fromhex(rest[0])
            case "complex":
                return complex(*map(float.fromhex, rest))
            case "...":
                return Ellipsis
            case _:
                raise ValueError(f"a value is {value!r:.80}")


def _dtype_name(dtype: np.dtype[Any]) -> str:
    try:
        if not dtype.hasobject and np.dtype(dtype.name) == dtype:
            return dtype.name
    except TypeError:
        pass
    raise NotStorableError(f"the dtype {dtype}")


@cache
def _kind(module: str, name: str) -> tuple[Any, tuple[str, ...]]:
    """A dataclass, and what it is made of."""
    kind: Any = _named(module, name)
    return kind, tuple(one.name for one in fields(kind) if one.init)


@cache
def _named(module: str, name: str) -> Callable[..., Any]:
    if module not in _MODULES:
        raise ValueError(f"nothing of {module} is stored")
    found = getattr(import_module(module), name)
    if not _is_own(found, module):
        raise ValueError(f"{module} does not define {name}")
    return found


def _is_own(found: object, module: str) -> bool:
    return callable(found) and getattr(found, "__module__", None) == module


@cache
def _names() -> dict[int, tuple[str, str]]:
    """Module and name of what is stored by these, by its identity."""
    found: dict[int, tuple[str, str]] = {}
    for module in _MODULES:
        for name, value in vars(import_module(module)).items():
            if _is_own(value, module):
                found.setdefault(id(value), (module, name))
    return found
