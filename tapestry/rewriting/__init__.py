"""Rewrite rules: what may take the place of which applications, written like metakernels.

    linear_split:
      match:   {y: {op: linear, x: X, W: W, b: B}}
      types:   {X: "[$batch..., $in]", W: "[$in, $out]", B: "[$out]"}
      where:   ["single_use(y)"]
      produce: {z: {op: matmul, X: X, W: W}, y: {op: add, a: z, b: B}}
      exact: false

Rules are read (`reading`), matched against shapes and parameters (`binding`), and have to show
that they may be used: shapes and dtypes stay (`obligations`), they come to an end (`measure`), and
values stay (`tapestry.proving.rules`). `docs/how-to/rules.md` is the guide. Plain Python: no IR is
known here.
"""

from tapestry.rewriting.reading import load_rules, read_rules
from tapestry.rewriting.rules import Rule, RuleError

__all__ = ["Rule", "RuleError", "load_rules", "read_rules"]
