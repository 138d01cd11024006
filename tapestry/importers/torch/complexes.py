"""Complex numbers as pairs of real tensors: metakernels have real cells.

    rotated = torch.view_as_complex(pairs) * turns      # rotary positions, as LLaMA has them

    made = complex_results(context, args, kwargs)       # a Complex for each complex result

What moves cells, adds or sums them does so with each part; products and functions are in
`operators.complexes`. Beside externals, and where a program begins and ends, complex tensors are
what they are in PyTorch: `joined`, `parted`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from xdsl.dialects import complex as complex_dialect
from xdsl.dialects.builtin import AnyFloat, ComplexType
from xdsl.ir import Attribute, Operation, SSAValue

from tapestry.algebra.dtypes import is_complex
from tapestry.dialects.loom import TensorType, tensor_type
from tapestry.importers.bodies import Body
from tapestry.importers.building import kind_of
from tapestry.importers.operations import map_operation
from tapestry.importers.torch.registry import Context, ResultKind, Unsupported, find_lowering
from tapestry.importers.torch.results import checked
from tapestry.zspace import Projection


@dataclass(frozen=True)
class Complex:
    """A tensor of complex numbers."""

    real: SSAValue
    imaginary: SSAValue


ComplexLowering = Callable[..., Any]
"""Like a lowering, of operands that may be Complex; the kinds of its results are real."""

_lowerings: dict[str, ComplexLowering] = {}


def complex_lowering(*operators: str) -> Callable[[ComplexLowering], ComplexLowering]:
    """Make a function what operators do beside complex tensors."""

    def decorate(function: ComplexLowering) -> ComplexLowering:
        _lowerings.update(dict.fromkeys(operators, function))
        return function

    return decorate


def by_parts(*operators: str, data: Sequence[int] = (0,)) -> None:
    """Operators that do the same to each part of the operands at the positions `data`."""

    def lower(ctx: Context, *args: Any, **kwargs: Any) -> list[Complex]:
        made = [
            checked(ctx, _real_lowering(ctx)(ctx, *parts, **kwargs))
            for parts in zip(
                *(_parts(ctx, a, at in data) for at, a in enumerate(args)), strict=True
            )
        ]
        pairs = zip(*made, strict=True)
        return [Complex(cast(SSAValue, one), cast(SSAValue, other)) for one, other in pairs]

    complex_lowering(*operators)(lower)


def is_about_complex(context: Context, args: object, kwargs: object) -> bool:
    """Whether an operator takes or gives complex numbers."""
    return (
        any(kind is not None and kind.dtype.startswith("complex") for kind in context.results)
        or _holds_complex(args)
        or _holds_complex(kwargs)
    )


def complex_results(context: Context, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What stands for the results of an operator; Unsupported without a way to compute them."""
    lower = _lowerings.get(context.operator)
    if lower is None:
        raise Unsupported("it has no lowering for complex numbers")
    kinds = tuple(
        None if kind is None else ResultKind(kind.shape, real_dtype(kind.dtype))
        for kind in context.results
    )
    real = replace(context, results=kinds)
    made: Any = lower(real, *args, **kwargs)
    several = isinstance(made, list | tuple)
    results: list[Any] = list(cast("Sequence[Any]", made)) if several else [made]
    if len(results) != len(kinds):
        raise Unsupported(f"of its {len(kinds)} results some are not complex")
    return tuple(
        Complex(*(_as(context, part, kind) for part in (one.real, one.imaginary)))
        if isinstance(one, Complex)
        else _as(context, one, kind)
        for one, kind in zip(results, kinds, strict=True)
    )


def _as(context: Context, value: SSAValue, kind: ResultKind | None) -> SSAValue:
    (made,) = checked(replace(context, results=(kind,)), [value])
    assert made is not None
    return made


def real_dtype(dtype: str) -> str:
    """The dtype of the parts; of a real one, itself."""
    return dtype.removeprefix("complex<").removesuffix(">")


def parts_of(ctx: Context, value: Any) -> Complex:
    """A tensor or a number as a pair."""
    if isinstance(value, Complex):
        return value
    if not isinstance(value, SSAValue):
        raise Unsupported(f"{value} is no tensor")
    real = cast("SSAValue[Attribute]", value)
    return Complex(real, ctx.constant(0, ctx.dtype(real), ctx.shape(real)))


def _parts(ctx: Context, value: Any, data: bool) -> tuple[Any, Any]:
    """What stands for an operand in the real part of a result, and in the imaginary one."""
    match value:
        case Complex():
            return value.real, value.imaginary
        case SSAValue() if data:
            pair = parts_of(ctx, value)
            return pair.real, pair.imaginary
        case bool():
            return value, value
        case int() | float() if data:
            return value, type(value)(0)
        case complex():
            return value.real, value.imag
        case list():
            items = [_parts(ctx, item, data) for item in cast("list[Any]", value)]
            return [one for one, _ in items], [other for _, other in items]
        case _:
            return value, value


def _real_lowering(ctx: Context) -> Callable[..., Any]:
    found = find_lowering(ctx.operator)
    if found is None:
        raise Unsupported("it has no lowering")
    return found


def _holds_complex(value: object) -> bool:
    match value:
        case Complex() | complex():
            return True
        case list() | tuple():
            return any(_holds_complex(item) for item in cast("Sequence[object]", value))
        case dict():
            return any(_holds_complex(item) for item in cast("dict[str, object]", value).values())
        case _:
            return False


def parted(context: Context, value: Any) -> Any:
    """A complex tensor of the program as a pair; anything else as it is."""
    if not isinstance(value, SSAValue):
        return value
    tensor = cast("SSAValue[Attribute]", value)
    kind = tensor_type(tensor).element_type
    if not is_complex(kind):
        return tensor
    real = kind_of(context.shape(tensor), cast("ComplexType[AnyFloat]", kind).element_type)
    return Complex(
        _mapped(context, "real", [tensor], real, complex_dialect.ReOp),
        _mapped(context, "imaginary", [tensor], real, complex_dialect.ImOp),
    )


def joined(context: Context, value: Any) -> Any:
    """A value with complex tensors for the pairs in it."""
    match value:
        case Complex():
            kind = ComplexType(cast(AnyFloat, tensor_type(value.real).element_type))
            result = kind_of(context.shape(value.real), kind)

            def create(real: SSAValue, imaginary: SSAValue) -> Operation:
                return complex_dialect.CreateOp(real, imaginary, kind)

            return _mapped(context, "complex", [value.real, value.imaginary], result, create)
        case list() | tuple():
            return [joined(context, item) for item in cast("Sequence[Any]", value)]
        case dict():
            items = cast("dict[str, Any]", value).items()
            return {key: joined(context, item) for key, item in items}
        case _:
            return value


def _mapped(
    context: Context,
    label: str,
    values: Sequence[SSAValue],
    result: TensorType,
    operation: Callable[..., Operation],
) -> SSAValue:
    """An operation cell by cell."""
    cells: list[Attribute] = [tensor_type(value).element_type for value in values]
    body = Body(cells)
    region = body.region(body.add(operation(*body.arguments)))
    reads = [(value, Projection.identity(result.box.rank)) for value in values]
    made = context.build.insert(map_operation(label, result, reads, region), context.location)
    return made[0]
