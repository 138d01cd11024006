"""Windows: `reduce_window`, and the gradient of pooling by maxima.

"stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 1, 2>}> ({ add })

    weft.apply @window_sum(%x) {window = [1, 2], ...}

A window that reaches from an end of a dimension to the own cell is a running fold, as `jnp.cumsum`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tapestry.importers.operations import maps
from tapestry.importers.stablehlo.attributes import integers, integers_or, word
from tapestry.importers.stablehlo.folds import fold_by, is_identity, operations_of, read, single
from tapestry.importers.stablehlo.movement import flip, pad, reshape, transpose, window
from tapestry.importers.stablehlo.program import Op, Program, Translation
from tapestry.importers.stablehlo.values import Spec, Value
from tapestry.zspace import Projection, Range

_WINDOWS = {
    "stablehlo.add": "window_sum",
    "stablehlo.multiply": "window_product",
    "stablehlo.maximum": "window_max",
    "stablehlo.minimum": "window_min",
}
_RUNNING = {
    "stablehlo.add": "cumsum",
    "stablehlo.multiply": "cumprod",
    "stablehlo.maximum": "cummax",
    "stablehlo.minimum": "cummin",
}


@dataclass(frozen=True)
class Windows:
    """How windows lie over a tensor, dimension by dimension."""

    size: list[int]
    stride: list[int]
    low: list[int]
    high: list[int]
    dilation: list[int]

    @staticmethod
    def of(op: Op, rank: int) -> Windows:
        ones = [1] * rank
        padding = integers_or(op.attributes, "padding", [0] * (2 * rank))
        return Windows(
            integers(op.attributes["window_dimensions"]),
            integers_or(op.attributes, "window_strides", ones),
            padding[::2],
            padding[1::2],
            integers_or(op.attributes, "window_dilations", ones),
        )

    def parameters(self) -> dict[str, object]:
        """As the metakernels of windows take them."""
        return {
            "window": self.size,
            "stride": self.stride,
            "low": self.low,
            "high": self.high,
            "dilation": self.dilation,
        }

    def running(self, shape: Sequence[int]) -> tuple[int, bool] | None:
        """The dimension along which windows reach from an end to the own cell, and from which."""
        wide = [dim for dim, size in enumerate(self.size) if size != 1]
        if len(wide) != 1 or {*self.stride, *self.dilation} != {1}:
            return None
        (dim,) = wide
        apart = [(self.low[d], self.high[d]) for d in range(len(self.size)) if d != dim]
        if self.size[dim] != shape[dim] or any(one != (0, 0) for one in apart):
            return None
        around = (self.low[dim], self.high[dim])
        if around == (shape[dim] - 1, 0):
            return dim, False
        return (dim, True) if around == (0, shape[dim] - 1) else None


def _reduce_window(program: Program, op: Op) -> Sequence[Value]:
    count = len(op.results)
    inputs, inits = list(op.operands[:count]), op.operands[count:]
    rank = inputs[0].spec.rank
    spread = integers_or(op.attributes, "base_dilations", [1] * rank)
    if spread != [1] * rank:
        none = [0] * rank
        apart = [step - 1 for step in spread]
        inputs = [
            pad(program, x, init, none, none, apart) for x, init in zip(inputs, inits, strict=True)
        ]
    windows = Windows.of(op, rank)
    name = single(op.block(0)) or ""
    if (
        count == 1
        and name in _WINDOWS
        and _computes(inputs[0].spec)
        and is_identity(inits[0], name)
    ):
        running = windows.running(inputs[0].spec.shape)
        if running is not None:
            return [_running(program, inputs[0], name, *running)]
        return [program.apply(_WINDOWS[name], inputs[0], parameters=windows.parameters())]
    return _windows_by_region(program, op, inputs, inits, windows)


def _computes(spec: Spec) -> bool:
    return spec.is_integer or spec.is_float


def _running(program: Program, x: Value, name: str, dim: int, from_end: bool) -> Value:
    turned = flip(program, x, [dim]) if from_end else x
    made = program.apply_all(_RUNNING[name], turned, parameters={"axis": dim})[0]
    return flip(program, made, [dim]) if from_end else made


def _windows_by_region(
    program: Program, op: Op, inputs: Sequence[Value], inits: Sequence[Value], windows: Windows
) -> list[Value]:
    """Windows folded by whatever the region computes; what is outside is the initial value."""
    rank = inputs[0].spec.rank
    wide = [dim for dim, size in enumerate(windows.size) if size != 1]
    matrix = [[0] * (rank + len(wide)) for _ in range(rank)]
    for dim in range(rank):
        matrix[dim][dim] = windows.stride[dim]
        if dim in wide:
            matrix[dim][rank + wide.index(dim)] = windows.dilation[dim]
    projection = Projection.of(matrix, [-low for low in windows.low])
    if any(init.splat is None for init in inits):
        raise program.error(f"{op.name}: the initial value must be known, but is computed")
    reads = [
        read(program, x, projection, float(init.splat))
        for x, init in zip(inputs, inits, strict=True)
    ]
    shape = [*op.results[0].shape, *(windows.size[dim] for dim in wide)]
    kinds = maps(rank, len(wide))
    return fold_by(program, op, Range.of(shape), kinds, reads, inits, op.results)


def _select_and_scatter(program: Program, op: Op) -> Value:
    """What comes to each window goes to its greatest cell, or its least; the first of equals."""
    x, source, init = op.operands
    block = op.block(0)
    chosen, _ = operations_of(block)
    ordered = [one.name for one in chosen] == ["stablehlo.compare"] and (
        [*chosen[0].operands] == [*block.arguments]
    )
    direction = word(chosen[0].attributes["comparison_direction"]) if ordered else None
    windows = Windows.of(op, x.spec.rank)
    pairs = zip(windows.size, windows.stride, strict=True)
    active = [dim for dim, pair in enumerate(pairs) if pair != (1, 1)]
    adds = single(op.block(1)) == "stablehlo.add"
    if direction not in ("GE", "LE") or not adds or not 0 < len(active) <= 3:
        raise program.error(
            f"{op.name} is supported where it selects the greatest or the least cell of windows "
            "over one to three dimensions, and adds"
        )
    if direction == "LE":  # the order of negatives is the other way around; ~x is -x - 1
        x = program.apply("neg" if x.spec.is_float else "bitwise_not", x)
    made = _to_greatest(program, x, source, windows, active)
    return made if is_identity(init, "stablehlo.add") else program.apply("add", made, init)


def _to_greatest(
    program: Program, x: Value, source: Value, windows: Windows, active: Sequence[int]
) -> Value:
    """The gradient by `x`, pooled over its last two dimensions (one may be added), or three."""
    rank = x.spec.rank
    least = -np.inf if x.spec.is_float else np.iinfo(x.spec.numpy).min
    padded = pad(
        program,
        x,
        program.known(least, x.spec.of(shape=())),
        windows.low,
        windows.high,
        [0] * rank,
    )
    order = [dim for dim in range(rank) if dim not in active] + list(active)
    pooled = max(2, len(active))
    added = pooled - len(active)

    def turned(value: Value) -> Value:
        moved = transpose(program, value, order)
        shape = moved.spec.shape
        return reshape(program, moved, (*shape[: rank - 1], *[1] * added, *shape[rank - 1 :]))

    wide, grad = (
        turned(value) if added else transpose(program, value, order) for value in (padded, source)
    )
    ones = [1] * added
    parameters = {
        "kernel": [*ones, *(windows.size[dim] for dim in active)],
        "stride": [*ones, *(windows.stride[dim] for dim in active)],
        "dilation": [*ones, *(windows.dilation[dim] for dim in active)],
    }
    _, places = program.apply_all(f"max_pool{pooled}d_with_indices", wide, parameters=parameters)
    parameters["size"] = list(wide.spec.shape[-pooled:])
    made = program.apply(
        f"max_pool{pooled}d_with_indices_backward", grad, places, parameters=parameters
    )
    shape = [padded.spec.shape[dim] for dim in order]
    back = transpose(program, reshape(program, made, shape), [order.index(d) for d in range(rank)])
    return window(program, back, [max(low, 0) for low in windows.low], x.spec.shape)


TRANSLATIONS: dict[str, Translation] = {
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.select_and_scatter": _select_and_scatter,
}
