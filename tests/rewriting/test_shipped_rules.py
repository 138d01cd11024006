"""Every rule that comes with Tapestry keeps types and values, and is reached in its file."""

import pytest

from tapestry.metakernels import load_library
from tapestry.proving.rules import check_values
from tapestry.rewriting import Rule, load_rules
from tapestry.rewriting.binding import Expansions
from tapestry.rewriting.measure import find_measure
from tapestry.rewriting.obligations import check_types
from tapestry.rewriting.reading import RULES

LIBRARY = load_library()
EXPANSIONS = Expansions(LIBRARY)
FILES = {path.stem: load_rules(path.stem, LIBRARY) for path in sorted(RULES.glob("*.yaml"))}
ALL = [rule for rules in FILES.values() for rule in rules]


def test_there_are_many() -> None:
    assert len(ALL) >= 90
    assert len({rule.name for rule in ALL}) == len(ALL)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("rule", ALL, ids=[rule.name for rule in ALL])
def test_rule_is_kept(rule: Rule) -> None:
    samples = check_types(rule, EXPANSIONS, enough=30)
    assert check_values(rule, samples, LIBRARY, places=2).compared == 2


@pytest.mark.slow
@pytest.mark.parametrize("rule", ALL, ids=[rule.name for rule in ALL])
def test_rule_is_kept_at_more_places(rule: Rule) -> None:
    assert check_values(rule, check_types(rule, EXPANSIONS), LIBRARY, places=24).compared >= 6


def test_identities_end() -> None:
    endings = find_measure(FILES["identities"]).endings
    assert [name for name, ending in endings.items() if ending == "one pass"] == ["min_of_neg"]
