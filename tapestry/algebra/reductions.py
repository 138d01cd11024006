"""Folding arrays by a scalar operation at once, where NumPy can.

>>> from xdsl.dialects.builtin import f32
>>> add = find_reduction(arith.AddfOp, f32)
>>> add.fold(np.array([[1, 2], [3, 4]], np.float32), (1,)).tolist()
[3.0, 7.0]
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects import complex as complex_dialect
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Operation

from tapestry.algebra.reducing import Reduction

_UFUNCS: dict[type[Operation], np.ufunc] = {
    arith.AddfOp: np.add,
    arith.MulfOp: np.multiply,
    arith.MaximumfOp: np.maximum,
    arith.MinimumfOp: np.minimum,
    arith.MaxnumfOp: np.fmax,
    arith.MinnumfOp: np.fmin,
    arith.AddiOp: np.add,
    arith.MuliOp: np.multiply,
    arith.MaxSIOp: np.maximum,
    arith.MinSIOp: np.minimum,
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
    complex_dialect.AddOp: np.add,
}
_TRUTH = (arith.AndIOp, arith.OrIOp, arith.XOrIOp)
"""What NumPy's truth values do as one-bit integers do."""

_ZEROS: dict[type[Operation], np.ufunc] = {
    arith.MaximumfOp: np.logical_and,
    arith.MaxnumfOp: np.logical_and,
    arith.MinimumfOp: np.logical_or,
    arith.MinnumfOp: np.logical_or,
}
"""How the signs of what was folded make that of a zero, where NumPy takes either zero."""


def find_reduction(primitive: type[Operation] | None, element: Attribute) -> Reduction | None:
    """The reduction that folds by a scalar operation on a type, or None."""
    if primitive is None or (element == i1 and primitive not in _TRUTH):
        return None
    ufunc = _UFUNCS.get(primitive)
    return None if ufunc is None else Reduction(ufunc, _ZEROS.get(primitive))
