"""Half types are summed in f32 and rounded once: sums may be more than they hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.dtypes import is_half
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.frontend import parse_text
from tapestry.passes.weft.apply import apply_metakernels
from tests.metakernels.library.applying import LIBRARY, NUMPY, Given, applied, run

torch = pytest.importorskip("torch")
functional = torch.nn.functional


def _in_halves(name: str) -> list[ModuleOp]:
    """The first example of an entry, whose floats are f16 now."""
    template = LIBRARY.get(name)
    made: list[ModuleOp] = []
    for example in template.examples[:1]:

        def array(value: Any, dtype: str) -> np.ndarray:
            return np.array(value, NUMPY["f16" if dtype.startswith("f") else dtype])

        arrays: list[Given] = []
        for one in template.inputs:
            value, dtype = example.inputs.get(one.name), example.dtypes.get(one.name, "f32")
            if value is None:
                arrays.append(None)
            elif one.each:
                arrays.append([array(each, dtype) for each in value])
            else:
                arrays.append(array(value, dtype))
        made.append(applied(name, arrays, example.parameters))
    return made


def _halved_sums(module: ModuleOp) -> list[str]:
    """Sums that are rounded to halves before another operation uses them."""
    return [
        op.label.data
        for op in module.walk()
        if isinstance(op, loom.OperationOp)
        and op.monoid is not None
        and op.monoid.root_reference.data == "add"
        and any(is_half(tensor_type(result).element_type) for result in op.results)
        and any(not isinstance(use.operation, func.ReturnOp) for r in op.results for use in r.uses)
    ]


@pytest.mark.parametrize("name", [n for n in LIBRARY.names if LIBRARY.get(n).steps])
def test_no_step_takes_a_sum_in_halves(name):
    for module in _in_halves(name):
        assert not _halved_sums(module)


def test_a_sum_in_halves_is_found():
    vector, number = "!loom.tensor<[0] : [9], f16>", "!loom.tensor<[] : [], f16>"
    module = parse_text(f"""
func.func @main(%x: {vector}) -> {number} {{
  %s = weft.apply @sum(%x) : ({vector}) -> {number}
  %y = weft.apply @scale(%s) {{factor = 0.5}} : ({number}) -> {number}
  func.return %y : {number}
}}""")
    apply_metakernels(module, LIBRARY)
    assert _halved_sums(module) == ["s"]


RNG = np.random.default_rng(3)


def far(*shape: int) -> np.ndarray:
    """Numbers around 100: a thousand of them are more than f16 holds, and few of their squares."""
    return (100 + 20 * RNG.normal(size=shape)).astype(np.float16)


PLACES = RNG.integers(0, 4, 2000)
SCORES = (60 * RNG.normal(size=(2000, 4))).astype(np.float16)
SHARES = np.full((2000, 4), 0.25, np.float16)

Case = tuple[list[Any], dict[str, Any], Callable[..., Any]]
CASES: dict[str, Case] = {
    "mean": ([far(2000)], {}, lambda x: x.mean()),
    "std": ([far(2000) - far(2000) * 30], {}, lambda x: x.std()),
    "vector_norm": ([far(2000)], {}, torch.linalg.vector_norm),
    "normalize": ([far(2, 2000)], {}, functional.normalize),
    "softmax": ([far(70000) * 0 + 100], {"axis": 0}, lambda x: x.softmax(0)),
    "log_softmax": ([far(70000) * 0 + 100], {"axis": 0}, lambda x: x.log_softmax(0)),
    "logsumexp": ([far(70000) * 0], {}, lambda x: x.logsumexp(0)),
    "layer_norm": ([far(2, 2000)], {}, lambda x: functional.layer_norm(x, (2000,))),
    "rms_norm": ([far(2, 2000)], {}, lambda x: functional.rms_norm(x, (2000,), eps=1e-6)),
    "group_norm": ([far(1, 4, 999)], {"groups": 2}, lambda x: functional.group_norm(x, 2)),
    "instance_norm": ([far(1, 2, 999)], {}, functional.instance_norm),
    "mse_loss": ([far(2000), -far(2000)], {}, functional.mse_loss),
    "l1_loss": ([far(2000), -far(2000)], {}, functional.l1_loss),
    "huber_loss": ([far(2000), -far(2000)], {}, functional.huber_loss),
    "smooth_l1_loss": ([far(2000), -far(2000)], {}, functional.smooth_l1_loss),
    "cross_entropy_loss": ([SCORES, PLACES, None], {}, functional.cross_entropy),
    "cross_entropy_probabilities_loss": ([SCORES, SHARES, None], {}, functional.cross_entropy),
    "nll_loss": ([-abs(SCORES), PLACES, None], {}, functional.nll_loss),
    "cosine_similarity": ([far(2, 2000), far(2, 2000)], {}, functional.cosine_similarity),
    "triplet_margin_loss": (
        [200 * far(9, 2000), -200 * far(9, 2000), -200 * far(9, 2000)],
        {},
        functional.triplet_margin_loss,
    ),
    "avg_pool2d": ([far(1, 2, 40, 40)], {"kernel": [40, 40]}, lambda x: x.mean((2, 3), True)),
}


@pytest.mark.parametrize("name", CASES)
def test_means_of_more_than_halves_hold(name):
    arrays, parameters, reference = CASES[name]
    found = run(name, arrays, parameters, "numpy")[0]
    wide = [
        torch.tensor(a).double() if a.dtype == np.float16 else torch.tensor(a)
        for a in arrays
        if a is not None
    ]
    wanted = reference(*wide).numpy()
    assert np.isfinite(wanted).all()
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=2e-3, atol=1e-7)
