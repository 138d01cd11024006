"""A random graph: arguments, steps of all sorts, and several outputs."""

from __future__ import annotations

from random import Random

from tests.passes import graph_operations, graph_steps
from tests.passes.graphs import Graph, conditioned

_DTYPES = ("f32", "f32", "f32", "f64", "f64", "i32", "i32", "i64", "i8", "bf16", "f16")


def random_graph(random: Random, most_steps: int = 7, scale: int = 1) -> Graph:
    """A graph of one to `most_steps` steps; all that nothing reads is returned, and more.

    Some axes are about `scale` times as large as others.
    """
    graph = Graph(random, scale)
    for _ in range(random.choice([1, 1, 2])):
        graph.argument(graph.shape(random.randint(1, 4), 5), random.choice(_DTYPES))
    for _ in range(random.randint(1, most_steps)):
        several = graph_operations.STEPS if random.random() < 0.35 else graph_steps.STEPS
        random.choice(several)(graph)
    text = "\n".join(line.split(" = ", 1)[1] for line in graph.lines)
    kept = [v for v in graph.values if conditioned(v)]
    unread = [v for v in kept if f"%{v.name} " not in text.replace(",", " ").replace(")", " ")]
    made = [v for v in unread if v not in graph.arguments]
    more = random.sample(kept, min(len(kept), random.choice([0, 0, 1, 2])))
    graph.outputs = list(dict.fromkeys([*made, *more])) or kept[-1:]
    return graph
