"""What tests of products by loops in tiles share: they compare with the reference executor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.products.sliding import slid
from tapestry.runtime.prepared.products.tiled import TiledProduct
from tapestry.runtime.prepared.script import Finished
from tapestry.runtime.program import arguments

LIBRARY = Library(slide=slid, loops=Loops(1))


def products_of(prepared: PreparedProgram) -> list[TiledProduct]:
    script = prepared.run.script
    assert isinstance(script, Finished)
    return [line.function for line in script.lines if isinstance(line.function, TiledProduct)]


def is_tiled(prepared: PreparedProgram) -> bool:
    """Whether some product went in tiles, and none another way."""
    ready = [one for product in products_of(prepared) for one in product._ready.values()]  # pyright: ignore[reportPrivateUsage]
    return bool(ready) and None not in ready


def check(
    module: ModuleOp,
    arrays: Sequence[Array],
    library: Library = LIBRARY,
    rooms: list[int] | None = None,
) -> bool:
    """Whole numbers, whose sums are exact in any order; whether products went in tiles."""
    named = {one.name: array for one, array in zip(arguments(module), arrays, strict=True)}
    want = find_executor("reference").run(module, named, NoWatch()).outputs
    prepared = PreparedProgram(module, library)
    for _ in range(2):
        for have, expected in zip(prepared(arrays), want, strict=True):
            assert have.dtype == expected.dtype
            np.testing.assert_array_equal(have, expected)
    for product in products_of(prepared) if rooms is not None else ():
        rooms += [one.room[0] for one in product._ready.values() if one is not None]  # pyright: ignore[reportPrivateUsage]
    return is_tiled(prepared)


def numbers(shape: Sequence[int], seed: int) -> Array:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype("f4")


def arrays_of(module: ModuleOp) -> list[Array]:
    return [numbers(one.type.box.shape, n) for n, one in enumerate(arguments(module))]
