"""Verification of whole modules: every broken rule, not the first alone.

    issues = find_issues(module)
    for issue in issues:
        print(issue)            # model.mlir:7:3: error: @y: input 0 reads ...

A right module costs one run of xDSL's verifier, which stops at the first violation. Only a wrong
one is walked again, operation by operation, to collect all that is wrong with each.

The rules of an operation assume that its body and its own structure (operands, results, regions and
properties of the declared number and type) are right, so they are left out where those are not.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, VerificationContext
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import DiagnosticException, VerifyException

from tapestry.dialects._checked import CheckedOperation
from tapestry.dialects._dominance import DefinedBeforeUse
from tapestry.issues import BrokenRulesError, Issue, Problem, Violations, issue_of
from tapestry.locations import location_of
from tapestry.zspace import ZSpaceError

UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, AssertionError)
"""What reading an operation raises where one around it is not what it declares."""


def check_module(module: ModuleOp) -> None:
    """Raise BrokenRulesError with every issue of a module, if it has any."""
    try:
        module.verify()
    except (DiagnosticException, ZSpaceError, *UNREADABLE) as error:
        issues = find_issues(module)
        if not issues:
            raise
        raise BrokenRulesError(issues) from error


def find_issues(module: ModuleOp) -> list[Issue]:
    """Every rule of every dialect that a module breaks, in the order of the source."""
    issues: list[Issue] = []
    unsound: set[Operation] = set()
    for op in _inside_out(module):
        try:
            problems = _problems(op, unsound)
        except UNREADABLE:
            # An operation around it is wrong, and says so; if none is, `check_module` fails.
            unsound.update((op, op.parent_op() or op))
            continue
        subject = ""
        if isinstance(op, CheckedOperation):
            subject = op.name if op in unsound else op.subject
        for problem in problems:
            place = location_of(problem.at or op) or location_of(op)
            issues.append(issue_of(problem, subject, op.name, place))
    # Issues without a place come last; those of one operation stay in the order of its rules.
    return sorted(issues, key=lambda i: (i.location is None, i.location and _position(i)))


def _position(issue: Issue) -> tuple[str, int, int]:
    assert issue.location is not None
    return issue.location.file, issue.location.line, issue.location.column


def _inside_out(op: Operation) -> Iterator[Operation]:
    """Every operation below `op`, those of a body before their owner, and `op` itself."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield from _inside_out(inner)
    yield op


def _problems(op: Operation, unsound: set[Operation]) -> list[Problem]:
    problems = _structure(op)
    if problems:
        unsound.add(op)
    if (problems or op in unsound) and (parent := op.parent_op()) is not None:
        unsound.add(parent)
    for trait in op.get_traits_of_type(DefinedBeforeUse):
        problems += trait.problems(op)
    if isinstance(op, CheckedOperation) and op not in unsound:
        problems += op.problems()
    return problems


def _structure(op: Operation) -> list[Problem]:
    """What xDSL checks by itself, and what other dialects do; the first violation of each."""
    found: Exception | None = None
    try:
        op.verify_()
        op.verify(verify_nested_ops=False)
    except Violations as error:
        if not isinstance(op, CheckedOperation):
            return list(error.problems)
    except (DiagnosticException, ZSpaceError) as error:
        found = error
    if found is not None:
        twice = _defined_twice(op)
        if twice is not None:
            return [twice]
        name = _wrong_property(op)
        message = f"property '{name}': {found}" if name else str(found)
        return [Problem("structure", message)]
    if not op.has_trait(NoTerminator) and any(
        len(region.blocks) == 1 and region.block.is_empty for region in op.regions
    ):
        return [Problem("structure", f"a body of {op.name} is empty; it has to end")]
    return []


def _defined_twice(op: Operation) -> Problem | None:
    """The second of two symbols of one name in the same table."""
    known: dict[str, Operation] = {}
    for inner in (one for region in op.regions for block in region.blocks for one in block.ops):
        symbol = inner.get_attr_or_prop("sym_name")
        if not isinstance(symbol, StringAttr):
            continue
        first = known.setdefault(symbol.data, inner)
        if first is not inner:
            place = location_of(first)
            where = "" if place is None else f", at {place} before"
            message = f"@{symbol.data} is defined twice{where}"
            return Problem("structure", message, at=inner)
    return None


def _wrong_property(op: Operation) -> str | None:
    """The property whose value is not what the definition of `op` declares, if one is."""
    if not isinstance(op, IRDLOperation):
        return None
    for name, declared in op.get_irdl_definition().properties.items():
        value = op.properties.get(name)
        try:
            if value is not None:
                declared.constr.verify(value, VerificationContext())
        except VerifyException:
            return name
    return None
