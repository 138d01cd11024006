"""Prepared programs that several threads call for the first time at once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from functools import partial

import numpy as np
import pytest

from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.parts.preparing import in_parts
from tapestry.runtime.prepared.stored import restored, stored

_LAYERS = """
!t = !loom.tensor<[0, 0] : [64, 64], f32>
func.func @main(%x: !t, %w: !t) -> (!t, !t) {
  %h = weft.apply @matmul(%x, %w) : (!t, !t) -> !t
  %r = weft.apply @gelu(%h) : (!t) -> !t
  %s = weft.apply @softmax(%r) : (!t) -> !t
  func.return %r, %s : !t, !t
}
"""

_THREADS = 4


@pytest.fixture(autouse=True)
def often() -> Generator[None]:
    """Python goes on with another thread as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("small", [0, 1 << 23])
@pytest.mark.parametrize("loops", [None, Loops(1)])
def test_each_thread_gets_its_own(small: int, loops: Loops | None) -> None:
    module = parse_text(_LAYERS)
    run_pipeline(module, "default")
    library = Library(loops=loops)
    parts = partial(in_parts, small=small, threads=2, cache=4096, loops=loops)
    kept = stored(PreparedProgram(module, library, parts).run, library)
    given = [
        [np.random.default_rng((thread, n)).standard_normal((64, 64), np.float32) for n in range(2)]
        for thread in range(_THREADS)
    ]
    want = [[np.array(one) for one in restored(kept, library)(arrays)] for arrays in given]
    for _ in range(8):
        run, start = restored(kept, library), threading.Barrier(_THREADS)
        found: dict[int, list[list[np.ndarray]]] = {}

        def work(thread: int, run=run, start=start, found=found) -> None:
            start.wait()
            found[thread] = [run(given[thread]) for _ in range(3)]

        threads = [threading.Thread(target=work, args=(n,)) for n in range(_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for n, outputs in enumerate(want):
            for call in found[n]:
                for one, other in zip(call, outputs, strict=True):
                    np.testing.assert_array_equal(one, other)
