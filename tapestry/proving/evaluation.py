"""A program evaluated on another kind of numbers: `loom`, operation by operation.

It is the reference executor's schedule, with two differences. A fold that is split into shards is
folded shard by shard and merged, so that what sharding asks of a monoid is put to the test. And a
fold by one scalar operation of NumPy's is one call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.monoids import Monoid, accumulating_monoid_of
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.runtime.arrays.arithmetic import Arithmetic, cell_constant, cell_dtype, using
from tapestry.runtime.arrays.mapfold import Tensor, finished, merged, new_tensor, write, zero_state
from tapestry.runtime.executor import Array, NoWatch, Watch
from tapestry.runtime.program import arguments
from tapestry.runtime.reference import ReferenceExecutor

_WHOLE: dict[type[Operation], np.ufunc] = {
    arith.AddfOp: np.add,
    arith.MulfOp: np.multiply,
    arith.MaximumfOp: np.maximum,
    arith.MinimumfOp: np.minimum,
    arith.AddiOp: np.add,
    arith.MuliOp: np.multiply,
    arith.MaxSIOp: np.maximum,
    arith.MinSIOp: np.minimum,
}
"""Operations that are associative and commutative over the reals, and on wrapping integers."""


class Numbers(Arithmetic, Protocol):
    """An arithmetic that takes floats as they are."""

    def exact(self, data: Array) -> Array:
        """Floats, exactly."""
        ...


@runtime_checkable
class Folding(Protocol):
    """An arithmetic that knows how to fold its own cells."""

    def fold(self, primitive: type[Operation], cells: Array, axes: tuple[int, ...]) -> Array | None:
        """The fold of some axes in one step; None where it takes merging one by one."""
        ...


class Evaluator(ReferenceExecutor):
    """The reference executor under an arithmetic; every tensor is remembered by its value."""

    def __init__(self, arithmetic: Numbers) -> None:
        self.arithmetic = arithmetic

    @property
    def name(self) -> str:
        return "equality"

    def operation(
        self, op: loom.OperationOp, ins: Sequence[Tensor], extras: Sequence[Tensor], watch: Watch
    ) -> list[Tensor]:
        monoid = accumulating_monoid_of(op)
        shards = () if op.partition is None else op.partition.ranges()
        whole_fold = op.fold_range(op.index)
        if monoid is None or all(op.fold_range(shard) == whole_fold for shard in shards):
            return super().operation(op, ins, extras, watch)
        outs = [new_tensor(tensor_type(result)) for result in op.outs]
        kept_box = op.kept_range(op.index)
        total = zero_state(monoid, kept_box.shape)
        for shard in shards:
            where = op.kept_range(shard).slices(kept_box)
            state = merged(monoid, [part[where] for part in total], self.fold(op, shard, ins))
            for part, value in zip(total, state, strict=True):
                part[where] = value
        write(op, kept_box, finished(op, kept_box, total, extras), outs)
        return outs

    def fold_values(
        self,
        monoid: Monoid,
        state: Sequence[Array],
        values: Sequence[Array],
        points: tuple[int, ...],
    ) -> list[Array]:
        folded: Array | None = None
        if monoid.primitive in _WHOLE:
            axes = tuple(range(len(points)))
            folded = self._fold(monoid.primitive, values[0], axes)
        if folded is None:
            return super().fold_values(monoid, state, values, points)
        return merged(monoid, state, [folded])

    def _fold(
        self, primitive: type[Operation], value: Array, axes: tuple[int, ...]
    ) -> Array | None:
        """The fold of some axes in one step; None where it takes merging one by one."""
        if isinstance(self.arithmetic, Folding):
            return self.arithmetic.fold(primitive, value, axes)
        if value.dtype == np.bool_ or not getattr(self.arithmetic, "folds_whole", True):
            return None
        with np.errstate(all="ignore"):
            return np.asarray(_WHOLE[primitive].reduce(value, axis=axes, dtype=value.dtype))

    def _external(self, op: loom.ExternalOp, operands: list[Tensor], watch: Watch) -> list[Tensor]:
        """An external kernel knows the numbers of its types alone: it gets them, rounded."""
        plain = [
            Tensor(tensor.box, _rounded(tensor.data, tensor_type(value).element_type))
            for tensor, value in zip(operands, op.operands, strict=True)
        ]
        with using(None):
            outs = super()._external(op, plain, watch)
        return [Tensor(out.box, self._exactly(out.data)) for out in outs]

    def _exactly(self, data: Array) -> Array:
        return data if data.dtype.kind in "iub" else self.arithmetic.exact(data)

    def dispatch(self, op: Operation, operands: list[Tensor], watch: Watch) -> list[Tensor]:
        outs = super().dispatch(op, operands, watch)
        kinds = [tensor_type(result).element_type for result in op.results]
        return [
            out if out.data.dtype == cell_dtype(kind) else Tensor(out.box, _admit(out.data, kind))
            for out, kind in zip(outs, kinds, strict=True)
        ]


def _rounded(data: Array, kind: Attribute) -> Array:
    real = data if data.dtype.names is None else data["real"]
    return real.astype(numpy_dtype(kind))


def _admit(data: Array, kind: Attribute) -> Array:
    """Numbers that a program names in bulk, as the arithmetic's."""
    found, places = np.unique(data, return_inverse=True)
    admitted = np.stack([cell_constant(value.item(), kind) for value in found])
    return admitted[places].reshape(data.shape)


def evaluate_program(
    module: ModuleOp, inputs: Sequence[Array], arithmetic: Numbers
) -> tuple[Array, ...]:
    """The outputs of @main, on inputs by position that the arithmetic already stores."""
    return run_on(Evaluator(arithmetic), module, inputs)


def run_on(evaluator: Evaluator, module: ModuleOp, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """The outputs of @main on an evaluator."""
    names = [argument.name for argument in arguments(module)]
    by_name: Mapping[str, Array] = dict(zip(names, inputs, strict=True))
    with using(evaluator.arithmetic):
        return evaluator.run(module, by_name, NoWatch()).outputs
