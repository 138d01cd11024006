"""`weft-substitute{rules=FILE}`: rewrites applications of metakernels by rules.

Input: `weft.apply` on tensors. Output: the same, some replaced as the rules of FILE say. FILE may
be the name of rules that come with Tapestry (`identities`).

    %z = weft.apply @linear(%x, %w, %b)

becomes, by `rules=linear`,

    %z_z = weft.apply @matmul(%x, %w)
    %z = weft.apply @add(%z_z, %b)

A rule is used only when it keeps types and values (`tapestry rules check FILE` shows what was
checked), and for combinations of dtypes at which values were compared; that is checked when it
first matches, and remembered. Rules that come to an end are applied until nothing matches. Others
are applied in one pass, before those, and not to what they produced. With `exact=true` only rules
are used that give the same floats; `only=a,b` picks rules; `choose="k=4"` fixes choices that rules
leave, which otherwise take their first value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint
from xdsl.traits import Pure

from tapestry.diagnostics import UsageError
from tapestry.dialects import weft
from tapestry.locations import fuse_locations
from tapestry.metakernels import Library, load_library
from tapestry.metakernels.errors import nearest
from tapestry.passes._collection import collection_paused
from tapestry.passes.weft.apply import own_library
from tapestry.passes.weft.rules.matching import Match, RuleMatcher
from tapestry.passes.weft.rules.order import BlockOrder
from tapestry.passes.weft.rules.productions import build_production
from tapestry.rewriting import Rule, load_rules
from tapestry.rewriting.binding import Combination, Expansions
from tapestry.rewriting.measure import find_measure


@dataclass
class ApplyRules(RewritePattern):
    """Replace what a rule matches by what it produces.

    Legal when the rule keeps types and values (the matcher raises where that does not hold), when
    the types are the same at this place, too, and when all that is produced can stand at one place:
    after every tensor that it uses, and before every use of what it replaces. So nothing that it
    uses may be computed from what it replaces.
    """

    matcher: RuleMatcher
    orders: dict[Block, BlockOrder] = field(default_factory=dict[Block, BlockOrder])

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: weft.ApplyOp, rewriter: PatternRewriter) -> None:
        for match in self.matcher.matches(op):
            place = self._place(match)
            if place is not None:
                _replace(match, place, rewriter)
                return

    def _place(self, match: Match) -> Operation | None:
        """The operation before which what is produced can stand."""
        replaced = match.replaced
        if len(set(replaced)) < len(replaced):
            return None
        outputs = {match.values[name] for name in match.rule.outputs}
        if any(match.values[name] in outputs for name in match.rule.used):
            return None  # what is produced would be made of itself
        used = [
            value.owner
            for name in match.rule.used
            if isinstance((value := match.values[name]), OpResult)
        ]
        first, last = self._ends(replaced)
        if all(owner is not first and self._is_before(owner, first) for owner in used):
            return first
        users = {use.operation for op in replaced for result in op.results for use in result.uses}
        users -= {last}
        fits = all(self._is_before(last, user) for user in users)
        fits = fits and all(owner is not last and self._is_before(owner, last) for owner in used)
        return last if fits else None

    def _ends(self, ops: Sequence[Operation]) -> tuple[Operation, Operation]:
        first = last = ops[0]
        for op in ops[1:]:
            if self._is_before(op, first):
                first = op
            if self._is_before(last, op):
                last = op
        return first, last

    def _is_before(self, one: Operation, other: Operation) -> bool:
        block = other.parent_block()
        assert block is not None
        if one.parent_block() is not block:
            return True
        order = self.orders.get(block)
        if order is None:
            order = self.orders[block] = BlockOrder(block)
        return order.is_before(one, other)


def _replace(match: Match, place: Operation, rewriter: PatternRewriter) -> None:
    location = fuse_locations(*(op.location for op in match.ops.values()))
    made, values = build_production(match.rule, match.production, match.values, location)
    rewriter.insert(made, InsertPoint.before(place))
    for name, value in values.items():
        rewriter.replace_all_uses_with(match.values[name], value)
    for op in match.replaced:
        _erase_unused(op, rewriter)


def _erase_unused(op: Operation, rewriter: PatternRewriter) -> None:
    """Erase `op`, and what only it used."""
    waiting = [op]
    while waiting:
        op = waiting.pop()
        if any(result.uses for result in op.results) or not op.has_trait(Pure):
            continue
        makers = {value.owner for value in op.operands if isinstance(value, OpResult)}
        rewriter.erase(op)
        waiting += makers


def substitute(
    module: ModuleOp,
    rules: Sequence[Rule],
    library: Library,
    admits: Callable[[Rule, Combination], bool],
    chosen: Mapping[str, int],
) -> None:
    """Apply rules to `module`: in one pass those that may not end, then the others to the end."""
    endings = find_measure(rules).endings
    once = [rule for rule in rules if endings[rule.name] == "one pass"]
    ending = [rule for rule in rules if endings[rule.name] != "one pass"]
    expansions = Expansions(library)
    with collection_paused():
        for group, recursively in ((once, False), (ending, True)):
            if group:
                pattern = ApplyRules(RuleMatcher(group, expansions, admits, chosen))
                walker = PatternRewriteWalker(pattern, apply_recursively=recursively)
                walker.rewrite_module(module)


@dataclass(frozen=True)
class WeftSubstitute(ModulePass):
    """Apply the rules of a file; `metakernels` is a folder of templates beside the library's."""

    name = "weft-substitute"

    rules: str
    metakernels: str | None = None
    only: tuple[str, ...] = ()
    exact: bool = False
    choose: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # The one thing a pass asks of what runs programs: whether a rule may be used at all.
        from tapestry.proving.rules import RuleChecker

        library, rules = self.loaded(op)
        checker = RuleChecker(library)
        substitute(op, rules, library, checker.admits, parse_choices(self.choose))

    def loaded(self, module: ModuleOp) -> tuple[Library, list[Rule]]:
        """The metakernels that the module is rewritten with, and the rules that are picked."""
        folders = () if self.metakernels is None else (self.metakernels,)
        library = own_library(module, load_library(folders))
        return library, picked_rules(load_rules(self.rules, library), self.only, exact=self.exact)


def picked_rules(rules: Sequence[Rule], only: Sequence[str], *, exact: bool) -> list[Rule]:
    """The rules of these names (all when there are none); with `exact`, of those the exact ones."""
    known = [rule.name for rule in rules]
    for name in only:
        if name not in known:
            raise UsageError(f"there is no rule {name}", hint=nearest(name, known))
    return [rule for rule in rules if (not only or rule.name in only) and (rule.exact or not exact)]


def parse_choices(text: str) -> dict[str, int]:
    """`k=4 m=2` as a mapping; UsageError for anything else."""
    chosen: dict[str, int] = {}
    for entry in text.split():
        name, equals, value = entry.partition("=")
        if not equals or not value.lstrip("-").isdigit():
            raise UsageError(f"cannot read the choice {entry!r}", hint='choose="k=4 m=2"')
        chosen[name] = int(value)
    return chosen
