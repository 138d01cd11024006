"""What lowerings return, held against what PyTorch says of an operator's results."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tapestry.importers.torch.errors import ImportingError, place_of
from tapestry.importers.torch.registry import Context, Lowered


def checked(context: Context, lowered: Lowered) -> tuple[SSAValue | None, ...]:
    """What a lowering made, of the dtypes that PyTorch says."""
    made = [lowered] if isinstance(lowered, SSAValue) else list(lowered)
    if len(made) != len(context.results):
        raise _wrong(context, f"{len(made)} results, not {len(context.results)}")
    found: list[SSAValue | None] = []
    for value, kind in zip(made, context.results, strict=True):
        if value is None or kind is None:
            found.append(None)
            continue
        if context.shape(value) != kind.shape:
            raise _wrong(context, f"shape {context.shape(value)}, not {kind.shape}")
        found.append(context.cast(value, kind.dtype))
    return tuple(found)


def _wrong(context: Context, what: str) -> ImportingError:
    message = f"the lowering of {context.operator} gives {what}: a mistake of the importer"
    return ImportingError(message, location=place_of(context.location))


def without_cells(context: Context) -> list[SSAValue]:
    """The results of an operator that have no cells, whatever it does; none if some have."""
    kinds = [kind for kind in context.results if kind is not None and 0 in kind.shape]
    if not kinds or len(kinds) != len(context.results):
        return []
    return [context.constant(0, kind.dtype, kind.shape) for kind in kinds]
