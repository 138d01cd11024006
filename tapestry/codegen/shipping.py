"""Modules of Tapestry as one Python file that needs none of them.

text = one_file([driver, launches, loader])      # the last one's docstring, and all of their code

What they import of each other is left out, what else they import stands once at the top.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

_OWN = "tapestry"


def one_file(modules: Sequence[ModuleType]) -> str:
    """The source of modules that import only each other and what is installed with Python."""
    imports: dict[str, None] = {}
    bodies: list[str] = []
    described = ""
    for module in modules:
        assert module.__file__ is not None
        source = Path(module.__file__).read_text("utf-8")
        lines = source.splitlines()
        described = ast.get_docstring(ast.parse(source), clean=False) or ""
        kept = list(lines)
        for statement in ast.parse(source).body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                imports |= _imports(statement)
                for line in range(statement.lineno - 1, statement.end_lineno or 0):
                    kept[line] = ""
        first = ast.parse(source).body[0]
        assert first.end_lineno is not None
        bodies.append("\n".join(kept[first.end_lineno :]).strip("\n"))
    future = "from __future__ import annotations"
    head = [f'"""{described}"""', future, "\n".join(sorted(set(imports) - {future}))]
    return "\n\n".join(head) + "\n\n\n" + "\n\n\n".join(bodies) + "\n"


def _imports(statement: ast.Import | ast.ImportFrom) -> dict[str, None]:
    """A line for each name, so that modules may import the same one."""
    if isinstance(statement, ast.Import):
        return dict.fromkeys(f"import {one.name}" for one in statement.names)
    source = statement.module or ""
    if source.split(".")[0] == _OWN:
        return {}
    return dict.fromkeys(f"from {source} import {one.name}" for one in statement.names)
