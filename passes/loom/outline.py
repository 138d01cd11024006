"""`loom-outline`: what repeats becomes a function; `loom-inline`: calls become what they call.

    %h0 = weft.apply @linear(%x, %w0, %b0)       %y0 = weft.apply @gelu(%h0)
    %h1 = weft.apply @linear(%y0, %w1, %b1)      %y1 = weft.apply @gelu(%h1)

becomes

    func.func private @repeated(%x, %w, %b) { %h = ... @linear ...  %y = ... @gelu ...  return %y }
    %y0 = func.call @repeated(%x, %w0, %b0)      %y1 = func.call @repeated(%y0, %w1, %b1)

so every pass in between rewrites the layer once, however many there are of it:

    loom-outline,default,loom-shard{shards=8},loom-inline,loom-propagate

Input: any verified program; runs of equal operations are found by what they compute
(`tapestry.repeats`). Output: the same values. What no call repeats stays; nothing is joined across
the ends of a layer, which are where the fewest bytes pass. Inlined, all copies have the places in
files of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from tapestry.diagnostics import InvalidProgramError
from tapestry.locations import location_of
from tapestry.passes._collection import collection_paused
from tapestry.repeats import Segment, inputs, repeats


@dataclass
class OutlineRepeats(RewritePattern):
    """A function for each run of equal segments of a function, called for each of them.

    Legal because equal segments differ only in what they read from outside, which the calls pass;
    what of a segment is read outside of it is returned. A segment's operations stand together, so
    what it reads is there where it is called.
    """

    names: set[str] = field(default_factory=set[str])

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: func.FuncOp, rewriter: PatternRewriter) -> None:
        if op.is_declaration or len(op.body.blocks) != 1:
            return
        for run in repeats(op.body.block):
            returned = _read_outside(run)
            function = self._function(run[0], returned)
            rewriter.insert(function, InsertPoint.after(op))
            for segment in run:
                _call(function, segment, returned, rewriter)

    def _function(self, segment: Segment, returned: Sequence[tuple[int, int]]) -> func.FuncOp:
        number, name = 1, "repeated"
        while name in self.names:
            name, number = f"repeated_{number}", number + 1
        self.names.add(name)
        taken = inputs(segment)
        block = Block(arg_types=[value.type for value in taken])
        values: dict[SSAValue, SSAValue] = dict(zip(taken, block.args, strict=True))
        for value, argument in zip(taken, block.args, strict=True):
            argument.name_hint = value.name_hint
        copies = [op.clone(value_mapper=values) for op in segment]
        results = [copies[place].results[index] for place, index in returned]
        block.add_ops([*copies, func.ReturnOp(*results)])
        kinds = ([v.type for v in taken], [v.type for v in results])
        function = func.FuncOp(name, kinds, Region(block), visibility="private")
        function.location = segment[0].location
        return function


def _read_outside(run: Sequence[Segment]) -> list[tuple[int, int]]:
    """Which results of a segment are read outside of it, for one segment of a run at least."""
    found: set[tuple[int, int]] = set()
    for segment in run:
        inside = set(segment)
        found |= {
            (place, result.index)
            for place, op in enumerate(segment)
            for result in op.results
            if any(use.operation not in inside for use in result.uses)
        }
    return sorted(found)


def _call(
    function: func.FuncOp,
    segment: Segment,
    returned: Sequence[tuple[int, int]],
    rewriter: PatternRewriter,
) -> None:
    results = [segment[place].results[index] for place, index in returned]
    call = func.CallOp(function.sym_name.data, inputs(segment), [result.type for result in results])
    call.location = segment[0].location
    rewriter.insert(call, InsertPoint.before(segment[0]))
    for old, new in zip(results, call.results, strict=True):
        new.name_hint = old.name_hint
        rewriter.replace_all_uses_with(old, new)
    for op in reversed(segment):
        rewriter.erase(op)


@dataclass
class InlineCall(RewritePattern):
    """A call becomes the operations of the function that it calls.

    Legal where the function has one block, which ends by returning what the call stands for, and
    calls no function that calls it.
    """

    functions: dict[str, func.FuncOp]
    inlined: set[str] = field(default_factory=set[str])

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: func.CallOp, rewriter: PatternRewriter) -> None:
        name = op.callee.root_reference.data
        function = self.functions.get(name)
        if function is None or function.is_declaration or len(function.body.blocks) != 1:
            return
        block = function.body.block
        values: dict[SSAValue, SSAValue] = dict(zip(block.args, op.arguments, strict=True))
        last = block.last_op
        assert last is not None, "a verified function returns"
        copies = [inner.clone(value_mapper=values) for inner in block.ops if inner is not last]
        results = [values[value] for value in last.operands]
        for old, new in zip(op.results, results, strict=True):
            new.name_hint = old.name_hint or new.name_hint
        rewriter.replace(op, copies, results)
        self.inlined.add(name)


@dataclass(frozen=True)
class LoomOutline(ModulePass):
    """Make functions of what repeats."""

    name = "loom-outline"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        names = {one.sym_name.data for one in op.body.block.ops if isinstance(one, func.FuncOp)}
        with collection_paused():
            PatternRewriteWalker(OutlineRepeats(names), apply_recursively=False).rewrite_module(op)


@dataclass(frozen=True)
class LoomInline(ModulePass):
    """Put what functions do where they are called; private ones that nothing calls then go."""

    name = "loom-inline"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {
            one.sym_name.data: one for one in op.body.block.ops if isinstance(one, func.FuncOp)
        }
        _check_ends(functions)
        pattern = InlineCall(functions)
        with collection_paused():
            PatternRewriteWalker(pattern).rewrite_module(op)
        for name in pattern.inlined:
            function = functions[name]
            if function.sym_visibility is not None and function.sym_visibility.data == "private":
                function.detach()
                function.erase()


def inlined(module: ModuleOp) -> ModuleOp:
    """The module with all calls inlined: itself where it has none, otherwise a copy."""
    if not any(isinstance(op, func.CallOp) for op in module.walk()):
        return module
    copy = module.clone()
    LoomInline().apply(Context(), copy)
    return copy


def _check_ends(functions: dict[str, func.FuncOp]) -> None:
    """Refuse functions that call themselves, through others or not."""
    state: dict[str, bool] = {}

    def visit(name: str, op: Operation) -> None:
        if state.get(name) is False:
            raise InvalidProgramError(
                f"@{name} calls itself, so it cannot be inlined", location=location_of(op)
            )
        if name in state or name not in functions:
            return
        state[name] = False
        for inner in functions[name].walk():
            if isinstance(inner, func.CallOp):
                visit(inner.callee.root_reference.data, inner)
        state[name] = True

    for name, function in functions.items():
        visit(name, function)
