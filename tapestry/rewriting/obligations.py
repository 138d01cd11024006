"""That what a rule produces has the shapes and dtypes of what it replaces.

    samples = check_types(rule, Expansions(library))        # or a RuleError with the sizes

Checked at drawn places (`sampling`), not for all. Why that says much: for fixed ranks, dtypes and
choice of the sizes that are 1, the sizes of results are polynomials (or quotients of them, rounded)
in the sizes of inputs. Two polynomials that differ agree at few points of a grid (Schwartz and
Zippel: at most their degree per grid width), and sizes are drawn from primes and from small numbers
with every pattern of ones. Where `//`, `%`, `min` or deep ranks come in this is evidence only; so
whoever applies a rule compares the types again at that place, and no rewrite changes a type.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from tapestry.metakernels import WeftError
from tapestry.rewriting.binding import Combination, DoesNotApplyError, Expansions, produce
from tapestry.rewriting.rules import Rule, RuleError
from tapestry.rewriting.samples import Sample
from tapestry.rewriting.sampling import draw_samples

ATTEMPTS: Final = 400
"""How often a place is drawn."""

ENOUGH: Final = 150
"""Places after which no more are drawn: every dtype and kind of sizes came several times."""

LEAST: Final = 6
"""Places that have to be found: with fewer, agreement says little."""


def check_types(rule: Rule, expansions: Expansions, *, enough: int = ENOUGH) -> tuple[Sample, ...]:
    """Places where shapes and dtypes stay; a RuleError shows one where they do not."""
    kept: list[Sample] = []
    for sample in draw_samples(rule, expansions, ATTEMPTS):
        specs = sample.situation.specs
        try:
            production = produce(rule, sample.names, specs, expansions)
        except DoesNotApplyError:
            continue
        except WeftError as error:
            raise RuleError(
                f"{error.message}, for {sample.describe(rule)}",
                location=error.location or rule.location,
                hint=error.hint or "say in `where` or `types` when the rule applies",
            ) from None
        for name in rule.outputs:
            if production.specs[name] != specs[name]:
                raise RuleError(
                    f"rule {rule.name}: {name} is {specs[name]}, and {production.specs[name]} is "
                    f"produced, for {sample.describe(rule)}",
                    location=rule.document.at("produce", name).location,
                    hint="say in `where` when the rule applies: same_type(..., ...), $n > 1",
                )
        kept.append(sample)
        if len(kept) == enough:
            break
    if len(kept) < LEAST:
        raise RuleError(
            f"rule {rule.name}: {ATTEMPTS} draws found {len(kept)} places where it applies",
            location=rule.location,
            hint="say in `types` how the shapes of its inputs hang together",
        )
    return tuple(kept)


def telling(rule: Rule, samples: Sequence[Sample], count: int, cells: int) -> tuple[Sample, ...]:
    """A few samples that are unlike: one for each combination of dtypes, then of other sizes.

    Those of few dtypes and the mixed ones alternate: a rule that holds for each dtype alone may
    wrap or round otherwise where two meet.
    """
    groups: dict[Combination, list[Sample]] = {}
    for sample in samples:
        if sample.cells <= cells:
            groups.setdefault(sample.combination(rule), []).append(sample)
    ordered = _alternating(sorted(groups.values(), key=lambda group: _priority(group[0])))
    picked = [max(group, key=_extent) for group in ordered[:count]]
    if len(picked) < min(count, LEAST):
        rest = [sample for group in ordered for sample in group if sample not in picked]
        rest.sort(key=lambda sample: sample.cells == 1, reverse=True)
        picked += rest[:1] + sorted(rest[1:], key=_extent, reverse=True)[: LEAST - len(picked) - 1]
    return tuple(picked[:count])


def _alternating(groups: Sequence[list[Sample]]) -> list[list[Sample]]:
    """Groups of the fewest dtypes and the others, in turns."""
    least = min((len(group[0].dtypes) for group in groups), default=0)
    few = [group for group in groups if len(group[0].dtypes) == least]
    mixed = [group for group in groups if len(group[0].dtypes) > least]
    pairs = zip_longest(few, mixed)
    return [group for pair in pairs for group in pair if group is not None]


def _extent(sample: Sample) -> tuple[int, int]:
    """In how many dimensions the tensors extend, and how far."""
    specs = sample.situation.specs.values()
    return sum(size > 1 for spec in specs for size in spec.shape), sample.cells


def _priority(sample: Sample) -> tuple[int, int]:
    """float32 and one integer type first; few dtypes together before many."""
    rank = {"f32": 0, "i32": 1, "i1": 1, "i8": 2, "f16": 3, "f64": 3}
    least = min(rank.get(dtype, 4) for dtype in sample.dtypes)
    return len(sample.dtypes), least
