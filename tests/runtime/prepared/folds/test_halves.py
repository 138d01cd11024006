"""States merged with their neighbours, at every size that a fold comes through."""

import numpy as np
from xdsl.dialects.builtin import f32, i64

from tapestry.algebra.monoids import builtin_monoid
from tapestry.runtime.prepared.folds.halves import merged_halves


def test_folds_of_large_arrays_of_any_shape() -> None:
    monoid = builtin_monoid("argmax", (f32, i64))
    assert monoid is not None
    fold = merged_halves(monoid, (0,))
    numbers = np.random.default_rng(0)
    for shape in ((64, 20_000), (64, 20_000), (37, 50_000), (37, 20_000)):
        values = numbers.normal(size=shape).astype("f4")
        places = np.broadcast_to(np.arange(shape[0])[:, None], shape)
        largest, at = fold(values, places)
        np.testing.assert_array_equal(largest[0], values.max(0))
        np.testing.assert_array_equal(at[0], values.argmax(0))
