"""Mutants of templates and rules (YAML): read, or refused with one message that has a place."""

from __future__ import annotations

from functools import cache
from random import Random

from tapestry.diagnostics import TapestryError
from tapestry.metakernels import load_library
from tapestry.metakernels.libraries import LIBRARY, unread_templates
from tapestry.rewriting import reading
from tests.fuzzing.mutations import TOKEN, mutate
from tests.fuzzing.test_mutated_programs import TooLongError, limited


@cache
def _templates() -> tuple[str, ...]:
    """The library's templates."""
    return tuple(
        part.text
        for path in sorted(LIBRARY.glob("*.yaml"))
        for part in unread_templates(path.read_text(encoding="utf-8"), str(path)).values()
    )


@cache
def _rules() -> tuple[str, ...]:
    """The files of rules that come with Tapestry."""
    folder = LIBRARY.parent / "rules"
    return tuple(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.yaml")))


@cache
def _pool() -> tuple[str, ...]:
    return tuple(sorted({token for text in _templates() for token in TOKEN.findall(text)}))


def check(seed: int) -> str:
    """What became of the mutant; raises where it is no message with a place."""
    rng = Random(seed)
    are_rules = rng.random() < 0.3
    text = mutate(rng, rng.choice(_rules() if are_rules else _templates()), _pool())
    library = load_library()
    try:
        with limited():
            if are_rules:
                reading.read_rules(text, "mutant.yaml", library)
            else:
                library.with_text(text, "mutant.yaml")
    except TapestryError as error:
        if error.location is None or not error.message.strip():
            error.add_note(f"no place:\n{text}")
            raise AssertionError(error) from error
        return "refused"
    except (Exception, TooLongError) as error:
        raise AssertionError(f"{type(error).__name__}: {error}\n{text}") from error
    return "read"
