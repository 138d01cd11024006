"""Applies templates: `expand` executes one symbolically over shapes, dtypes and parameters.

The rules of the language are checked here: names bound twice are equal, requirements hold,
selections are inside their tensors, and the outputs are tiled exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tapestry.metakernels.bodies import Body
from tapestry.metakernels.composition import Resolver, expand_steps
from tapestry.metakernels.domains import domain_of, row_forms
from tapestry.metakernels.dtypes import allowed, evaluate_dtype, promote
from tapestry.metakernels.errors import (
    DomainError,
    DtypeMismatchError,
    IndexOutOfRangeError,
    KindMismatchError,
    NotTiledError,
    OperandError,
    RequirementError,
    SizeMismatchError,
    UnknownNameError,
)
from tapestry.metakernels.evaluation import Scope, evaluate, evaluate_list
from tapestry.metakernels.expansion import (
    Expansion,
    MapFold,
    Move,
    Opaque,
    Reshape,
    Space,
    Tensor,
    TensorSpec,
)
from tapestry.metakernels.kernels import type_bodies
from tapestry.metakernels.matching import Bindings, Matcher, underdetermined
from tapestry.metakernels.parameters import bind_parameters
from tapestry.metakernels.projections import build_projection
from tapestry.metakernels.scalars import Cell, Constant
from tapestry.metakernels.spaces import build_space
from tapestry.metakernels.syntax import variables
from tapestry.metakernels.templates import Input, Output, Template
from tapestry.metakernels.values import Affine, Value, describe, integer, integers
from tapestry.zspace import Domain, Point, Projection, Range


def expand(
    template: Template,
    tensors: Sequence[TensorSpec],
    parameters: Mapping[str, object],
    library: Resolver,
    *,
    nesting: tuple[str, ...] = (),
) -> Expansion:
    """What `template` computes for inputs of these shapes and dtypes.

    `parameters` are Python values (int, float, bool, str for enums and dtypes, sequences of int);
    `library` finds the templates of `steps`. Raises a WeftError that names the rule and the place
    in the template.
    """
    return _Application(template, tensors, library, nesting).expand(parameters)


class _Application:
    def __init__(
        self,
        template: Template,
        tensors: Sequence[TensorSpec],
        library: Resolver,
        nesting: tuple[str, ...],
    ) -> None:
        if len(tensors) != len(template.inputs):
            names = ", ".join(entry.name for entry in template.inputs)
            raise OperandError(
                f"{template.name} takes {len(template.inputs)} operands ({names}), "
                f"and {len(tensors)} are given",
                location=template.location,
            )
        self.template = template
        self.library = library
        self.nesting = nesting
        self.inputs = tuple(
            Tensor(entry.name, spec) for entry, spec in zip(template.inputs, tensors, strict=True)
        )
        self.bindings = Bindings()

    @property
    def names(self) -> dict[str, Value]:
        return self.bindings.values

    def expand(self, parameters: Mapping[str, object]) -> Expansion:
        ranks = {tensor.name: len(tensor.spec.shape) for tensor in self.inputs}
        for name, value in bind_parameters(self.template.parameters, parameters, ranks).items():
            self.bindings.bind(name, value, f"the parameter {name}")
        self._bind_dtypes()
        self._match()
        self._require()
        if self.template.steps:
            return self._composite()
        if self.template.view is not None:
            return self._reshape()
        return self._kernel()

    def _bind_dtypes(self) -> None:
        for entry, tensor in zip(self.template.inputs, self.inputs, strict=True):
            dtype, binding = tensor.spec.dtype, entry.dtype.tree
            with entry.dtype.explain(f"inputs.{entry.name}.dtype"):
                fitting = allowed(binding.constraint)
                if dtype not in fitting:
                    raise DtypeMismatchError(
                        f"{entry.name} has dtype {dtype}",
                        hint=f"dtypes that fit: {', '.join(fitting)}",
                    )
                if binding.name is None:
                    continue
                known = self.names.get(binding.name, dtype)
                if known != dtype:
                    raise DtypeMismatchError(
                        f"${binding.name} is {dtype} in {entry.name} and {describe(known)} before",
                        hint="convert one of the operands with @cast",
                    )
                self.bindings.bind(binding.name, dtype, entry.name)

    def _match(self) -> None:
        """Solve all patterns and lets together, to a fixpoint."""
        pending = [
            (Matcher(entry.shape.tree, tensor.spec.shape, entry.name, self.bindings), entry)
            for entry, tensor in zip(self.template.inputs, self.inputs, strict=True)
        ]
        matchers = list(pending)
        lets = list(self.template.lets)
        moved = True
        while moved and (pending or lets):
            moved = False
            for matcher, entry in tuple(pending):
                with entry.shape.explain(f"inputs.{entry.name}.shape"):
                    if matcher.advance():
                        pending.remove((matcher, entry))
                        moved = True
            for let in tuple(lets):
                name, source = let
                if self.bindings.knows(source.tree):
                    with source.explain(f"let {name}"):
                        self.bindings.bind(name, evaluate(source.tree, self._scope()), "let")
                    lets.remove(let)
                    moved = True
        for matcher, entry in pending:
            with entry.shape.explain(f"inputs.{entry.name}.shape"):
                raise underdetermined(matcher)
        for name, source in lets:
            with source.explain(f"let {name}"):
                evaluate(source.tree, self._scope())
        for matcher, entry in matchers:
            with entry.shape.explain(f"inputs.{entry.name}.shape"):
                matcher.check_computed()

    def _scope(self) -> Scope:
        return self.bindings.scope

    def _require(self) -> None:
        for source in self.template.requirements:
            with source.explain("require"):
                if not integer(evaluate(source.tree, self._scope()), "a requirement"):
                    known = ", ".join(
                        f"${name} = {describe(self.names[name])}"
                        for name in sorted(variables(source.tree))
                    )
                    raise RequirementError(f"it does not hold for {known}")

    def _composite(self) -> Expansion:
        composite, specs = expand_steps(
            self.template, self.inputs, self.names, self.library, self.nesting, expand
        )
        outputs: list[Tensor] = []
        for output, spec in zip(self.template.outputs, specs, strict=True):
            if output.dtype is not None and self._output_dtype(output) != spec.dtype:
                with output.dtype.explain(f"outputs.{output.name}.dtype"):
                    raise DtypeMismatchError(
                        f"the steps give {spec.dtype}", hint="end with a step that casts"
                    )
            if output.shape is not None:
                with output.shape.explain(f"outputs.{output.name}.shape"):
                    shape = integers(evaluate_list(output.shape.tree, self._scope()), "the shape")
                    if shape != spec.shape:
                        raise SizeMismatchError(
                            f"it is {describe(shape)}, and the steps give {describe(spec.shape)}"
                        )
            outputs.append(Tensor(output.name, spec))
        return Expansion(self.template.name, self.inputs, tuple(outputs), None, (), (), composite)

    def _reshape(self) -> Expansion:
        (output,) = self.template.outputs
        assert output.shape is not None
        source = self.inputs[0].spec
        with output.shape.explain(f"outputs.{output.name}.shape"):
            shape = integers(evaluate_list(output.shape.tree, self._scope()), "the shape")
            if min(shape, default=0) < 0 or Range.of(shape).size != Range.of(source.shape).size:
                raise SizeMismatchError(
                    f"{describe(shape)} does not hold the cells of {describe(source.shape)}"
                )
        tensor = Tensor(output.name, TensorSpec(shape, self._moved_dtype(output)))
        return Expansion(self.template.name, self.inputs, (tensor,), None, (), (), Reshape())

    def _kernel(self) -> Expansion:
        space, scope, mapped = build_space(self.template, self.names)
        reads = tuple(self._read(position, space, scope) for position in range(len(self.inputs)))
        outputs: list[Tensor] = []
        writes: list[Projection] = []
        for output in self.template.outputs:
            shape = self._output_shape(output, space)
            outputs.append(Tensor(output.name, TensorSpec(shape, self._output_dtype(output))))
            writes.append(self._write(output, shape, space, mapped))
        fills = tuple(map(self._fill, self.template.inputs, self.inputs))
        expansion = Expansion(
            self.template.name,
            self.inputs,
            tuple(outputs),
            space,
            reads,
            tuple(writes),
            Opaque(),
            fills,
            self._inside(scope),
        )
        body = type_bodies(self.template, expansion, scope, mapped)
        if body is None and len(self.inputs) == 1:
            for output in self.template.outputs:
                self._moved_dtype(output)
        if body is None or all(isinstance(part, Cell) for part in body.wrap):
            body = _movement(expansion) or body or _copy(expansion) or Opaque()
        return replace(expansion, body=body)

    def _fill(self, entry: Input, tensor: Tensor) -> Constant | None:
        if entry.fill is None:
            return None
        with entry.fill.explain(f"inputs.{entry.name}.bounds.clip"):
            body = Body(self._scope(), {})
            return body.constant(entry.fill.tree, tensor.spec.dtype)

    def _inside(self, scope: Scope) -> Domain | None:
        forms: list[Affine] = []
        for row in self.template.domain:
            with row.explain("domain"):
                forms += row_forms(row.tree, scope)
        inside = domain_of(forms, scope.extents)
        if inside is not None and self.template.monoid is None:
            with self.template.domain[0].explain("domain"):
                raise DomainError(
                    "nothing is folded, so every point must be inside",
                    hint="choose a value in wrap: where(condition, value, other)",
                )
        return inside

    def _read(self, position: int, space: Space, scope: Scope) -> Projection:
        entry, tensor = self.template.inputs[position], self.inputs[position]
        shape = tensor.spec.shape
        with entry.projection.explain(f"inputs.{entry.name}.ipf"):
            projection = build_projection(
                entry.projection.tree, scope, inputs=len(space.extents), rank=len(shape)
            )
            if space.size and entry.fill is None:
                box = projection.apply_range(Range.of(space.extents))
                if not Range.of(shape).contains_range(box):
                    raise IndexOutOfRangeError(
                        f"{entry.name} is read at {box}, and it has only {Range.of(shape)}",
                        hint="bounds: {clip: 0} reads 0 outside (rule 8)",
                    )
        return projection

    def _output_shape(self, output: Output, space: Space) -> Point:
        if output.shape is None:
            return space.extents[: space.kept]
        with output.shape.explain(f"outputs.{output.name}.shape"):
            shape = integers(evaluate_list(output.shape.tree, self._scope()), "the shape")
            if min(shape, default=0) < 0:
                raise KindMismatchError(f"the shape {describe(shape)} has a negative size")
        return shape

    def _output_dtype(self, output: Output) -> str:
        if output.dtype is not None:
            with output.dtype.explain(f"outputs.{output.name}.dtype"):
                return evaluate_dtype(output.dtype.tree, self.names)
        if not self.inputs:
            raise UnknownNameError(
                f"template {self.template.name}: the dtype of {output.name} is not given",
                location=self.template.location,
                hint="a template without inputs states it: dtype: f32",
            )
        dtype = self.inputs[0].spec.dtype
        for tensor in self.inputs[1:]:
            dtype = promote(dtype, tensor.spec.dtype)
        return dtype

    def _moved_dtype(self, output: Output) -> str:
        """The dtype of an output whose cells are moved and not computed."""
        dtype, moved = self._output_dtype(output), self.inputs[0].spec.dtype
        if dtype != moved:
            assert output.dtype is not None
            with output.dtype.explain(f"outputs.{output.name}.dtype"):
                raise DtypeMismatchError(
                    f"the cells that are moved are {moved}", hint=f"wrap: cast(..., {dtype})"
                )
        return dtype

    def _write(self, output: Output, shape: Point, space: Space, scope: Scope) -> Projection:
        with output.projection.explain(f"outputs.{output.name}.ipf"):
            projection = build_projection(
                output.projection.tree, scope, inputs=space.kept, rank=len(shape)
            )
            if not projection.tiles(space.kept_range, Range.of(shape)):
                raise NotTiledError(
                    f"the index {describe(space.kept_range.shape)} does not write each cell of "
                    f"{output.name} {describe(shape)} exactly once"
                )
        return projection


def _movement(expansion: Expansion) -> Move | None:
    """The view from result to input cells, when each result cell is one input cell."""
    space = expansion.space
    if space is None or len(expansion.reads) != 1 or len(expansion.writes) != 1:
        return None
    (read,), (write,) = expansion.reads, expansion.writes
    back = write.map.inverse()
    if back is None or space.maps != len(space.extents) or not (read.is_unit and write.is_unit):
        return None
    if expansion.fills[0] is not None:
        return None
    return Move(read.map.compose(back))


def _copy(expansion: Expansion) -> MapFold | None:
    """Data movement that is no view: each point reads one cell, perhaps outside, and writes it."""
    space = expansion.space
    if space is None or len(expansion.reads) != 1 or space.maps != len(space.extents):
        return None
    if not expansion.reads[0].is_unit:
        return None
    tensor = expansion.inputs[0]
    cells = (Cell(tensor.name, tensor.spec.dtype),) * len(expansion.outputs)
    return MapFold(None, (0,), (), cells, None)
