"""Implementations of `loom.external`, by name and target.

    from tapestry import register_external

    @register_external("smooth", on="numpy")
    def smooth(arrays, parameters):
        (x,) = arrays
        return ((x[..., :-1] + x[..., 1:]) * parameters.get("scale", 0.5),)

An implementation gets what the operation's projections select of its inputs over a shard (read
only), and its parameters; it returns an array for each output, of the shape and dtype that the
shard writes. It must give the same cells however the index space is split. Targets are `numpy`,
for arrays of this process, and `torch`, for tensors on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from tapestry.attributes import plain_value
from tapestry.diagnostics import InvalidProgramError, Location
from tapestry.dialects import loom
from tapestry.runtime.archives import first_line
from tapestry.runtime.arrays.ordering import first_in_order, in_order, stable_order, taken

Target = Literal["numpy", "torch"]
Parameters = Mapping[str, Any]
Implementation: TypeAlias = Callable[[Sequence[Any], Parameters], Sequence[Any]]

Leading: TypeAlias = Callable[[Sequence[Any], Parameters, int], Sequence[Any]]
"""As an implementation, but for the first places along the last axis of all outputs alone."""

_registered: dict[tuple[str, Target], Implementation] = {}
_leading: dict[str, Leading] = {}
_new: set[str] = set()
"""Kernels whose results on NumPy are arrays that nobody else has."""


def register_external(
    name: str, *, on: Target = "numpy"
) -> Callable[[Implementation], Implementation]:
    """Make a function the implementation of `loom.external @name` on a target."""

    def decorate(function: Implementation) -> Implementation:
        _registered[name, on] = function
        if on == "numpy":
            # What another implementation had, or was.
            _leading.pop(name, None)
            _new.discard(name)
        return function

    return decorate


def find_external(name: str, on: Target, location: Location | None) -> Implementation:
    """The implementation of an external kernel; an error says which there are."""
    found = _registered.get((name, on))
    if found is None:
        known = sorted(kernel for kernel, target in _registered if target == on)
        raise InvalidProgramError(
            f"no implementation of @{name} is registered for {on}",
            location=location,
            hint=f"there is {', '.join('@' + kernel for kernel in known) or 'none'}; "
            f'add one with tapestry.register_external("{name}", on="{on}")',
        )
    return found


def call_external(
    name: str,
    implementation: Implementation,
    arrays: Sequence[Any],
    outs: Sequence[Any],
    parameters: Parameters,
    location: Location | None,
) -> None:
    """Run an implementation into `outs`; an error says how it failed, or what it returned."""
    kinds = [(tuple(out.shape), out.dtype) for out in outs]
    results = external_results(name, implementation, arrays, kinds, parameters, location)
    for out, result in zip(outs, results, strict=True):
        out[...] = result


def external_results(
    name: str,
    implementation: Implementation,
    arrays: Sequence[Any],
    kinds: Sequence[tuple[tuple[int, ...], Any]],
    parameters: Parameters,
    location: Location | None,
) -> tuple[Any, ...]:
    """What an implementation returns, of these shapes and dtypes; errors are as above."""
    try:
        results = tuple(implementation(arrays, parameters))
    except Exception as error:
        message = f"@{name} failed: {first_line(error)}"
        raise InvalidProgramError(message, location=location) from error
    want = list(kinds)
    have = [(tuple(result.shape), result.dtype) for result in results]
    if have != want:
        raise InvalidProgramError(
            f"@{name} returned {_shown(have)}, but its outputs are {_shown(want)}",
            location=location,
        )
    return results


def _shown(kinds: Sequence[tuple[tuple[int, ...], Any]]) -> str:
    return ", ".join(f"{dtype} of shape {shape}" for shape, dtype in kinds) or "nothing"


def parameters_of(op: loom.ExternalOp) -> Parameters:
    """The parameters of an operation as Python values."""
    given = op.parameters
    return {} if given is None else {n: plain_value(value) for n, value in given.data.items()}


def gives_new(name: str) -> bool:
    """Whether results of a kernel on NumPy are arrays that nobody else has, of all its outputs."""
    return name in _new


def find_leading(name: str) -> Leading | None:
    """What computes the first places of a kernel's outputs on NumPy; None where nothing does."""
    return _leading.get(name)


def _given(arrays: Sequence[Any], parameters: Parameters) -> tuple[Any, bool]:
    """The cells to sort, and whether from the largest on; ValueError for anything else."""
    if len(arrays) != 1:
        raise ValueError(f"it sorts one input, not {len(arrays)}")
    unknown = sorted(set(parameters) - {"descending"})
    if unknown:
        raise ValueError(f"it has no parameter {', '.join(unknown)}; it has descending")
    descending = parameters.get("descending", False)
    if not isinstance(descending, bool):
        raise ValueError(f"descending is true or false, not {descending!r}")
    return arrays[0], descending


@register_external("sort")
def sort(arrays: Sequence[Any], parameters: Parameters) -> Sequence[Any]:
    """Cells sorted along the last axis."""
    cells, descending = _given(arrays, parameters)
    return (in_order(cells, descending=descending),)


@register_external("argsort")
def argsort(arrays: Sequence[Any], parameters: Parameters) -> Sequence[Any]:
    """The positions that sort the cells along the last axis."""
    cells, descending = _given(arrays, parameters)
    return (stable_order(cells, descending=descending),)


def _first_sorted(arrays: Sequence[Any], parameters: Parameters, count: int) -> Sequence[Any]:
    return (taken(arrays[0], *_first_order(arrays, parameters, count)),)


def _first_order(arrays: Sequence[Any], parameters: Parameters, count: int) -> Sequence[Any]:
    cells, descending = _given(arrays, parameters)
    return (first_in_order(cells, count, descending=descending),)


_leading |= {"sort": _first_sorted, "argsort": _first_order}
_new |= {"sort", "argsort"}


def _sorted(tensors: Sequence[Any], parameters: Parameters) -> Any:
    """PyTorch's stable sort along the last axis, which has NaN as the greatest number too."""
    (cells,) = tensors
    return cells.sort(dim=-1, stable=True, descending=parameters.get("descending", False))


@register_external("sort", on="torch")
def sort_tensor(tensors: Sequence[Any], parameters: Parameters) -> Sequence[Any]:
    """Cells sorted along the last axis."""
    return (_sorted(tensors, parameters).values,)


@register_external("argsort", on="torch")
def argsort_tensor(tensors: Sequence[Any], parameters: Parameters) -> Sequence[Any]:
    """The positions that sort the cells along the last axis."""
    return (_sorted(tensors, parameters).indices,)
