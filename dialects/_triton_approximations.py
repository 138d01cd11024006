"""Operations that may be the hardware's approximations: they are marked `fastmath<afn>`.

    %q = arith.divf %a, %b fastmath<afn> : f32

A division or root of float32 that is not marked rounds as IEEE 754 says, where the hardware's is up
to two units in the last place off.
"""

from __future__ import annotations

from typing import Final

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Operation

APPROXIMATE: Final = FastMathFlagsAttr([FastMathFlag.APPROX_FUNC])
"""The mark."""


def is_approximate(op: Operation) -> bool:
    """Whether an operation may be the hardware's approximation."""
    flags = op.properties.get("fastmath")
    return isinstance(flags, FastMathFlagsAttr) and FastMathFlag.APPROX_FUNC in flags.data
