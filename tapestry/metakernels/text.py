"""Text of the language together with the place it was read from.

    >>> text = Text("[$a, $b]", Location("ops.yaml", 4, 12))
    >>> str(text.at(5))
    'ops.yaml:4:17'

An error at some character of an expression can so name its line and column.
"""

from __future__ import annotations

from dataclasses import dataclass

from tapestry.diagnostics import Location


@dataclass(frozen=True, slots=True)
class Text:
    """A string and where it stands; `exact` when its characters are consecutive columns there."""

    text: str
    location: Location | None = None
    exact: bool = True

    @staticmethod
    def of(text: str | Text) -> Text:
        """`text` itself, or a string without a place."""
        return text if isinstance(text, Text) else Text(text)

    def at(self, offset: int) -> Location | None:
        """Where the character at `offset` stands, or the start of the text when that is unknown."""
        place = self.location
        if place is None or not self.exact:
            return place
        return Location(place.file, place.line, place.column + offset)

    def __str__(self) -> str:
        return self.text
