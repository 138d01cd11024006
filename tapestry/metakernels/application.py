"""Applies templates: `expand` executes one symbolically over shapes, dtypes and parameters.

The rules of the language are checked here: names bound twice are equal, requirements hold,
selections are inside their tensors, and the outputs are tiled exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tapestry.metakernels.composition import Resolver, expand_steps
from tapestry.metakernels.dtypes import allowed
from tapestry.metakernels.errors import (
    DtypeMismatchError,
    ListLengthError,
    OperandError,
    SizeMismatchError,
)
from tapestry.metakernels.evaluation import Scope, evaluate, evaluate_list
from tapestry.metakernels.expansion import (
    Expansion,
    Reshape,
    Tensor,
    TensorSpec,
)
from tapestry.metakernels.families import expand_family
from tapestry.metakernels.matching import Bindings, Matcher, element_names, underdetermined
from tapestry.metakernels.operands import Given, Operand, arrange
from tapestry.metakernels.operations import output_dtype, require_moved
from tapestry.metakernels.parameters import bind_parameters
from tapestry.metakernels.requirements import check_requirements
from tapestry.metakernels.syntax import Expr
from tapestry.metakernels.templates import Output, Source, Template
from tapestry.metakernels.values import Value, describe, integers
from tapestry.zspace import Range


def expand(
    template: Template,
    tensors: Sequence[Given],
    parameters: Mapping[str, object],
    library: Resolver,
    *,
    nesting: tuple[str, ...] = (),
) -> Expansion:
    """What `template` computes for inputs of these shapes and dtypes.

    `tensors` has a TensorSpec per input, a list of them for a list, None for an optional one that
    is left out. `parameters` are Python values (int, float, bool, str for enums and dtypes,
    sequences of int); `library` finds the templates of `steps`. Raises a WeftError that names the
    rule and the place in the template.
    """
    return _Application(template, tensors, library, nesting).expand(parameters)


def _matcher(operand: Operand, bindings: Bindings) -> Matcher:
    tensor = operand.tensor
    return Matcher(
        operand.entry.shape.tree, tensor.spec.shape, tensor.title, bindings, operand.place
    )


class _Application:
    def __init__(
        self,
        template: Template,
        given: Sequence[Given],
        library: Resolver,
        nesting: tuple[str, ...],
    ) -> None:
        self.template = template
        self.library = library
        self.nesting = nesting
        self.operands = arrange(template, given)
        self.inputs = tuple(operand.tensor for operand in self.operands)
        self.bindings = Bindings()

    @property
    def names(self) -> dict[str, Value]:
        return self.bindings.values

    def expand(self, parameters: Mapping[str, object]) -> Expansion:
        ranks = {tensor.name: len(tensor.spec.shape) for tensor in reversed(self.inputs)}
        for parameter in self.template.parameters:
            if parameter.axis_of is not None and parameter.axis_of not in ranks:
                raise OperandError(
                    f"{parameter.name} is an axis of {parameter.axis_of}, of which there is none",
                    location=self.template.location,
                )
        for name, value in bind_parameters(self.template.parameters, parameters, ranks).items():
            self.bindings.bind(name, value, f"the parameter {name}")
        self._bind_positions()
        self._bind_dtypes()
        self._match()
        if self.template.steps:
            return self._composite()
        if self.template.view is not None:
            return self._reshape()
        return expand_family(self.template, self.operands, self.names)

    def _bind_positions(self) -> None:
        """`$i` outside the entry of its list is the list of positions, so `#i` counts them."""
        for entry in self.template.inputs:
            if entry.counted is None:
                continue
            count = sum(operand.entry is entry for operand in self.operands)
            known = self.names.get(entry.counted)
            if isinstance(known, tuple) and len(known) != count:
                raise ListLengthError(
                    f"{entry.name} has {count} tensors, and #{entry.counted} is {len(known)}",
                    location=self.template.location,
                    hint="lists that share the name of their position have the same length",
                )
            self.bindings.bind(entry.counted, tuple(range(count)), entry.name)
            if entry.each is not None and count == 0:
                for name in element_names(entry.shape.tree):
                    self.bindings.bind(name, (), entry.name)

    def _bind_dtypes(self) -> None:
        for operand in self.operands:
            entry, tensor = operand.entry, operand.tensor
            dtype, binding = tensor.spec.dtype, entry.dtype.tree
            with entry.dtype.explain(f"inputs.{entry.name}.dtype"):
                fitting = allowed(binding.constraint)
                if dtype not in fitting:
                    raise DtypeMismatchError(
                        f"{tensor.title} has dtype {dtype}",
                        hint=f"dtypes that fit: {', '.join(fitting)}",
                    )
                if binding.name is None:
                    continue
                known = self.names.get(binding.name, dtype)
                if known != dtype:
                    raise DtypeMismatchError(
                        f"${binding.name} is {dtype} in {tensor.title}, {describe(known)} before",
                        hint="convert one of the operands with @cast",
                    )
                self.bindings.bind(binding.name, dtype, entry.name)

    def _match(self) -> None:
        """Solve all patterns and lets together, to a fixpoint."""
        pending = [(_matcher(operand, self.bindings), operand.entry) for operand in self.operands]
        matchers = list(pending)
        local = self.template.member_names
        lets = [(name, source) for name, source in self.template.lets if name not in local]
        member = self.template.member_requirements
        required = [source for source in self.template.requirements if source not in member]
        moved = True
        while moved and (pending or lets):
            moved = False
            for matcher, entry in tuple(pending):
                with entry.shape.explain(f"inputs.{entry.name}.shape"):
                    if matcher.advance():
                        pending.remove((matcher, entry))
                        moved = True
            required = self._require(required)
            for let in tuple(lets):
                name, source = let
                if self.bindings.knows(source.tree):
                    with source.explain(f"let {name}"):
                        self.bindings.bind(name, evaluate(source.tree, self._scope()), "let")
                    lets.remove(let)
                    moved = True
                    required = self._require(required)
        for matcher, entry in pending:
            with entry.shape.explain(f"inputs.{entry.name}.shape"):
                raise underdetermined(matcher)
        for name, source in lets:
            with source.explain(f"let {name}"):
                self.bindings.bind(name, evaluate(source.tree, self._scope()), "let")
        for matcher, entry in matchers:
            with entry.shape.explain(f"inputs.{entry.name}.shape"):
                matcher.check_computed()
        check_requirements(required, self.names)

    def _scope(self) -> Scope:
        return self.bindings.scope

    def _require(self, requirements: Sequence[Source[Expr]]) -> list[Source[Expr]]:
        """The requirements that cannot be checked yet; those that can hold.

        They are checked as early as possible, so that lets may rely on them.
        """
        known = [source for source in requirements if self.bindings.knows(source.tree)]
        check_requirements(known, self.names)
        return [source for source in requirements if source not in known]

    def _dtype(self, output: Output) -> str:
        return output_dtype(self.template, output, self.operands, self.names)

    def _composite(self) -> Expansion:
        composite, outputs = expand_steps(
            self.template, self.inputs, self.names, self.library, self.nesting, expand
        )
        entries = {entry.name: entry for entry in self.template.outputs}
        for tensor in outputs:
            self._check_output(entries[tensor.name], tensor)
        return Expansion(self.template.name, self.inputs, tuple(outputs), None, (), (), composite)

    def _check_output(self, output: Output, tensor: Tensor) -> None:
        """What the steps give is what the output says."""
        position = {} if output.each is None else {output.each: tensor.position or 0}
        names, spec = {**self.names, **position}, tensor.spec
        if output.dtype is not None:
            dtype = output_dtype(self.template, output, self.operands, names)
            with output.dtype.explain(f"outputs.{output.name}.dtype"):
                if dtype != spec.dtype:
                    raise DtypeMismatchError(
                        f"the steps give {spec.dtype}", hint="end with a step that casts"
                    )
        if output.shape is not None:
            with output.shape.explain(f"outputs.{output.name}.shape"):
                shape = integers(evaluate_list(output.shape.tree, Scope(names)), "the shape")
                if shape != spec.shape:
                    raise SizeMismatchError(
                        f"it is {describe(shape)}, and the steps give {describe(spec.shape)}"
                    )

    def _reshape(self) -> Expansion:
        (output,) = self.template.outputs
        assert output.shape is not None
        source = self.inputs[0].spec
        with output.shape.explain(f"outputs.{output.name}.shape"):
            shape = integers(evaluate_list(output.shape.tree, self._scope()), "the shape")
            negative = any(size < 0 for size in shape)
            if negative or Range.of(shape).size != Range.of(source.shape).size:
                raise SizeMismatchError(
                    f"{describe(shape)} does not hold the cells of {describe(source.shape)}"
                )
        tensor = Tensor(output.name, TensorSpec(shape, self._dtype(output)))
        require_moved(output, tensor, self.inputs[0])
        return Expansion(self.template.name, self.inputs, (tensor,), None, (), (), Reshape())
