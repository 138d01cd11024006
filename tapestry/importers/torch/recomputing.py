"""What the backward pass computes again: results of products that are larger than what they are of.

    scores = bmm(q, k)             # 1024 x 1024 of twice 1024 x 64: computed again,
    weights = softmax(scores)      # and so is what follows of that size,
    out = bmm(weights, v)          # up to here; q, k, v are kept

A cell that is kept is written once and read again, which takes as long as a few hundred operations
of a matrix unit. So a product is computed again where it has more cells than its factors, and few
operations for each, and no cell of that size leaves the chain of what follows. Kernels of the
backward pass then compute the chain where they need it, and store none of it.

So is what the chain reads where that needs no more memory: what is made of no input, as a causal
mask is, and what products read that is made cell by cell of fewer bytes, as casts and scales are.
Everything else is left to PyTorch's partitioner (`partitioning`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from math import prod
from operator import getitem
from typing import Any, cast

import torch
from torch import fx
from torch.fx.node import map_arg
from torch.utils.checkpoint import CheckpointPolicy
from torch.utils.flop_counter import flop_registry

RECOMPUTE = "recompute"
"""Where PyTorch looks for what is to become of a node."""

_FLOPS = 256
"""Floating point operations for a cell that are faster than to store it and load it."""

_formulas: Any = flop_registry


def mark_recomputed(joint: fx.Graph, results: int) -> frozenset[fx.Node]:
    """Mark what the backward pass is to compute again of a joint graph, and return it.

    The graph computes the `results` of the forward pass, and then gradients; equal nodes are one.
    A node that says already what is to become of it keeps that.
    """
    forward, ends = forward_nodes(joint, results)
    marked: set[fx.Node] = set()
    for node in joint.nodes:
        if node in forward and _is_large(node):
            marked |= _chain(node, forward, ends)
    readers = {user for node in marked for user in forward.intersection(node.users)}
    for node in marked | {reader for reader in readers if _flops(reader) is not None}:
        for source in set(node.all_input_nodes) - marked:
            marked |= _made_of_less(source)
    for node in marked:
        node.meta.setdefault(RECOMPUTE, CheckpointPolicy.MUST_RECOMPUTE)
    return frozenset(marked)


def forward_nodes(joint: fx.Graph, results: int) -> tuple[set[fx.Node], set[fx.Node]]:
    """The nodes that the results of the forward pass need, and those that are results."""
    (output,) = joint.find_nodes(op="output")
    returned = cast("Sequence[object]", output.args[0])
    ends = {node for node in returned[:results] if isinstance(node, fx.Node)}
    needed: set[fx.Node] = set()
    pending = list(ends)
    while pending:
        node = pending.pop()
        if node not in needed:
            needed.add(node)
            pending.extend(node.all_input_nodes)
    return needed, ends


def _chain(product: fx.Node, forward: set[fx.Node], ends: set[fx.Node]) -> set[fx.Node]:
    """A product and what follows of its size; nothing where that is not to be computed again."""
    limit = _cells_of_factors(product)
    chain: set[fx.Node] = set()
    pending = [product]
    while pending:
        node = pending.pop()
        if node in ends or _is_costly(node):
            return set()
        chain.add(node)
        readers = forward.intersection(node.users) - chain
        pending.extend(reader for reader in readers if _cells(reader) > limit)
    return chain


def _made_of_less(value: fx.Node) -> set[fx.Node]:
    """The nodes that compute a value cell by cell of fewer bytes, or of none; nothing if more."""
    made: set[fx.Node] = set()
    kept: set[fx.Node] = set()
    pending = [value]
    while pending:
        node = pending.pop()
        if node in made or node in kept:
            continue
        if _is_map(node):
            made.add(node)
            pending.extend(node.all_input_nodes)
        else:
            kept.add(node)
    return made if sum(map(_bytes, kept)) <= _bytes(value) else set()


def _is_map(node: fx.Node) -> bool:
    """Whether a node folds nothing: none of what it reads is larger, and it is no product."""
    if node.op != "call_function" or torch.Tag.nondeterministic_seeded in _tags(node):
        return False
    if node.target is getitem:
        # Several results are no tensor: they are not kept, one of them is.
        return all(map(_is_map, node.all_input_nodes))
    read = max(map(_cells, node.all_input_nodes), default=0)
    made = [prod(shape) for shape in _sizes(node.meta.get("val")) or ()]
    # A view of several results has all of a tensor; what else has several may select among cells.
    whole = sum(made) if getattr(node.target, "is_view", False) else max(made, default=0)
    return _flops(node) is None and read <= whole


def _tags(node: fx.Node) -> Collection[torch.Tag]:
    return getattr(node.target, "tags", ())


def _bytes(node: fx.Node) -> int:
    sizes = max((t.element_size() for t in _tensors(node.meta.get("val"))), default=0)
    return _cells(node) * sizes


def _is_large(node: fx.Node) -> bool:
    """Whether a node is a product with a result larger than its factors, which are kept instead."""
    factors = _cells_of_factors(node)
    return _flops(node) is not None and 0 < factors < _cells(node)


def _is_costly(node: fx.Node) -> bool:
    """Whether a node has more operations for a cell than it may have."""
    flops = _flops(node)
    return flops is not None and flops > _FLOPS * _cells(node)


def _flops(node: fx.Node) -> int | None:
    """The floating point operations of a product; None of what is none, or has unknown sizes."""
    formula = _formulas.get(getattr(node.target, "overloadpacket", None))
    made = _sizes(node.meta.get("val"))
    read = {source: _sizes(source.meta.get("val")) for source in node.all_input_nodes}
    if formula is None or any(shapes is None or len(shapes) != 1 for shapes in read.values()):
        return None

    def shape(source: fx.Node) -> Any:
        """What formulas take for a tensor."""
        (found,) = read[source] or [None]
        return found

    positional: Any = map_arg(node.args, shape)
    named: Any = map_arg(node.kwargs, shape)
    if not made:
        return None
    return int(formula(*positional, **named, out_val=made[0] if len(made) == 1 else made))


def _cells_of_factors(node: fx.Node) -> int:
    return sum(_cells(source) for source in node.all_input_nodes)


def _cells(node: fx.Node) -> int:
    """The cells of a node's largest tensor; none where its sizes are unknown."""
    return max((prod(shape) for shape in _sizes(node.meta.get("val")) or ()), default=0)


def _sizes(value: object) -> list[torch.Size] | None:
    """The shapes of the tensors that a value is, with sizes that are open as they are at first."""
    tensors = list(_tensors(value))
    shapes = [[_size(size) for size in tensor.shape] for tensor in tensors]
    known = [torch.Size([size for size in shape if size is not None]) for shape in shapes]
    return None if any(None in shape for shape in shapes) else known


def _tensors(value: object) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for part in cast("Iterable[object]", value):
            yield from _tensors(part)


def _size(size: object) -> int | None:
    """A size, without a guard on one that is open."""
    if isinstance(size, int):
        return size
    hint = getattr(getattr(size, "node", None), "hint", None)
    return hint if isinstance(hint, int) else None
