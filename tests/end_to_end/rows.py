"""Programs that fold rows and read what was folded for every cell: norms, softmaxes, losses.

`ROWS[name](rows, size, dtype)` is the text of a program of metakernels over `rows` rows of `size`
cells; `drawn` draws its inputs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.runtime.executor import Array
from tapestry.runtime.program import arguments


def _function(arguments: str, results: str, lines: str, rows: int, size: int, dtype: str) -> str:
    kinds = f"""
!x = !loom.tensor<[0, 0] : [{rows}, {size}], {dtype}>
!w = !loom.tensor<[0] : [{size}], {dtype}>
!r = !loom.tensor<[0] : [{rows}], {dtype}>
!t = !loom.tensor<[0] : [{rows}], i64>
!s = !loom.tensor<[] : [], i64>
!l = !loom.tensor<[] : [], {dtype}>
"""
    returned, types = results.split(" : ")
    return (
        f"{kinds}func.func @main({arguments}) -> ({types}) {{\n{lines}\n"
        f"  func.return {returned} : {types}\n}}\n"
    )


def _program(arguments: str, results: str, lines: str) -> Callable[[int, int, str], str]:
    def text(rows: int, size: int, dtype: str) -> str:
        return _function(arguments, results, lines, rows, size, dtype)

    return text


ROWS = {
    "softmax": _program(
        "%x: !x", "%y : !x", "  %y = weft.apply @softmax(%x) {axis = 1} : (!x) -> !x"
    ),
    "columns": _program(
        "%x: !x", "%y : !x", "  %y = weft.apply @softmax(%x) {axis = 0} : (!x) -> !x"
    ),
    "log_softmax": _program(
        "%x: !x", "%y : !x", "  %y = weft.apply @log_softmax(%x) {axis = 1} : (!x) -> !x"
    ),
    "layer_norm": _program(
        "%x: !x, %w: !w, %b: !w",
        "%y : !x",
        "  %y = weft.apply @layer_norm(%x, %w, %b) : (!x, !w, !w) -> !x",
    ),
    "rms_norm": _program(
        "%x: !x, %w: !w", "%y : !x", "  %y = weft.apply @rms_norm(%x, %w) : (!x, !w) -> !x"
    ),
    "normalize": _program(
        "%x: !x", "%y : !x", "  %y = weft.apply @normalize(%x) {axis = 1} : (!x) -> !x"
    ),
    "residual_norm": _program(
        "%x: !x, %r: !x, %w: !w, %b: !w",
        "%y, %h : !x, !x",
        "  %h = weft.apply @add(%x, %r) : (!x, !x) -> !x\n"
        "  %y = weft.apply @layer_norm(%h, %w, %b) : (!x, !w, !w) -> !x",
    ),
    "dropped_norm": _program(
        "%x: !x, %r: !x, %w: !w, %s: !s",
        "%z : !x",
        "  %d = weft.apply @dropout(%x, %s) {p = 0.25} : (!x, !s) -> !x\n"
        "  %h = weft.apply @add(%d, %r) : (!x, !x) -> !x\n"
        "  %y = weft.apply @rms_norm(%h, %w) : (!x, !w) -> !x\n"
        "  %z = weft.apply @gelu(%y) : (!x) -> !x",
    ),
    "scaled_softmax": _program(
        "%x: !x, %m: !x, %s: !s",
        "%z : !x",
        "  %c = weft.apply @scale(%x) {factor = 0.125} : (!x) -> !x\n"
        "  %h = weft.apply @add(%c, %m) : (!x, !x) -> !x\n"
        "  %y = weft.apply @softmax(%h) {axis = 1} : (!x) -> !x\n"
        "  %z = weft.apply @dropout(%y, %s) {p = 0.25} : (!x, !s) -> !x",
    ),
    "cross_entropy": _program(
        "%x: !x, %t: !t",
        "%l : !r",
        '  %l = weft.apply @cross_entropy_loss(%x, %t) {reduction = "none"} : (!x, !t) -> !r',
    ),
    "mean_cross_entropy": _program(
        "%x: !x, %t: !t",
        "%l : !l",
        "  %l = weft.apply @cross_entropy_loss(%x, %t) : (!x, !t) -> !l",
    ),
    "top1": _program(
        "%x: !x",
        "%v, %i : !r, !t",
        "  %v = weft.apply @max(%x) {axis = [1]} : (!x) -> !r\n"
        "  %i = weft.apply @argmax(%x) {axis = 1} : (!x) -> !t",
    ),
    "batch_norm": _program(
        "%x: !x, %w: !w, %b: !w",
        "%y, %m, %s : !x, !w, !w",
        "  %y, %m, %s = weft.apply @batch_norm(%x, %w, %b) : (!x, !w, !w) -> (!x, !w, !w)",
    ),
}


def drawn(module: ModuleOp, seed: int = 0) -> dict[str, Array]:
    """Inputs of a program of `ROWS`: normal cells, classes of targets, a seed."""
    random = np.random.default_rng(seed)
    inputs: dict[str, Array] = {}
    classes = arguments(module)[0].type.box.shape[1]
    for argument in arguments(module):
        dtype = numpy_dtype(argument.type.element_type)
        shape = argument.type.box.shape
        if dtype == np.int64:
            inputs[argument.name] = random.integers(0, classes, shape)
        else:
            inputs[argument.name] = (random.standard_normal(shape) * 3).astype(dtype)
    return inputs
