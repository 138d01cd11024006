"""The tables of the parser of templates, made once for all and kept beside the grammar.

    python -c "from tapestry.metakernels import tables; tables.write()"     # of another grammar

To make them takes lark ten times as long as to read them, and every program in weft needs them.
Those of another grammar, or of another version of lark, are not read: then they are made anew.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast

import lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

GRAMMAR: Final = Path(__file__).with_name("grammar.lark")

TABLES: Final = Path(__file__).with_name("grammar_tables.json")

STARTS: Final = {
    "pattern": "pattern",
    "expr": "expression",
    "list": "list",
    "projection": "projection",
    "clause": "family",
    "dtype": "dtype",
    "dtype_value": "dtype",
    "scalar": "body",
    "condition": "condition",
}
"""The rules that texts are read by, and what messages call such a text."""


def parser_of(callbacks: object) -> lark.Lark:
    """The parser, which calls a method of `callbacks` for each rule."""
    grammar = GRAMMAR.read_text(encoding="utf-8")
    kept = _kept(made_by(grammar))
    if kept is None:
        return lark.Lark(grammar, **_options(callbacks))
    kept["data"]["options"]["transformer"] = callbacks
    return cast(Any, lark.Lark).load(kept)


def write() -> None:
    """Make the tables of the grammar and keep them."""
    grammar = GRAMMAR.read_text(encoding="utf-8")
    parser = cast(Any, lark.Lark(grammar, **_options(None)))
    data, memo = parser.memo_serialize([TerminalDef, Rule])
    made = {"made_by": made_by(grammar), "data": data, "memo": memo}
    TABLES.write_text(json.dumps(made, separators=(",", ":")) + "\n", encoding="utf-8")


def made_by(grammar: str) -> Sequence[str]:
    """What tables depend on."""
    text = f"{grammar}{sorted(_options(None).items(), key=str)}"
    return [lark.__version__, sha256(text.encode()).hexdigest()]


def _options(callbacks: object) -> dict[str, Any]:
    return {
        "parser": "lalr",
        "start": list(STARTS),
        "maybe_placeholders": True,
        "transformer": callbacks,
    }


def _kept(wanted: Sequence[str]) -> dict[str, Any] | None:
    """The tables that are kept, if they are made by what is wanted."""
    try:
        made = json.loads(TABLES.read_text(encoding="utf-8"), object_hook=_numbered)
        return made if made.pop("made_by") == wanted else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _numbered(read: dict[str, Any]) -> dict[Any, Any]:
    """A table by numbers, as it was before it became JSON; other objects as they are."""
    return {int(key) if key.isdigit() else key: value for key, value in read.items()}
