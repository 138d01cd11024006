"""Methods that arrays of NumPy have: `x.reshape(4, 3)`, `x.astype("int32")`, `x.clip(0)`.

    >>> import tapestry
    >>> x = tapestry.input("x", (3, 4), "float32")
    >>> x.reshape(2, -1).shape, x.transpose().shape, x.astype(int).dtype
    ((2, 6), (4, 3), dtype('int64'))
    >>> (x > 0).sum().dtype, (x > 0).mean().dtype
    (dtype('int64'), dtype('float64'))

Every other method of an expression is the metakernel of that name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

if TYPE_CHECKING:
    from tapestry.importers.expressions.nodes import Expression


class ArrayMethods:
    """Methods whose arguments are those of arrays."""

    __slots__ = ()

    def reshape(
        self, *sizes: int | Sequence[int], shape: Sequence[int] | None = None
    ) -> Expression:
        """The same cells in row-major order under another shape; one size may be -1.

        Raises a WeftError for a shape of another number of cells.
        """
        return _apply("reshape", self, shape=_numbers(sizes if shape is None else (shape,)))

    def transpose(
        self, *axes: int | Sequence[int], perm: Sequence[int] | None = None
    ) -> Expression:
        """The axes in another order; in reverse order if none is given."""
        given = _numbers(axes if perm is None else (perm,))
        rank = self._tensor.ndim
        order = [axis + rank if axis < 0 else axis for axis in given]
        return _apply("transpose", self, perm=order) if order or not rank else self._tensor.T

    def astype(self, dtype: object) -> Expression:
        """The cells converted to a dtype of NumPy's or PyTorch's, or its name."""
        return _apply("cast", self, dtype=dtype)

    def clip(self, min: object = None, max: object = None) -> Expression:  # noqa: A002 - as in NumPy
        """The cells between two bounds, which are numbers or tensors."""
        result = self._tensor
        if min is not None:
            result = _apply("maximum", result, min)
        return result if max is None else _apply("minimum", result, max)

    def ravel(self) -> Expression:
        """The cells in row-major order along one axis."""
        return self.reshape(-1)

    def copy(self) -> Expression:
        """The expression itself: nothing changes it."""
        return self._tensor

    def dot(self, other: object) -> Expression:
        """The product of vectors, or of matrices."""
        from tapestry.importers.expressions.functions import as_expression

        right = as_expression(other, self._tensor.dtype)
        if 0 in (self._tensor.ndim, right.ndim):
            return _apply("mul", self, right)
        if right.ndim <= 2:
            return _apply("matmul", self, right)
        axes = {"axes_a": [self._tensor.ndim - 1], "axes_b": [right.ndim - 2]}
        return _apply("tensordot", self, right, **axes)

    def sum(self, *given: Any, **named: Any) -> Expression:
        """The sum along axes, or of all cells: whole numbers in 64 bits, as in NumPy."""
        return _folded("sum", self._tensor, given, named)

    def prod(self, *given: Any, **named: Any) -> Expression:
        """The product along axes, or of all cells: whole numbers in 64 bits, as in NumPy."""
        return _folded("prod", self._tensor, given, named)

    def mean(self, *given: Any, **named: Any) -> Expression:
        """The mean along axes, or of all cells: that of whole numbers is float64, as in NumPy."""
        x = self._tensor
        return _folded("mean", x.astype("float64") if x.dtype.kind in "biu" else x, given, named)

    def cumsum(self, axis: int | None = None, **named: Any) -> Expression:
        """Running sums along an axis, or of all cells in row-major order."""
        return _scanned("cumsum", self._tensor, named.pop("dim", axis), named)

    def cumprod(self, axis: int | None = None, **named: Any) -> Expression:
        """Running products along an axis, or of all cells in row-major order."""
        return _scanned("cumprod", self._tensor, named.pop("dim", axis), named)

    def argsort(
        self,
        axis: int | None = -1,
        kind: str | None = None,  # noqa: ARG002 - what NumPy calls stable is all there is
        *,
        descending: bool = False,
    ) -> Expression:
        """The places that sort the cells along an axis, or all in row-major order for None.

        Equal cells keep their order, whatever `kind` NumPy would sort by.
        """
        if axis is None:
            return self.ravel().argsort(descending=descending)
        cells = self.astype("int8") if self._tensor.dtype.kind == "b" else self
        _, places = cast(
            "tuple[Expression, Expression]",
            _apply("sort", cells, axis=axis, descending=descending),
        )
        return places

    def take(self, index: object, axis: int | None = None, **named: Any) -> Expression:
        """The cells, or slices along an axis, at places; of all cells in order for None."""
        axis = named.pop("dim", axis)
        whole = self.ravel() if axis is None else self
        return _apply("take", whole, index, axis=0 if axis is None else axis, **named)

    def repeat(self, repeats: int, axis: int | None = None) -> Expression:
        """Each cell, or slice along an axis, several times in turn, as in NumPy.

        `tile` repeats the whole tensor, as `repeat` of PyTorch does.
        """
        whole = self.ravel() if axis is None else self
        return _apply("repeat_interleave", whole, repeats, axis=0 if axis is None else axis)

    def argmax(self, axis: int | None = None, keepdims: bool = False, **named: bool) -> Expression:
        """The first place of the greatest cell along an axis, or in row-major order of all."""
        return _place("argmax", self._tensor, axis, named.get("keepdim", keepdims))

    def argmin(self, axis: int | None = None, keepdims: bool = False, **named: bool) -> Expression:
        """The first place of the least cell along an axis, or in row-major order of all."""
        return _place("argmin", self._tensor, axis, named.get("keepdim", keepdims))

    def item(self, *_: object) -> NoReturn:
        """Refused: nothing has run."""
        self._refuse("has no cells", "tapestry.run(expression, ...) computes them")

    tolist = tobytes = item

    def __setitem__(self, key: object, value: object) -> NoReturn:
        self._refuse(
            "cannot be changed",
            "tapestry.where, slice_scatter, select_scatter and index_put make new ones",
        )

    def __divmod__(self, other: object) -> tuple[Expression, Expression]:
        return _apply("floor_divide", self, other), _apply("remainder", self, other)

    def __round__(self, digits: int = 0) -> Expression:
        return _apply("round", self, decimals=digits)

    @property
    def mT(self) -> Expression:  # noqa: N802 - the name that arrays have
        """The matrices of the last two axes, transposed."""
        return _apply("swapaxes", self, axis1=-1, axis2=-2)

    @property
    def itemsize(self) -> int:
        """The bytes of a cell."""
        return self._tensor.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all cells."""
        return self._tensor.size * self.itemsize

    @property
    def _tensor(self) -> Expression:
        return cast("Expression", self)

    def _refuse(self, what: str, hint: str) -> NoReturn:
        raise TypeError(f"{self!r} {what}: it is a description, and nothing has run. {hint}.")


def _place(metakernel: str, x: Expression, axis: int | None, keepdim: bool) -> Expression:
    if axis is not None:
        return _apply(metakernel, x, axis=axis, keepdim=keepdim)
    place = _apply(metakernel, x.reshape(-1), axis=0)
    return place.reshape([1] * x.ndim) if keepdim else place


def _folded(
    metakernel: str, x: Expression, given: Sequence[Any], named: Mapping[str, Any]
) -> Expression:
    """A fold of cells in 64 bits, or converted to a `dtype`; an axis that is None is all axes."""
    options = dict(named)
    x = _wide(x, options.pop("dtype", None))
    return _apply(metakernel, x, *((() if one is None else one) for one in given), **options)


def _scanned(
    metakernel: str, x: Expression, axis: int | None, named: Mapping[str, Any]
) -> Expression:
    options = dict(named)
    x = _wide(x, options.pop("dtype", None))
    x, axis = (x.ravel(), 0) if axis is None else (x, axis)
    return _apply(metakernel, x, axis=axis, **options)


def _wide(x: Expression, dtype: object) -> Expression:
    """Cells of a dtype; without one, whole numbers and truth values in 64 bits."""
    if dtype is not None:
        return x.astype(dtype)
    if x.dtype.kind not in "biu" or x.dtype.itemsize == 8:
        return x
    return x.astype("uint64" if x.dtype.kind == "u" else "int64")


def _numbers(given: Sequence[int | Sequence[int]]) -> list[int]:
    """The numbers of `f(1, 2)`, or of `f((1, 2))`."""
    if len(given) == 1 and not isinstance(given[0], int | np.integer):
        return [int(one) for one in given[0]]
    return [int(cast(int, one)) for one in given]


def _apply(metakernel: str, *given: object, **parameters: object) -> Expression:
    from tapestry.importers.expressions.functions import function

    return cast("Expression", function(metakernel)(*given, **parameters))
