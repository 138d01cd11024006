"""Scatters that threads share: by lanes, or by places where there are few."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tapestry.runtime.cpu import native
from tapestry.runtime.prepared.folds import scatters
from tapestry.runtime.prepared.folds.scatters import Points, Scatter
from tapestry.runtime.prepared.linking import link
from tapestry.runtime.prepared.script import Script, Whole
from tests.runtime.prepared.teams import OneByOne

RNG = np.random.default_rng(0)


@pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")
@pytest.mark.parametrize("primitive", ["arith.addf", "arith.maximumf"])
@pytest.mark.parametrize("varying", [(), (1,), (0, 1), (0,)], ids=str)
@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_have_lanes_or_places_of_their_own(
    primitive: str, varying: tuple[int, ...], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few lanes, or none, or many, first or last; places before the first and after the last."""
    monkeypatch.setattr(scatters, "_SHARE", 1)
    monkeypatch.setattr(scatters, "_SHARE_WORKERS", 1)
    shape = (3, 5, 11, 40)
    points = Points(2, (3,), (0, 1), 2, shape)
    ufunc, zero = (np.add, 0) if primitive == "arith.addf" else (np.maximum, -9)
    values = RNG.normal(size=(3, 5, 1, 40)).astype("f4")
    along = tuple(n if d in (*varying, 3) else 1 for d, n in enumerate(shape))
    places = RNG.integers(0, 16, along)
    alone = Scatter(points, ufunc, primitive, np.array(zero, "f4"))
    monkeypatch.setattr(scatters, "_WORKERS", OneByOne(1))
    want = alone(values, places)
    every = np.broadcast_to(places, (3, 5, 1, 40))
    expected = np.full((3, 5, 11), zero, "f4")
    for b, c, n in np.ndindex(3, 5, 40):
        if 0 <= (at := every[b, c, 0, n] - 2) < 11:
            expected[b, c, at] = ufunc(expected[b, c, at], values[b, c, 0, n])
    np.testing.assert_array_equal(want.reshape(3, 5, 11), expected)
    team = OneByOne(threads)
    shared = replace(alone, team=team)
    np.testing.assert_array_equal(shared(values, places), want)
    assert team.rows == threads
    script = Script()
    ins = [script.argument(), script.argument()]
    linked = link(Whole(script.finish([script.call(shared, ins, new=True)])), [values, places])
    assert linked is not None
    assert linked.threads == (threads, team.count)
    (made,) = linked([values, places]) or ()
    np.testing.assert_array_equal(made.reshape(want.shape), want)
