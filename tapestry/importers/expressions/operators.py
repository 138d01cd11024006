"""The operators of arrays, on expressions: each is an application of a metakernel.

    >>> import tapestry
    >>> x = tapestry.input("x", (4, 3), "float32")
    >>> 1 / (x + 1)
    <float32[4, 3]: div(1.0, add(x, 1.0))>
    >>> x[:, None, ::-1].shape
    (4, 1, 3)

A Python number takes the dtype of the tensor beside it, as in NumPy; a float beside integers is
float32. Two tensors of different dtypes promote as the metakernel says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

from tapestry.importers.expressions.methods import ArrayMethods

if TYPE_CHECKING:
    import numpy as np

    from tapestry.importers.expressions.nodes import Expression


def _binary(metakernel: str) -> Callable[[Any, object], Expression]:
    def operator(self: Any, other: object) -> Expression:
        return _apply(of_truths(metakernel, self, other), self, other)

    return operator


def _reflected(metakernel: str) -> Callable[[Any, object], Expression]:
    def operator(self: Any, other: object) -> Expression:
        return _apply(of_truths(metakernel, self, other), other, self)

    return operator


_OF_TRUTHS = {
    "add": "logical_or",
    "maximum": "logical_or",
    "minimum": "logical_and",
    "mul": "logical_and",
}
"""What sums, products and extrema of truth values are, in NumPy and in PyTorch."""


def of_truths(metakernel: str, *operands: object) -> str:
    """The metakernel that an arithmetic operator is on these operands."""
    if metakernel not in _OF_TRUTHS:
        return metakernel
    kinds = [getattr(getattr(one, "dtype", None), "kind", None) for one in operands]
    truths = [
        kind == "b" or isinstance(one, bool) for kind, one in zip(kinds, operands, strict=True)
    ]
    return _OF_TRUTHS[metakernel] if all(truths) else metakernel


def _unary(metakernel: str) -> Callable[[Any], Expression]:
    def operator(self: Any) -> Expression:
        return _apply(metakernel, self)

    return operator


def _apply(metakernel: str, *given: object) -> Expression:
    from tapestry.importers.expressions.functions import function

    return cast("Expression", function(metakernel)(*given))


class Operators(ArrayMethods):
    """What an expression does beside having a shape and a dtype."""

    __slots__ = ()

    __hash__ = object.__hash__

    __add__, __radd__ = _binary("add"), _reflected("add")
    __sub__, __rsub__ = _binary("sub"), _reflected("sub")
    __mul__, __rmul__ = _binary("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _binary("div"), _reflected("div")
    __floordiv__, __rfloordiv__ = _binary("floor_divide"), _reflected("floor_divide")
    __mod__, __rmod__ = _binary("remainder"), _reflected("remainder")
    __rpow__ = _reflected("pow")
    __matmul__, __rmatmul__ = _binary("matmul"), _reflected("matmul")
    __and__, __rand__ = _binary("bitwise_and"), _reflected("bitwise_and")
    __or__, __ror__ = _binary("bitwise_or"), _reflected("bitwise_or")
    __xor__, __rxor__ = _binary("bitwise_xor"), _reflected("bitwise_xor")
    __lshift__, __rlshift__ = _binary("shift_left"), _reflected("shift_left")
    __rshift__, __rrshift__ = _binary("shift_right"), _reflected("shift_right")
    __lt__, __le__ = _binary("lt"), _binary("le")
    __gt__, __ge__ = _binary("gt"), _binary("ge")
    __eq__ = _binary("eq")  # pyright: ignore[reportAssignmentType] - cell by cell, as arrays do
    __ne__ = _binary("ne")  # pyright: ignore[reportAssignmentType]
    __neg__, __abs__, __invert__ = _unary("neg"), _unary("abs"), _unary("bitwise_not")

    def __pow__(self, exponent: object) -> Expression:
        if isinstance(exponent, int | float) and self._own.dtype.kind != "b":
            return _apply_with("pow_scalar", self, exponent=float(exponent))
        return _apply("pow", self, exponent)

    def __pos__(self) -> Expression:
        return self._own

    @property
    def _own(self) -> Expression:
        return cast("Expression", self)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._own.shape)

    @property
    def size(self) -> int:
        """The number of cells."""
        return self._own.kind.box.size

    @property
    def T(self) -> Expression:  # noqa: N802 - the name that arrays have
        """The tensor with its axes in reverse order."""
        return _apply_with("permute", self, dims=list(reversed(range(self.ndim))))

    def __getitem__(self, key: object) -> Expression:
        from tapestry.importers.expressions.indexing import indexed

        return indexed(self._own, key)

    def __len__(self) -> int:
        if not self._own.shape:
            raise TypeError("a tensor without axes has no length")
        return self._own.shape[0]

    def __iter__(self) -> Iterator[Expression]:
        return (self[place] for place in range(len(self)))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """A metakernel as a method: `x.sum(axis=1)` is `tapestry.sum(x, axis=1)`."""
        from tapestry.importers.expressions.functions import method

        return method(self._own, name)

    def __dir__(self) -> list[str]:
        """With the metakernels that take a tensor first, which editors complete."""
        from tapestry.metakernels import load_library

        library = load_library()
        first = (library.get(name).inputs[:1] for name in library.names)
        taking = [
            name
            for name, inputs in zip(library.names, first, strict=True)
            if inputs and inputs[0].each is None
        ]
        return sorted({*object.__dir__(self), *taking})

    def __bool__(self) -> NoReturn:  # noqa: PLE0304 - it has none
        self._refuse("has no truth value", "tapestry.where(condition, a, b) chooses cell by cell")

    def __array__(self, *_: object, **__: object) -> NoReturn:
        self._refuse("has no cells", "tapestry.run(expression, ...) computes them")

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *given: object, **named: object
    ) -> object:
        from tapestry.importers.expressions.numpy_functions import apply_ufunc

        return apply_ufunc(ufunc, method, given, named)

    def __array_function__(
        self,
        called: Callable[..., object],
        _: object,
        given: Sequence[object],
        named: Mapping[str, object],
    ) -> object:
        from tapestry.importers.expressions.numpy_functions import apply_function

        return apply_function(called, given, named)

    def __float__(self) -> NoReturn:
        self._refuse("is no number", "tapestry.run(expression, ...) computes it")

    __int__ = __index__ = __complex__ = __float__


def _apply_with(metakernel: str, given: object, **parameters: object) -> Expression:
    from tapestry.importers.expressions.functions import function

    return cast("Expression", function(metakernel)(given, **parameters))
