"""Small results of the forward pass that spare the backward pass large ones.

    weights = softmax(scores)           # computed again by the backward pass, cell by cell
    out = bmm(weights, v)

A row's largest score and one over the sum of its exponentials are two cells of a thousand: with
these, a cell of `weights` is computed of its score alone, without them of the whole row. So a
softmax that is computed again is taken apart, and what its rows fold to is kept (`keep_folds`).

The gradient of `weights` is a product, `bmm(grad, v.mT)`, and that of `scores` needs its products
with `weights`, summed along rows. These are sums over cells of `v`, whose order may be changed:

    sum_j weights[i, j] * (sum_d grad[i, d] * v[j, d]) = sum_d grad[i, d] * out[i, d]

The right side reads two rows, the left one computes two products of matrices (`sum_by_result`).
Its sums are rounded in another order, and `out` is what the forward pass has rounded it to.
"""

# ruff: noqa: SLF001 (PyTorch has given operators private names)

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import fx
from torch.utils.checkpoint import CheckpointPolicy

from tapestry.importers.torch.recomputing import RECOMPUTE

_aten: Any = torch.ops.aten

_SOFTMAX: Any = _aten._softmax.default

_RESHAPES = (
    _aten.view.default,
    _aten.reshape.default,
    _aten._unsafe_view.default,
    _aten.expand.default,
)
"""What changes the shape of a tensor; its cells stay in order where there are as many."""

_COPIES = (_aten.clone.default, _aten.alias.default)
"""What gives the same cells."""

_CAST: Any = _aten._to_copy.default

_HALF = 2
"""The bytes of the least floats that a result may be rounded to."""

_PRODUCTS = (_aten.bmm.default, _aten.mm.default)


@dataclass(frozen=True)
class _Maker:
    """Makes nodes that stand where another stands, and are of the same pass."""

    graph: fx.Graph
    place: fx.Node

    def __call__(self, target: Callable[..., Any], *args: Any, **named: Any) -> fx.Node:
        made = self.graph.call_function(target, args, named)
        made.meta = {key: value for key, value in self.place.meta.items() if key != RECOMPUTE}
        made.meta["val"] = target(*(_value(one) for one in args), **named)
        return made

    def cast(self, value: fx.Node, dtype: torch.dtype) -> fx.Node:
        """A value in a dtype."""
        return value if _value(value).dtype == dtype else self(_CAST, value, dtype=dtype)

    def reshape(self, value: fx.Node, shape: Sequence[int]) -> fx.Node:
        """A value of another shape; its cells are put in order first where they do not lie so."""
        if not _value(value).is_contiguous():
            value = self(_aten.clone.default, value, memory_format=torch.contiguous_format)
        return self(_aten.view.default, value, list(shape))


def keep_folds(joint: fx.Graph, again: Collection[fx.Node]) -> bool:
    """Take softmaxes that are computed `again` apart, and keep what rows fold to; whether any."""
    found = [node for node in joint.nodes if node in again and node.target == _SOFTMAX]
    # Users may have said otherwise of what would be.
    found = [node for node in found if node.meta[RECOMPUTE] == CheckpointPolicy.MUST_RECOMPUTE]
    for node in found:
        scores, axis = cast("fx.Node", node.args[0]), node.args[1]
        dtype = _value(node).dtype
        with joint.inserting_before(node):
            make = _Maker(joint, node)
            wide = make.cast(scores, torch.promote_types(dtype, torch.float32))
            peak = make(_aten.amax.default, wide, [axis], True)
            powers = make(_aten.exp.default, make(_aten.sub.Tensor, wide, peak))
            # It is between 0 and 1, so that a product with it is as good as a quotient, and faster.
            share = make(
                _aten.reciprocal.default, make(_aten.sum.dim_IntList, powers, [axis], True)
            )
            made = make.cast(make(_aten.mul.Tensor, powers, share), dtype)
        for kept in (peak, share):
            kept.meta[RECOMPUTE] = CheckpointPolicy.MUST_SAVE
        node.replace_all_uses_with(made)
        joint.erase_node(node)
    return bool(found)


def sum_by_result(
    joint: fx.Graph,
    forward: Collection[fx.Node],
    ends: Collection[fx.Node],
    again: Collection[fx.Node],
) -> bool:
    """Sum products of a factor and its gradient by the result that it is of; whether any are.

    The result is of the `forward` pass, which returns `ends`; the factor is computed `again`. Where
    sizes are open, sums stay as they are.
    """
    if not again:
        return False
    changed = False
    products = [node for node in joint.nodes if node.target in _PRODUCTS]
    results: dict[object, list[fx.Node]] = {}
    for one in products:
        if one in forward:
            results.setdefault(_bare(one.args[0]), []).append(one)
    for node in list(joint.nodes):
        found = None if node in forward else _gradient_and_factor(node, again)
        if found is None:
            continue
        gradient, factor = found
        turned = gradient.args[1]
        same = [one for one in results.get(_bare(factor), ()) if _is_turned(turned, one.args[1])]
        if not same:
            continue
        kept = _as_kept_of(same[0], forward, ends)
        if not all(map(_is_known, (node, gradient, *kept))):
            continue
        seed, dtype = cast("fx.Node", gradient.args[0]), _value(node).dtype
        with joint.inserting_before(node):
            make = _Maker(joint, node)
            out = make.cast(_undone(kept, make), dtype)
            product = make(_aten.mul.Tensor, make.cast(seed, dtype), out)
            summed = make(_aten.sum.dim_IntList, product, [-1], True)
            made = make.reshape(summed, _value(node).shape)
        node.replace_all_uses_with(made)
        joint.erase_node(node)
        changed = True
    return changed


def _gradient_and_factor(
    node: fx.Node, again: Collection[fx.Node]
) -> tuple[fx.Node, fx.Node] | None:
    """Of a sum along rows of products of a gradient and a factor: what these are."""
    if node.target != _aten.sum.dim_IntList:
        return None
    product, axes = cast("fx.Node", node.args[0]), cast("Sequence[int] | None", node.args[1])
    if product.target != _aten.mul.Tensor or not _is_known(product):
        return None
    rank = len(_value(product).shape)
    if not axes or not rank:
        return None
    sides = [side for side in product.args if isinstance(side, fx.Node)]
    if len(sides) != 2 or [axis % rank for axis in axes] != [rank - 1]:
        return None
    if any(_value(side).shape != _value(product).shape for side in sides):
        return None
    for one, other in (sides, reversed(sides)):
        gradient = _bare(one)
        if isinstance(gradient, fx.Node) and gradient.target in _PRODUCTS and _bare(other) in again:
            return gradient, other
    return None


def _bare(value: object) -> object:
    """What a value is a cast of, or a view with rows of the same length."""
    while isinstance(value, fx.Node) and (_is_copied(value) or _is_reshaped(value)):
        source = cast("fx.Node", value.args[0])
        if not _is_known(value) or _value(source).shape[-1:] != _value(value).shape[-1:]:
            break
        value = source
    return value


def _is_copied(node: fx.Node) -> bool:
    """Whether a node has the cells of what it reads, rounded to 16 bits at most."""
    if node.target != _CAST:
        return node.target in _COPIES
    dtypes = _value(node).dtype, _value(node.args[0]).dtype
    return all(dtype.is_floating_point and dtype.itemsize >= _HALF for dtype in dtypes)


def _is_reshaped(node: fx.Node) -> bool:
    """Whether a node has the cells of what it reads in order, each once."""
    if node.target not in _RESHAPES or not _is_known(node) or not _is_known(node.args[0]):
        return False
    return _value(node).numel() == _value(node.args[0]).numel()


def _is_known(node: Any) -> bool:
    """Whether all sizes of a tensor are numbers: to compare others would make them so."""
    return all(isinstance(size, int) for size in _value(node).shape)


def _is_turned(one: object, other: object) -> bool:
    """Whether one stack of matrices is another one's, with their axes exchanged."""
    if not isinstance(one, fx.Node) or one.target != _aten.permute.default:
        return False
    rank = len(_value(one).shape)
    return one.args[0] is other and _order(one) == [*range(rank - 2), rank - 1, rank - 2]


def _as_kept_of(
    result: fx.Node, forward: Collection[fx.Node], ends: Collection[fx.Node]
) -> list[fx.Node]:
    """A result, and what the forward pass makes of it, one after another, up to what it keeps.

    These are its cells in another order, and rounded where nothing else is made of it.
    """
    found = [result]
    while found[-1] not in ends:
        users = [user for user in found[-1].users if user in forward]
        if len(users) != 1:
            break
        (user,) = users
        if not (_is_reshaped(user) or _is_copied(user) or user.target == _aten.permute.default):
            break
        found.append(user)
    return found


def _undone(kept: Sequence[fx.Node], make: _Maker) -> fx.Node:
    """What is first of `kept`, made of what is last."""
    made = kept[-1]
    for source, user in zip(kept[-2::-1], kept[:0:-1], strict=True):
        if user.target == _aten.permute.default:
            order = _order(user)
            turned = [order.index(axis) for axis in range(len(order))]
            made = make(_aten.permute.default, made, turned)
        elif user.target in _RESHAPES:
            made = make.reshape(made, _value(source).shape)
    return made


def _order(permuted: fx.Node) -> list[int]:
    """The axes of what a node permutes, in its order."""
    axes = cast("Sequence[int]", permuted.args[1])
    return [axis % len(axes) for axis in axes]


def _value(node: Any) -> Any:
    """The tensor that a node is; anything else as it is."""
    return node.meta["val"] if isinstance(node, fx.Node) else node
