"""A joint graph made two: one for the forward pass, one for the backward pass.

PyTorch's partitioner chooses what is kept from one to the other, but for what `recomputing` says is
computed again. On the CPU nothing more is: there a product's cells take longer to compute than to
load.

Random numbers that are computed again are the same numbers: PyTorch keeps the state of the
generator beside them, which are their seeds (`replaying`).
"""

from __future__ import annotations

from typing import Any

from torch import fx
from torch._functorch import compile_utils, config, partitioners

from tapestry.importers.torch.keeping import keep_folds, sum_by_result
from tapestry.importers.torch.recomputing import forward_nodes, mark_recomputed

_config: Any = config
_utilities: Any = compile_utils


def partitioned(
    joint: fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **options: Any
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """The graphs of the forward and the backward pass, called as AOT autograd calls it."""

    def divide() -> tuple[fx.GraphModule, fx.GraphModule]:
        return partitioners.min_cut_rematerialization_partition(
            joint, inputs, num_fwd_outputs=num_fwd_outputs, **options
        )

    if not computes_again(joint.graph):
        return divide()
    joint.graph.eliminate_dead_code()
    joint.graph = _utilities.fx_graph_cse(joint.graph)
    again = mark_recomputed(joint.graph, num_fwd_outputs)
    forward, ends = forward_nodes(joint.graph, num_fwd_outputs)
    if sum_by_result(joint.graph, forward, ends, again) | keep_folds(joint.graph, again):
        joint.graph.eliminate_dead_code()
        mark_recomputed(joint.graph, num_fwd_outputs)
    # The state of a generator that is kept as an object of PyTorch's is not that of a program's.
    with _config.patch(graphsafe_rng_functionalization=False):
        return divide()


def computes_again(joint: fx.Graph) -> bool:
    """Whether it is faster to compute large results again, where a graph's tensors are."""
    values = (node.meta.get("val") for node in joint.find_nodes(op="placeholder"))
    devices = {value.device.type for value in values if hasattr(value, "device")}
    return bool(devices - {"cpu", "meta"})
