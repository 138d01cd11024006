"""How much of a law's examples a run draws.

    @settings(max_examples=drawn(200))

is 50 in an ordinary run and 200 in one with `--slow`.
"""

from __future__ import annotations

ALL = False
"""Whether `--slow` was given."""


def drawn(examples: int) -> int:
    """How many examples a test draws: a quarter of them where slow tests are left out."""
    return examples if ALL else min(examples, max(2, examples // 4))
