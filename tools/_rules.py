"""`tapestry rules check`: discharge the obligations of rules, and show what was checked.

failed = check_rules("rules.yaml", metakernels=None)
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from tapestry.diagnostics import UsageError
from tapestry.metakernels import WeftError, load_library
from tapestry.metakernels.errors import UnknownNameError
from tapestry.proving.rules import Report, RuleChecker
from tapestry.rewriting import load_rules
from tapestry.rewriting.measure import find_measure
from tapestry.tools._pipelines import require_file
from tapestry.tools._report import table_console


def check_rules(file: str, metakernels: str | None) -> int:
    """Check every rule of a file, print a table and the errors, and return how many failed."""
    library = load_library(() if metakernels is None else (metakernels,))
    if Path(file).suffix:
        require_file(Path(file))
    try:
        rules = load_rules(file, library)
    except UnknownNameError as error:
        if error.location is not None:  # of a name in the file
            raise
        raise UsageError(error.message, hint=error.hint) from None
    measure = find_measure(rules)
    checker = RuleChecker(library)
    table = Table(caption="types, values, certified: at how many places they were shown to stay")
    for heading in ("rule", "ends", "types", "values", "certified", "dtypes", "floats"):
        table.add_column(heading, no_wrap=heading == "rule")
    errors: list[WeftError] = []
    for rule in rules:
        ending = measure.endings[rule.name]
        try:
            table.add_row(rule.name, ending, *_found(checker.check(rule)))
        except WeftError as error:
            errors.append(error)
            table.add_row(rule.name, ending, "refused", "", "")
    table_console().print(table)
    for error in errors:
        Console(stderr=True).print(str(error), highlight=False, markup=False, soft_wrap=True)
    return len(errors)


def _found(report: Report) -> tuple[str, ...]:
    evidence = report.evidence
    return (
        str(report.places),
        str(evidence.compared),
        str(evidence.certified),
        " ".join(evidence.dtypes),
        "the same" if report.rule.exact else "rounded otherwise",
    )
