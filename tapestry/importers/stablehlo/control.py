"""Calls and branches: inlined."""

from __future__ import annotations

from collections.abc import Sequence

from tapestry.importers.stablehlo.program import Op, Program, Translation
from tapestry.importers.stablehlo.values import Value


def _call(program: Program, op: Op) -> Sequence[Value]:
    callee = str(op.attributes["callee"]).removeprefix("@").strip('"')
    return program.run_function(callee, op.operands)


TRANSLATIONS: dict[str, Translation] = {"func.call": _call}
