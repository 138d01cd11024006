"""Mutants of textual programs: each ends with a program or one message, see `tests.fuzzing`."""

from __future__ import annotations

from tests.fuzzing import test_mutated_programs


def check(seed: int) -> str:
    """Nothing is counted; raises where there is a traceback, or it takes too long."""
    try:
        test_mutated_programs.check(seed)
    except test_mutated_programs.TooLongError as error:
        raise TimeoutError(*error.__notes__) from error
    return ""
