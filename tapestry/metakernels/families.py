"""Families: the operations that a template with `for` is, and what they make together.

    for: "$k in len($n)"                                      # a member per input ...
    inputs: {tensors: {each: $i, when: "$i == $k", ...}}      # ... which reads that one
    index: "[$pre..., $n[$k], $post...]"
    outputs: {result: {..., ipf: "[...] + [0...{$axis}, sum($n[:$k]), 0...]"}}

Members write disjoint parts of the outputs, and all of them together every cell: that is checked
exactly. A template without `for` is a family of one.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from tapestry.diagnostics import Location
from tapestry.metakernels.errors import (
    FamilyError,
    KindMismatchError,
    LimitError,
    ListLengthError,
    NotTiledError,
    UnsupportedError,
    WeftError,
)
from tapestry.metakernels.evaluation import Scope, evaluate, evaluate_list
from tapestry.metakernels.expansion import Expansion, Family, Member, Part, Tensor, TensorSpec
from tapestry.metakernels.operands import Operand
from tapestry.metakernels.operations import (
    Draft,
    Result,
    Target,
    build_operation,
    build_write,
    draft_operation,
    output_dtype,
    require_tiled,
)
from tapestry.metakernels.picking import group
from tapestry.metakernels.requirements import check_requirements
from tapestry.metakernels.syntax import Expr
from tapestry.metakernels.templates import Output, Template
from tapestry.metakernels.values import MAX_ELEMENTS, Names, count, describe, integers
from tapestry.zspace import Point, Projection, Range, ZSpaceError
from tapestry.zspace.placing import check_placed

MAX_MEMBERS: Final = MAX_ELEMENTS
"""Operations of one family, and tensors of one list of outputs."""


def expand_family(template: Template, operands: Sequence[Operand], names: Names) -> Expansion:
    """The operations of `template`, where `names` are known to all of them."""
    names = {**names, **_counts(template, names)}
    results = tuple(_results(template, names))
    read = group((operand.entry for operand in operands), "inputs")
    written = group((result.entry for result in results), "outputs")
    plans: list[Draft] = []
    for local in _members(template, names):
        with _member(template, local):
            completed = _complete(template, local)
            plans.append(draft_operation(template, read, written, completed))
    return _Family(template, operands, results, plans).expand()


def _members(template: Template, names: Names) -> Iterable[Names]:
    """The names of each member: those of all, and its own numbers."""
    members: list[Names] = [names]
    for source in template.family:
        with source.explain("for"):
            extents = [_extent(source.tree.extent, local, "members") for local in members]
            if sum(extents) > MAX_MEMBERS:
                raise LimitError(
                    f"a family of {sum(extents)} members is more than {MAX_MEMBERS}",
                    hint="let one member cover more of the index",
                )
        variable = source.tree.variable
        members = [
            {**local, variable: number}
            for local, extent in zip(members, extents, strict=True)
            for number in range(extent)
        ]
    return members


def _extent(expr: Expr, names: Names, what: str) -> int:
    value = count(evaluate(expr, Scope(names)), f"the number of {what}")
    if value < 0:
        raise FamilyError(f"there would be {value} {what}")
    return value


def _complete(template: Template, names: Names) -> Names:
    """The names of a member with the lets that depend on its numbers; its requirements hold."""
    known = dict(names)
    for name, source in template.member_lets:
        with source.explain(f"let {name}"):
            known[name] = evaluate(source.tree, Scope(known))
    check_requirements(template.member_requirements, known)
    return known


@contextmanager
def _member(template: Template, names: Names) -> Generator[None]:
    """Errors raised inside say which member they are about."""
    try:
        yield
    except WeftError as error:
        if not template.family:
            raise
        numbers = (source.tree.variable for source in template.family)
        which = ", ".join(f"${number} = {describe(names[number])}" for number in numbers)
        raise error.within(f"member {which}", template.family[0].text.location) from None


def _counts(template: Template, names: Names) -> Names:
    """The positions of each list of outputs, by the name that its entry gives them."""
    found: dict[str, tuple[int, ...]] = {}
    for output in template.outputs:
        if output.each is None or output.count is None:
            continue
        with output.count.explain(f"outputs.{output.name}.count"):
            count = _extent(output.count.tree, names, f"tensors in {output.name}")
            if count > MAX_MEMBERS:
                raise LimitError(f"a list of {count} outputs is more than {MAX_MEMBERS}")
            known = found.get(output.each, names.get(output.each))
            if isinstance(known, tuple) and len(known) != count:
                raise ListLengthError(
                    f"it has {count} tensors, and #{output.each} is {len(known)}",
                    hint="lists that share the name of their position have the same length",
                )
            found[output.each] = tuple(range(count))
    return found


def _results(template: Template, names: Names) -> Iterator[Result]:
    for output in template.outputs:
        if output.each is None:
            yield Result(output, None, names)
            continue
        positions = names[output.each]
        assert isinstance(positions, tuple)
        for position in range(len(positions)):
            yield Result(output, position, {**names, output.each: position})


@dataclass(frozen=True, slots=True)
class _Family:
    template: Template
    operands: Sequence[Operand]
    results: Sequence[Result]
    plans: Sequence[Draft]

    def expand(self) -> Expansion:
        tensors: list[Tensor] = []
        parts: list[dict[int, tuple[Part, Target]]] = [{} for _ in self.plans]
        writers: list[list[int]] = [[] for _ in self.results]
        for position, plan in enumerate(self.plans):
            for number in plan.results:
                writers[number].append(position)
        for number, result in enumerate(self.results):
            tensor, written = self._result(number, result, writers[number])
            tensors.append(tensor)
            for plan, part in written.items():
                parts[plan][number] = part
        members = [
            self._operation(plan, wanted)
            for plan, wanted in zip(self.plans, parts, strict=True)
            if wanted
        ]
        inputs = tuple(operand.tensor for operand in self.operands)
        if len(members) == 1 and members[0].covers(len(inputs), len(tensors)):
            return members[0].expansion
        body = Family(tuple(members))
        return Expansion(self.template.name, inputs, tuple(tensors), None, (), (), body)

    def _operation(self, plan: Draft, wanted: dict[int, tuple[Part, Target]]) -> Member:
        plan = replace(plan, results=tuple(wanted))
        targets = [target for _, target in wanted.values()]
        with _member(self.template, plan.names):
            expansion = build_operation(self.template, self.operands, self.results, plan, targets)
        return Member(expansion, plan.operands, tuple(part for part, _ in wanted.values()))

    def _result(
        self, number: int, result: Result, writers: Sequence[int]
    ) -> tuple[Tensor, dict[int, tuple[Part, Target]]]:
        """The tensor of a result, and what each member that writes to it does."""
        output = result.entry
        dtype = output_dtype(self.template, output, self.operands, result.names)
        tensor = Tensor(output.name, TensorSpec((), dtype), result.position)
        if not writers:
            raise FamilyError(
                f"no member writes {tensor.title}",
                location=self._place(output),
                hint="`for` must have a member that writes it, an empty part perhaps",
            )
        live = writers
        if len(writers) > 1:
            live = [n for n in writers if self.plans[n].space.kept_range.size] or writers[:1]
        shape = self._shape(result, live, tensor)
        tensor = replace(tensor, spec=replace(tensor.spec, shape=shape))
        writes = {n: self._write(result, shape, n) for n in live}
        if len(live) == 1:
            (only,) = live
            require_tiled(result, shape, self.plans[only], writes[only])
            return tensor, {only: (Part(number, None), Target(tensor, writes[only]))}
        self._check_tiled(result, tensor, writes)
        return tensor, {
            n: (
                Part(number, write.map),
                Target(
                    replace(tensor, spec=replace(tensor.spec, shape=self.plans[n].written)),
                    Projection.identity(self.plans[n].space.kept),
                ),
            )
            for n, write in writes.items()
        }

    def _place(self, output: Output) -> Location:
        return self.template.document.at("outputs", output.name).location

    def _shape(self, result: Result, live: Sequence[int], tensor: Tensor) -> Point:
        source = result.entry.shape
        if source is None:
            if len(live) > 1:
                raise FamilyError(
                    f"{len(live)} members write {tensor.title}, so its shape must be given",
                    location=self._place(result.entry),
                    hint='for example shape: "[$pre..., sum($n), $post...]"',
                )
            return self.plans[live[0]].written
        with source.explain(f"outputs.{result.entry.name}.shape"):
            shape = integers(evaluate_list(source.tree, Scope(result.names)), "the shape")
            if any(size < 0 for size in shape):
                raise KindMismatchError(f"the shape {describe(shape)} has a negative size")
        return shape

    def _write(self, result: Result, shape: Point, plan: int) -> Projection:
        with _member(self.template, self.plans[plan].names):
            return build_write(result, shape, self.plans[plan])

    def _check_tiled(self, result: Result, tensor: Tensor, writes: dict[int, Projection]) -> None:
        with result.entry.projection.explain(f"outputs.{result.entry.name}.ipf"):
            if not all(write.is_unit for write in writes.values()):
                raise UnsupportedError(
                    "members of a family write boxes (`:>`), which is not supported yet"
                )
            placed = [(write.map, self.plans[n].space.kept_range) for n, write in writes.items()]
            try:
                check_placed(placed, Range.of(tensor.spec.shape))
            except ZSpaceError as error:
                raise NotTiledError(
                    f"the members do not write each cell of {tensor.title} "
                    f"{describe(tensor.spec.shape)} exactly once: {error}"
                ) from None
