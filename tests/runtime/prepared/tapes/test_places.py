"""Where results are, as planned before anything is computed."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.runtime.prepared.tapes.places import Seen, planned
from tapestry.runtime.prepared.tapes.tape import Tape


@pytest.mark.parametrize("passing", [frozenset[int](), frozenset([1]), frozenset([0])])
def test_steps_to_an_output_are_in_its_memory_unless_caches_pass_it(
    passing: frozenset[int],
) -> None:
    tape = Tape()
    x = tape.source()
    first = tape.call(np.negative, (x,))
    second = tape.call(np.exp, (first,))
    last = tape.call(np.negative, (second,))
    seen = dict.fromkeys(range(tape.size), Seen.of(np.empty((10, 10))))
    out, values = np.empty((10, 10)), [None] * tape.size
    plan = planned(tape, [last], seen, values, [out], passing)
    if 0 in passing:
        assert set(plan.direct) == {last}
        assert values[first] is values[second]
        assert plan.used >= out.nbytes
    else:
        assert set(plan.direct) == {first, second, last}
        assert plan.used == 0
