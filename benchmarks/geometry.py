"""How fast ranges are projected, intersected and checked to tile, a million at a time.

    python benchmarks/geometry.py                  # a million boxes, about a minute
    python benchmarks/geometry.py --boxes 65536

Seconds are processor time of this process, which runs on one core, and the best of some
repetitions. Every figure has two peers in the same run: our own plain objects, one `Range` per box,
measured on a sample and scaled; and the plain NumPy one would write by hand, without our checks (of
rank, of order, that nothing wraps at 64 bits). The results of all three are compared first.

For tilings the plain NumPy is a difference array over the grid of distinct coordinates, summed up:
it needs memory for that grid, which irregular boxes make far too large, so there it has no figure.
The plain objects have none either: they check a tiling with the same arrays.
"""

import argparse
import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
from machine import machine
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from tapestry.zspace import Partition, Projection, Range, RangeBatch

BOXES = 2**20
SAMPLE = 2**15
GRID_CELLS = 2**27
RESULTS = Path(__file__).parent / "results" / "geometry.json"

Int64s = NDArray[np.int64]

WINDOW = Projection.of([[2, 0], [1, -1]], [1, 2], [3, 1])
"""A stride, a mixed row with both signs, an offset and a box: every term that a projection has."""


def seconds(work: Callable[[], object], repeats: int) -> float:
    """The least processor time that some work takes."""
    best = float("inf")
    for _ in range(repeats):
        began = process_time()
        work()
        best = min(best, process_time() - began)
    return best


def guillotine(whole: Range, boxes: int, source: np.random.Generator) -> RangeBatch:
    """`whole` cut in two, and each part again, along random dimensions at random places."""
    start, end = (np.array([corner], dtype=np.int64) for corner in (whole.start, whole.end))
    while len(start) < boxes:
        cut = min(len(start), boxes - len(start))
        dim = source.integers(0, whole.rank, cut)
        rows = np.arange(cut)
        low, high = start[rows, dim], end[rows, dim]
        # Near the middle, so that no part gets too thin to be cut again.
        middle = low + ((high - low) * source.uniform(0.4, 0.6, cut)).astype(np.int64)
        first_end, second_start = end[:cut].copy(), start[:cut].copy()
        first_end[rows, dim] = middle
        second_start[rows, dim] = middle
        start = np.concatenate((start, second_start))
        end = np.concatenate((first_end, end[cut:], end[:cut]))
    return RangeBatch(start, end)


def shuffled(batch: RangeBatch, source: np.random.Generator) -> RangeBatch:
    """The same ranges in a random order."""
    order = source.permutation(len(batch))
    return RangeBatch(batch.start[order], batch.end[order])


def by_hand(boxes: RangeBatch, other: Range) -> dict[str, Callable[[], tuple[Int64s, ...]]]:
    """Each operation as plain NumPy, without checks; what it returns ours must equal."""
    start, end = boxes.start, boxes.end
    matrix, offset = np.array(WINDOW.map.matrix), np.array(WINDOW.map.offset)
    shape, up, down = np.array(WINDOW.shape), np.maximum(matrix, 0).T, np.minimum(matrix, 0).T
    low, high = np.array(other.start), np.array(other.end)

    def project() -> tuple[Int64s, ...]:
        last = end - 1
        return start @ up + last @ down + offset, last @ up + start @ down + offset + shape

    def intersect() -> tuple[Int64s, ...]:
        first = np.maximum(start, low)
        return first, np.maximum(first, np.minimum(end, high))

    def overlaps() -> tuple[Int64s, ...]:
        return ((np.maximum(start, low) < np.minimum(end, high)).all(axis=1),)

    def sizes() -> tuple[Int64s, ...]:
        return ((end - start).prod(axis=1),)

    return {"project": project, "intersect": intersect, "overlap": overlaps, "size": sizes}


def in_batch(boxes: RangeBatch, other: Range) -> dict[str, Callable[[], tuple[Int64s, ...]]]:
    """Each operation in batch form."""

    def corners(batch: RangeBatch) -> tuple[Int64s, ...]:
        return batch.start, batch.end

    return {
        "project": lambda: corners(boxes.project(WINDOW)),
        "intersect": lambda: corners(boxes.intersect(other)[0]),
        "overlap": lambda: (boxes.overlaps(other),),
        "size": lambda: (boxes.sizes(),),
    }


def per_object(boxes: list[Range], other: Range) -> dict[str, Callable[[], list[object]]]:
    """Each operation on one `Range` after another."""
    return {
        "project": lambda: [WINDOW.apply_range(box) for box in boxes],
        "intersect": lambda: [box.intersection(other) for box in boxes],
        "overlap": lambda: [box.overlaps(other) for box in boxes],
        "size": lambda: [box.size for box in boxes],
    }


def compare(boxes: RangeBatch, sample: list[Range], other: Range) -> None:
    """Raise unless the three forms agree: plain NumPy on all boxes, objects on the sample."""
    ours, plain = in_batch(boxes, other), by_hand(boxes, other)
    for name, work in ours.items():
        for mine, theirs in zip(work(), plain[name](), strict=True):
            if not np.array_equal(mine, theirs):
                raise SystemExit(f"{name}: the batch and plain NumPy differ")
    single, count = per_object(sample, other), len(sample)
    common, exist = boxes.intersect(other)
    pairs = zip(common, exist.tolist(), strict=True)
    found: dict[str, Iterable[object]] = {
        "project": boxes.project(WINDOW),
        "intersect": (box if exists else None for box, exists in pairs),
        "overlap": boxes.overlaps(other).tolist(),
        "size": boxes.sizes().tolist(),
    }
    for name, values in found.items():
        if list(values)[:count] != single[name]():
            raise SystemExit(f"{name}: the batch and single ranges differ")


def operations(count: int, repeats: int) -> list[dict[str, object]]:
    """Seconds of each box operation on `count` boxes, ours and the peers'."""
    source = np.random.default_rng(0)
    whole = Range.of((2**30, 2**30))
    boxes, other = guillotine(whole, count, source), Range((2**20, 2**23), (2**29, 2**30))
    sample = [boxes[number] for number in range(min(SAMPLE, count))]
    compare(boxes, sample, other)
    single, plain = per_object(sample, other), by_hand(boxes, other)
    return [
        {
            "operation": name,
            "seconds": seconds(work, repeats),
            "seconds_of_objects": seconds(single[name], 1) * count / len(sample),
            "seconds_of_plain_numpy": seconds(plain[name], repeats),
        }
        for name, work in in_batch(boxes, other).items()
    ]


def painted_once(start: Int64s, end: Int64s, of: Range) -> bool | None:
    """Whether boxes tile `of`, by a difference array; None when its grid is too large."""
    axes = [np.unique(np.concatenate((a, b))) for a, b in zip(start.T, end.T, strict=True)]
    if np.prod([float(len(axis)) for axis in axes]) > GRID_CELLS:
        return None
    grid = np.zeros([len(axis) for axis in axes], dtype=np.int64)
    for corner in np.ndindex(*(2,) * of.rank):
        at = [
            np.searchsorted(axis, (end if side else start)[:, dim])
            for dim, (axis, side) in enumerate(zip(axes, corner, strict=True))
        ]
        np.add.at(grid, tuple(at), -1 if sum(corner) % 2 else 1)
    for dim in range(of.rank):
        grid = grid.cumsum(axis=dim)
    inside = grid[tuple(slice(-1) for _ in axes)]
    ends = [(int(axis[0]), int(axis[-1])) for axis in axes]
    return bool((inside == 1).all()) and ends == list(zip(of.start, of.end, strict=True))


def tilings(count: int, repeats: int) -> list[dict[str, object]]:
    """Seconds of the exact check for tilings of about `count` boxes in several shapes."""
    source = np.random.default_rng(1)
    plane, cube = Range.of((2**40, 2**40)), Range.of((2**40,) * 3)
    side, edge = round(count ** (1 / 2)), round(count ** (1 / 3))
    grid = RangeBatch.of(Partition.balanced(plane, (side, side)))
    irregular = guillotine(plane, count, source)
    cases = {
        "grid, 2 dims": (grid, plane),
        "grid, 2 dims, shuffled": (shuffled(grid, source), plane),
        "grid, 3 dims": (RangeBatch.of(Partition.balanced(cube, (edge,) * 3)), cube),
        "guillotine, 2 dims": (irregular, plane),
        "guillotine, 2 dims, shuffled": (shuffled(irregular, source), plane),
        "guillotine, 3 dims": (guillotine(cube, count, source), cube),
    }
    figures: list[dict[str, object]] = []
    for name, (boxes, whole) in cases.items():
        paint = partial(painted_once, boxes.start, boxes.end, whole)
        painted = paint()
        if painted is False:
            raise SystemExit(f"{name}: plain NumPy says that the boxes do not tile")
        figures.append(
            {
                "operation": f"tiling: {name}",
                "boxes": len(boxes),
                "seconds": seconds(partial(boxes.check_tiling, whole), repeats),
                "seconds_of_plain_numpy": None if painted is None else seconds(paint, 1),
            }
        )
    return figures


def show(result: dict[str, object], console: Console) -> None:
    """Print seconds, millions of boxes per second, and the ratio to each peer."""
    title = f"{result['boxes']:,} boxes, processor seconds on one core"
    table = Table(title=title, title_justify="left")
    table.add_column("operation")
    for column in (
        "seconds",
        "M boxes/s",
        "plain NumPy",
        "ours / NumPy",
        "objects",
        "objects / ours",
    ):
        table.add_column(column, justify="right")

    def ratio(top: float | None, bottom: float | None) -> str:
        return "-" if top is None or bottom is None else f"{top / bottom:,.2f}x"

    for figure in result["figures"]:
        ours, plain = figure["seconds"], figure["seconds_of_plain_numpy"]
        objects = figure.get("seconds_of_objects")
        table.add_row(
            figure["operation"],
            f"{ours:.4f}",
            f"{figure.get('boxes', result['boxes']) / ours / 1e6:,.1f}",
            "-" if plain is None else f"{plain:.4f}",
            ratio(ours, plain),
            "-" if objects is None else f"{objects:.2f}",
            ratio(objects, ours),
        )
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure batches of ranges.")
    parser.add_argument("--boxes", type=int, default=BOXES)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS, help="the JSON file to write")
    options = parser.parse_args()
    console = Console(width=120)
    with console.status("measuring"):
        figures = operations(options.boxes, options.repeats)
        figures += tilings(options.boxes, options.repeats)
    result = {
        "machine": machine(),
        "boxes": options.boxes,
        "repeats": options.repeats,
        "figures": figures,
    }
    show(result, console)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
