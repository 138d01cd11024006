"""SymPy expressions written as the template language writes them.

    >>> import sympy
    >>> n = sympy.Symbol("N", integer=True)
    >>> expression_text(sympy.floor((n + 3) / 4)), expression_text(n**2 * (n % 4))
    ('(N + 3) // 4', 'N ^ 2 * (N % 4)')

What is written can be read again by the language, with the same value.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import Any, Final

_OPERATOR: Final = re.compile(r"(?<![ /])([*^/])(?![ /])")


def expression_text(expression: Any) -> str:
    """A SymPy expression over sizes as text of the language."""
    return _printer().doprint(expression)


@cache
def _printer() -> Any:
    printing: Any = import_module("sympy.printing.str")
    precedence: Any = import_module("sympy.printing.precedence")
    core: Any = import_module("sympy")

    base: Any = printing.StrPrinter

    class Printer(base):
        """Writes quotients, remainders and extrema as the language does."""

        def _print_floor(self, expression: Any) -> str:
            above, below = core.fraction(core.together(expression.args[0]))
            return f"({self._operand(above)} // {self._operand(below)})"

        def _print_ceiling(self, expression: Any) -> str:
            above, below = core.fraction(core.together(expression.args[0]))
            return f"ceildiv({self._print(above)}, {self._print(below)})"

        def _print_Mod(self, expression: Any) -> str:  # noqa: N802 - SymPy's name
            left, right = expression.args
            return f"({self._operand(left)} % {self._operand(right)})"

        def _print_Max(self, expression: Any) -> str:  # noqa: N802 - SymPy's name
            return f"max({', '.join(map(self._print, expression.args))})"

        def _print_Min(self, expression: Any) -> str:  # noqa: N802 - SymPy's name
            return f"min({', '.join(map(self._print, expression.args))})"

        def _operand(self, expression: Any) -> str:
            return str(self.parenthesize(expression, precedence.PRECEDENCE["Mul"] + 1))

        def parenthesize(self, item: Any, level: int, strict: bool = False) -> str:
            """`item` inside an operator; quotients and remainders have their parentheses."""
            if isinstance(item, core.floor | core.Mod):
                return str(self._print(item))
            return str(base.parenthesize(self, item, level, strict))

        def doprint(self, expression: Any) -> str:
            """The whole text: without parentheses around all of it, powers as `^`."""
            text = str(base.doprint(self, expression)).replace("**", "^")
            text = _OPERATOR.sub(r" \1 ", text)
            return text[1:-1] if _is_wrapped(text) else text

    return Printer()


def _is_wrapped(text: str) -> bool:
    """Whether one pair of parentheses holds all of the text."""
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return position == len(text) - 1
    return False
