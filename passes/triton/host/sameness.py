"""What makes two kernels one: keys that are equal for what differs in names and operands alone.

    key(group_of(first_layer)) == key(group_of(second_layer))

A network's layers do the same to other tensors. Their kernel is made once, and what comes later is
a launch of it: equal kernels need not be made to be found equal.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import singledispatch
from typing import Generic, TypeVar

from xdsl.ir import Block

from tapestry.algebra.monoids import Monoid
from tapestry.passes.loom.rebuilding.bodies import body_key
from tapestry.passes.triton.groups.group import Group, NotOneKernelError
from tapestry.passes.triton.kernels.mapfold import MapFold, Tensor

Made = TypeVar("Made")


class Once(Generic[Made]):
    """What was made by key, so that it is made once; each time, unless it is `shared`."""

    def __init__(self, shared: bool) -> None:
        self.shared = shared
        self._made: dict[Hashable, Made | NotOneKernelError] = {}

    def made(self, alike: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` makes, or made before; NotOneKernelError, each time, where that is raised."""
        if not self.shared:
            return make()
        if alike not in self._made:
            try:
                self._made[alike] = make()
            except NotOneKernelError as error:
                self._made[alike] = error
        found = self._made[alike]
        if isinstance(found, NotOneKernelError):
            raise NotOneKernelError(str(found))
        return found


@singledispatch
def key(of: MapFold | Group) -> Hashable:
    """All that the kernels of a map-fold or a group depend on, but for names."""
    raise TypeError(type(of).__name__)


@key.register
def _(of: MapFold) -> Hashable:
    return (
        (of.index, of.kinds, of.partition, of.inside, of.ends, of.schedule),
        (_tensors(of.ins), _tensors(of.extras), _tensors(of.outs)),
        # A name says which inputs are finite, and is no part of the key.
        tuple(tensor.name in of.finite for tensor in of.ins),
        (_body(of.wrap), _body(of.unwrap), _monoid(of.monoid)),
    )


@key.register
def _(of: Group) -> Hashable:
    members = tuple((key(member.fold), member.place, member.sources) for member in of.members)
    places = tuple(sorted(of.places.items(), key=lambda item: item[0]))
    return (
        (of.index, of.partition, of.schedule, places),
        (_tensors(of.reads), of.operands, of.outs),
        members,
    )


def _tensors(tensors: Iterable[Tensor]) -> Hashable:
    return tuple((t.box, t.element, t.projection, t.fill, t.repeated, t.buffer) for t in tensors)


def _monoid(monoid: Monoid | None) -> Hashable:
    if monoid is None:
        return None
    # As text, zeros of either sign are two, and no number differs from itself.
    zero = tuple(map(repr, monoid.zero))
    return (monoid.state, zero, monoid.commutative, body_key(monoid.merge))


def _body(body: Block | None) -> Hashable:
    return None if body is None else body_key(body)
