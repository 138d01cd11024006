"""Every metakernel as a Python function, with the signature and the documentation of its template.

    >>> relu, total = function("relu"), function("sum")
    >>> total.__name__, str(total.__signature__)
    ('sum', '(x, axis=(), keepdim=False)')
    >>> from tapestry.importers.expressions.nodes import Expression, Input, kind_of
    >>> total(relu(Expression(Input("x", kind_of((4, 8), "f32")))), axis=-1)
    <float32[4]: sum(relu(x), axis=-1)>

Operands are expressions, arrays (of NumPy, or PyTorch tensors on the CPU) and numbers, which take
the dtype of the first tensor beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from tapestry.algebra.dtypes import numpy_dtype, type_named
from tapestry.diagnostics import UsageError
from tapestry.importers.arrays import array_of, is_array
from tapestry.importers.building import dtype_name, kind_of
from tapestry.importers.expressions.nodes import Constant, Expression, Given, caller, results_of
from tapestry.importers.expressions.signatures import bind, signature_of
from tapestry.metakernels import Library, Template, WeftError, load_library
from tapestry.metakernels.documents import read_file
from tapestry.metakernels.libraries import read_folder
from tapestry.metakernels.parameters import Parameter
from tapestry.metakernels.templates import Input

Function = Callable[..., Any]

_OWN_NAMES: Final = frozenset({"shape", "dtype", "size", "kind", "node", "position", "spec"})
"""Attributes of expressions, which no metakernel takes the place of."""

_ELSEWHERE: Final = {"to": "astype", "type": "astype", "view": "reshape"}
"""What methods of PyTorch's tensors that no metakernel has are called here."""

_TWO_MEANINGS: Final = {"i1": ("int8", "bool"), "i8": ("int64", "int8")}
"""Names of dtypes that NumPy and programs have for different ones."""

_CATEGORIES: Final = {"b": 0, "i": 1, "u": 1, "f": 2, "V": 2, "c": 3}
"""Truth values, integers, floats (`ml_dtypes`' are V), complex numbers."""


@cache
def function(name: str) -> Function:
    """The function of a metakernel of the library; a WeftError with the nearest names without."""
    return metakernel_function(load_library(), name)


def metakernel_function(library: Library, name: str) -> Function:
    """The function that applies the metakernel `name` of `library` to expressions."""
    template = library.get(name)
    signature = signature_of(template)

    def apply(*args: object, **kwargs: object) -> Expression | tuple[Expression, ...]:
        try:
            bound = bind(template, args, kwargs)
        except TypeError as error:
            raise TypeError(f"{name}{signature}: {error}") from None
        inputs = _inputs(template, bound)
        parameters = {
            parameter.name: _parameter(parameter, bound[parameter.name])
            for parameter in template.parameters
            if bound[parameter.name] is not parameter.default
        }
        results = results_of(library, name, inputs, parameters)
        return results[0] if len(template.outputs) == 1 and len(results) == 1 else results

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = documentation_of(template)
    apply.__module__ = "tapestry"
    cast(Any, apply).__signature__ = signature
    return apply


def method(expression: Expression, name: str) -> Function:
    """The metakernel `name` with `expression` as its first input."""
    if name.startswith("_"):
        raise AttributeError(f"an expression has no attribute {name!r}")
    library, node = load_library(), expression.node
    if name not in library.names:
        known = [*library.names, *(one for one in dir(Expression) if one[0] != "_"), *_OWN_NAMES]
        close = [_ELSEWHERE[name]] if name in _ELSEWHERE else get_close_matches(name, known, n=3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise AttributeError(f"an expression has no attribute {name!r}{hint}", name=name, obj=node)
    whole = function(name)

    def apply(*args: object, **kwargs: object) -> Any:
        return whole(expression, *args, **kwargs)

    apply.__name__, apply.__doc__ = name, whole.__doc__
    return apply


class Metakernels:
    """The metakernels of a user's own files, as functions: `mine.swiglu(x, w)`."""

    def __init__(self, library: Library, names: Sequence[str]) -> None:
        self._library = library
        self._names = tuple(sorted(names))

    def __getattr__(self, name: str) -> Function:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._names:
            raise AttributeError(
                f"there is no metakernel {name!r} here; there is {', '.join(self._names)}"
            )
        return metakernel_function(self._library, name)

    def __dir__(self) -> Iterator[str]:
        return iter(self._names)

    def __repr__(self) -> str:
        return f"<metakernels {', '.join(self._names)}>"


def load_metakernels(path: str | Path) -> Metakernels:
    """The metakernels of a YAML file, or of all files in a folder, as functions.

    Raises a located TemplateError for a file that cannot be read or a template that is wrong.
    """
    library, names = extended_library(path)
    return Metakernels(library, names)


def extended_library(path: str | Path) -> tuple[Library, list[str]]:
    """The library with the templates of a file or folder, and their names."""
    place = Path(path)
    if place.is_dir():
        documents = read_folder(place)
    else:
        documents = {str(key.value): node for key, node in read_file(place).entries}
    library = load_library().extended(documents)
    library.check(documents)
    return library, list(documents)


def as_expression(value: object, like: np.dtype[Any] | None = None) -> Expression:
    """An expression as it is; an array or a number as a constant.

    A number takes the dtype `like` if that can hold it: a float beside integers is float32, an
    integer beside truth values int64. Raises UsageError for anything else.
    """
    if isinstance(value, Expression):
        return value
    if isinstance(value, bool | int | float):
        dtype = _number_dtype(value, like)
        try:
            return _constant(np.asarray(value, dtype))
        except OverflowError:
            alone = "floats reach further"
            beside = "it has the dtype of the tensor beside it, which .astype converts"
            raise UsageError(
                f"{value} is no {dtype}", location=caller(), hint=alone if like is None else beside
            ) from None
    if is_array(value) or isinstance(value, np.generic | list | tuple):
        try:
            return _constant(array_of(cast(object, value)))
        except (ValueError, TypeError) as error:
            raise UsageError(str(error), location=caller()) from None
    raise UsageError(
        f"{'None' if value is None else type(value).__name__} is no operand",
        location=caller(),
        hint="expressions, arrays and numbers are",
    )


def _constant(cells: np.ndarray[Any, np.dtype[Any]]) -> Expression:
    kind = kind_of(cells.shape, dtype_name(cells.dtype))
    return Expression(Constant(cells, kind, caller()))


def _number_dtype(value: float, like: np.dtype[Any] | None) -> np.dtype[Any]:
    """The dtype of a number beside a tensor of `like` (alone: float32, int64 or bool)."""
    kinds = {bool: "b", int: "biu", float: ""}
    floating = like is not None and like.kind not in "biu"
    if like is not None and (floating or (not isinstance(value, float) and like.kind != "b")):
        return like
    if like is not None and isinstance(value, bool):
        return np.dtype(bool)
    assert type(value) in kinds
    return np.dtype({bool: bool, int: np.int64, float: np.float32}[type(value)])


def _inputs(template: Template, given: Mapping[str, object]) -> list[Given]:
    """What is given for each input, as expressions; numbers take the dtype of a tensor beside."""
    values = [(entry, given[entry.name]) for entry in template.inputs]
    tensors = (one for entry, value in values for one in _each(entry, value))
    dtypes = [found for one in tensors if (found := _dtype_of(one)) is not None]
    # A mask or an index says nothing of the numbers beside it where there is a float.
    like = max(dtypes, key=lambda dtype: _CATEGORIES[dtype.kind], default=None)
    inputs: list[Given] = []
    for entry, value in values:
        if value is None and entry.optional:
            inputs.append(None)
        elif entry.each is not None:
            inputs.append(tuple(as_expression(one, like) for one in _each(entry, value)))
        else:
            inputs.append(as_expression(value, like))
    return inputs


def _each(entry: Input, value: object) -> Sequence[object]:
    """The tensors that are given for an input: one, or those of a list."""
    if entry.each is None:
        return () if value is None else (value,)
    if isinstance(value, Sequence):
        return cast("Sequence[object]", value)
    raise UsageError(f"{entry.name} is a list of tensors", location=caller())


def _dtype_of(value: object) -> np.dtype[Any] | None:
    """The dtype of a tensor; None of what has none, or one that no tensor can have."""
    if isinstance(value, Expression):
        return value.dtype
    try:
        return array_of(cast(object, value)).dtype if is_array(value) else None
    except ValueError:
        return None


def _parameter(parameter: Parameter, value: object) -> object:
    """A parameter as templates take it; one number stands for a list of one, of any length."""
    plain = plain_parameter(parameter.kind, value)
    listed = parameter.kind == "int[]" and parameter.axis_of is None and parameter.length is None
    return [plain] if listed and isinstance(plain, int) else plain


def plain_parameter(kind: str, value: object) -> object:
    """A parameter of that kind as templates take it."""
    if kind == "dtype":
        try:
            return dtype_name(dtype_of(value))
        except (TypeError, ValueError):
            return str(value)  # what it must be is the template's to say
    if isinstance(value, np.integer | np.floating | np.bool_):
        return cast(object, value.item())
    if isinstance(value, list | tuple):
        return [plain_parameter("", one) for one in cast("Sequence[object]", value)]
    return value


def documentation_of(template: Template) -> str:
    """What the template says of itself."""
    lines = (
        [template.doc, "", f"    {template.formula}", ""] if template.formula else [template.doc]
    )
    if template.source:
        lines.append(f"Source: {template.source}")
    return "\n".join(lines)


def dtype_of(value: object) -> np.dtype[Any]:
    """The dtype that `value` names: NumPy's, PyTorch's, or as in programs (`f32`).

    Raises TypeError where there is none of the name, UsageError where there are two.
    """
    name = str(value).removeprefix("torch.")
    if not isinstance(value, str) and name == str(value):
        return np.dtype(cast(Any, value))
    if name in _TWO_MEANINGS:
        of_numpy, of_programs = _TWO_MEANINGS[name]
        raise UsageError(
            f"{name} is {of_numpy} in NumPy, and {of_programs} in programs",
            location=caller(),
            hint=f"write {of_numpy} or {of_programs}",
        )
    element = type_named("bf16" if name == "bfloat16" else name)
    return np.dtype(name) if element is None else numpy_dtype(element)


__all__ = ["Metakernels", "WeftError", "as_expression", "function", "load_metakernels", "method"]
