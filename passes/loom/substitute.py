"""`loom-substitute{rules=FILE}`: rewrites loom operations by rules over metakernels.

Input: operations as `weft-apply` makes them. Output: the same, some replaced as the rules say.

    %e = loom.operation @e ... { math.exp }            %y = loom.view %x
    %y = loom.operation @y ... { math.log }      ->

by `log_exp` of `rules=identities`. Operations that are exactly what a metakernel of the rules
expands to are read as its applications, `weft-substitute` rewrites those, and what it produces is
expanded again. Operations that no rule touches stay as they are, labels included. What is sharded
or fused, and metakernels that become several operations, are not read: rules over those go before
`weft-apply`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Attribute, Operation, Region
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.attributes import attribute_of
from tapestry.dialects import weft
from tapestry.metakernels import Template
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.weft.apply import ApplyMetakernel
from tapestry.passes.weft.recipes.monoids import Monoids
from tapestry.passes.weft.rules.recognizing import Recognizer
from tapestry.passes.weft.substitute import WeftSubstitute, parse_choices, substitute
from tapestry.rewriting.binding import Expansions


@dataclass(frozen=True)
class Original:
    """An operation that was read as an application: what it was, and which operand went where."""

    kind: type[Operation]
    order: tuple[int, ...]
    properties: Mapping[str, Attribute]
    attributes: Mapping[str, Attribute]
    regions: tuple[Region, ...]
    location: LocationAttr

    def restore(self, application: weft.ApplyOp) -> Operation:
        """The operation again, on what the application is applied to now."""
        operands = list(application.operands)
        for place, value in zip(self.order, application.operands, strict=True):
            operands[place] = value
        made = self.kind.create(
            operands=operands,
            result_types=application.result_types,
            properties=dict(self.properties),
            attributes=dict(self.attributes),
            regions=list(self.regions),
            location=self.location,
        )
        for old, new in zip(application.results, made.results, strict=True):
            new.name_hint = old.name_hint
        return made


@dataclass
class ReadOperation(RewritePattern):
    """Replace an operation by the application of a metakernel that expands to it.

    Legal because it expands to exactly that operation; what it was is kept in `originals`. Members
    of a group stay: the group says where each of them is.
    """

    recognizer: Recognizer
    originals: dict[Operation, Original] = field(default_factory=dict[Operation, Original])

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        reading = None if in_group(op) else self.recognizer.read(op)
        if reading is None:
            return
        operands = [op.operands[place] for place in reading.order]
        parameters = {name: attribute_of(value) for name, value in reading.parameters.items()}
        made = weft.ApplyOp(reading.template.name, operands, op.result_types, parameters)
        made.location = op.location
        for old, new in zip(op.results, made.results, strict=True):
            new.name_hint = old.name_hint
        self.originals[made] = Original(
            type(op),
            reading.order,
            dict(op.properties),
            dict(op.attributes),
            tuple(op.detach_region(region) for region in tuple(op.regions)),
            op.location,
        )
        rewriter.replace(op, made)


@dataclass
class RestoreOperation(RewritePattern):
    """Replace an application that was read by its operation, any other by what it expands to.

    Legal where `weft-apply` is; a restored operation is what the application expands to.
    """

    originals: Mapping[Operation, Original]
    expand: ApplyMetakernel

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: weft.ApplyOp, rewriter: PatternRewriter) -> None:
        original = self.originals.get(op)
        if original is None:
            self.expand.match_and_rewrite(op, rewriter)
        else:
            rewriter.replace(op, original.restore(op))


@dataclass(frozen=True)
class LoomSubstitute(WeftSubstitute):
    """Apply the rules of a file to loom operations; options as for `weft-substitute`."""

    name = "loom-substitute"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # What runs programs says whether a rule may be used at all (see `weft-substitute`).
        from tapestry.proving.rules import RuleChecker

        library, rules = self.loaded(op)
        templates: dict[Template, None] = {}
        for rule in rules:
            templates.update(dict.fromkeys(entry.template for entry in rule.matched))
        read = ReadOperation(Recognizer(list(templates), Expansions(library), Monoids.of(op)))
        PatternRewriteWalker(read, apply_recursively=False).rewrite_module(op)
        admits = RuleChecker(library).admits
        substitute(op, rules, library, admits, parse_choices(self.choose))
        monoids = Monoids.of(op)
        restore = RestoreOperation(read.originals, ApplyMetakernel(library, monoids))
        PatternRewriteWalker(restore, apply_recursively=False).rewrite_module(op)
        monoids.insert(op)
