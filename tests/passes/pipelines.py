"""Random pipelines of all loom passes in any order, and partitions of named operations.

    steps(Random(3))    # ['weft-apply', 'loom-fuse', 'loom-shard{bytes=256}', 'loom-derive', ...]

A pass of the universe that is not named here runs without options, so a new one is tried at once.
`CUT` stands for a partition drawn for one operation of the program as it is then, see `cut`.
"""

from __future__ import annotations

from random import Random

from xdsl.dialects.builtin import ModuleOp

from tapestry.frontend import available_passes, run_pipeline, verify_module
from tapestry.movement import Splittable, splittables
from tapestry.passes.loom.shard import IllegalShardingError
from tapestry.zspace import Partition, Range

CUT = "cut"

OPTIONS = {
    "loom-simplify": ("", "", "{writers=true}"),
    "loom-fuse": (
        "",
        "",
        "{limit=8}",
        "{recompute=0}",
        "{kinds=prologue recompute=1000}",
        "{kinds=keep}",
        "{kinds=beside}",
        "{cells=1}",
    ),
    "loom-expand": ("", "{shared=true}"),
    "loom-recompute": ("", "{recompute=1000}"),
    "loom-unfuse": ("", "{kinds=epilogue}", "{kinds=prologue}"),
    "loom-materialize": ("", "{all=true}"),
    "loom-relayout": ("{axes=0}", "{axes=-1,0}", "{axes=1,1}", "{axes=0,0 writers=true}"),
    "loom-pad-fold": ("", "{extent=5}"),
    "loom-split-fold": ("{parts=2}", "{parts=3 least=2}"),
    "loom-split-scan": ("{parts=2 least=1}", "{parts=3 least=2}"),
    "loom-shard": ("{shards=2}", "{shards=3}", "{shards=6}", "{bytes=64}", "{bytes=512}"),
    "loom-propagate": ("", "{slack=0.5}", "{folds=true}", "{folds=true slack=1.0}"),
    "loom-expand-shards": ("", "{arity=2}"),
    "loom-substitute": ("{rules=identities}", "{rules=parts}"),
}

_LEFT_OUT = {
    "loom-to-triton": "it leaves the dialect",
}

PASSES = tuple(
    name
    for name in sorted(available_passes())
    if name.startswith("loom-") and name not in _LEFT_OUT
)


def steps(random: Random) -> list[str]:
    """Some passes in some order. Applications are expanded first, or after some of them."""
    often = ("loom-simplify", "loom-fuse", "loom-derive", "loom-group", "loom-shard", CUT)
    names = [*PASSES, *often, *often, "loom-simplify", "loom-fuse"]
    chosen = [random.choice(names) for _ in range(random.randint(2, 8))]
    found = [
        name if name == CUT else name + random.choice(OPTIONS.get(name, ("",))) for name in chosen
    ]
    found.insert(0 if random.random() < 0.9 else random.randrange(len(found)), "weft-apply")
    return found


def apply(module: ModuleOp, step: str, random: Random) -> str:
    """Run one step on a verified module; what was run."""
    if step == CUT:
        step = cut(module, random)
    else:
        run_pipeline(module, step)
    return step


def cut(module: ModuleOp, random: Random) -> str:
    """Split the operations of one label by a random partition of one of them.

    Where that is illegal for one of them, the pass must refuse it and leave the program alone.
    """
    found = splittables(module)
    if not found:
        return "nothing to cut"
    one = random.choice(found)
    partition = _partition(one, random)
    label = one.subject.removeprefix("@")
    alike = [op for op in found if op.subject == one.subject]
    refused = any(op.sharding_problems(partition) for op in alike)
    step = f'loom-shard{{op={label} partition="{partition}"}}'
    before, message = str(module), None
    try:
        run_pipeline(module, step)
    except IllegalShardingError as error:
        message = str(error)
    if message is None:
        assert not refused, f"{step} is illegal, but was done"
        assert all(op.partition == partition for op in alike)
    else:
        assert refused, f"{step} is legal, but was refused: {message}"
        assert len(message.splitlines()) == 1, message
        assert str(module) == before, f"{step} was refused after it had changed the program"
        verify_module(module)
    return step


def _partition(op: Splittable, random: Random) -> Partition:
    """A random grid over maps and folds, or over maps alone; or a list of ranges."""
    if random.random() < 0.3:
        return Partition.explicit(_pieces(op.index, 3, random))
    dims = op.map_dims if random.random() < 0.5 else range(op.index.rank)
    cuts: list[list[int]] = []
    for dim, (low, high) in enumerate(zip(op.index.start, op.index.end, strict=True)):
        inside = range(low + 1, high) if dim in dims else range(0)
        count = min(len(inside), random.choice([0, 1, 1, 2]))
        cuts.append([low, *sorted(random.sample(inside, count)), high])
    return Partition.grid(cuts)


def _pieces(box: Range, depth: int, random: Random) -> list[Range]:
    """A box cut into up to 2 ** depth parts, at random places of random dimensions."""
    dims = [d for d in range(box.rank) if box.shape[d] > 1]
    if depth == 0 or not dims or random.random() < 0.25:
        return [box]
    dim = random.choice(dims)
    at = random.randint(1, box.shape[dim] - 1)
    parts = box.split_sizes(dim, [at, box.shape[dim] - at])
    return [piece for part in parts for piece in _pieces(part, depth - 1, random)]
