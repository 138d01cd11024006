"""Batch normalization: `batch_norm_training`, `batch_norm_inference` and `batch_norm_grad`.

mean and variance over all dimensions but `feature_index`, which scale and offset are along
"""

from __future__ import annotations

from collections.abc import Sequence

from tapestry.importers.stablehlo.attributes import integers
from tapestry.importers.stablehlo.movement import broadcast
from tapestry.importers.stablehlo.program import Op, Program, Translation
from tapestry.importers.stablehlo.values import Value


class _Normalization:
    """What the three have in common: a feature dimension, and the number added to variances."""

    def __init__(self, program: Program, op: Op) -> None:
        self._program = program
        self.x = op.operands[0]
        self._feature = integers(op.attributes["feature_index"])[0]
        self._epsilon = float(op.attributes["epsilon"])
        self._others = [dim for dim in range(self.x.spec.rank) if dim != self._feature]
        self.count = self.x.spec.size // max(self.x.spec.shape[self._feature], 1)

    def call(self, name: str, *values: Value) -> Value:
        """Apply a metakernel; a vector of features is repeated over the other dimensions."""
        shape = self.x.spec.shape
        wide = any(value.spec.rank > 1 for value in values)
        given = [
            broadcast(self._program, value, [self._feature], shape)
            if wide and value.spec.rank == 1
            else value
            for value in values
        ]
        return self._program.apply(name, *given)

    def over(self, name: str, value: Value) -> Value:
        """A fold over all but the features."""
        return self._program.apply(name, value, parameters={"axis": self._others})

    def inverse(self, variance: Value) -> Value:
        """One over the deviation, of each feature."""
        moved = self._program.known(self._epsilon, variance.spec)
        return self.call("rsqrt", self.call("add", variance, moved))

    def number(self, value: float, like: Value) -> Value:
        return self._program.known(value, like.spec)

    def normalized(self, mean: Value, variance: Value) -> Value:
        return self.call("mul", self.call("sub", self.x, mean), self.inverse(variance))


def _training(program: Program, op: Op) -> Sequence[Value]:
    norm = _Normalization(program, op)
    _, scale, offset = op.operands
    mean = norm.over("mean", norm.x)
    apart = norm.call("sub", norm.x, mean)
    variance = norm.over("mean", norm.call("mul", apart, apart))
    made = norm.call("add", norm.call("mul", norm.normalized(mean, variance), scale), offset)
    return [made, mean, variance]


def _inference(program: Program, op: Op) -> Value:
    norm = _Normalization(program, op)
    _, scale, offset, mean, variance = op.operands
    return norm.call("add", norm.call("mul", norm.normalized(mean, variance), scale), offset)


def _grad(program: Program, op: Op) -> Sequence[Value]:
    """With n the normalized cells: scale / deviation * (g - mean of g - n * mean of g n)."""
    norm = _Normalization(program, op)
    _, scale, mean, variance, gradient = op.operands
    cells = norm.normalized(mean, variance)
    offset_gradient = norm.over("sum", gradient)
    scale_gradient = norm.over("sum", norm.call("mul", gradient, cells))
    share = norm.number(1 / max(norm.count, 1), scale)
    centred = norm.call("sub", gradient, norm.call("mul", offset_gradient, share))
    along = norm.call("mul", cells, norm.call("mul", scale_gradient, share))
    factor = norm.call("mul", scale, norm.inverse(variance))
    made = norm.call("mul", norm.call("sub", centred, along), factor)
    return [made, scale_gradient, offset_gradient]


TRANSLATIONS: dict[str, Translation] = {
    "stablehlo.batch_norm_grad": _grad,
    "stablehlo.batch_norm_inference": _inference,
    "stablehlo.batch_norm_training": _training,
}
