"""Programs as other people's benchmarks and tests have them: equal to PyTorch, none left to it.

Products and convolutions with what follows them, single nodes with their attributes, and models;
each in inference in float32 and with gradients in float64. What stays PyTorch's is listed.
"""

# pyright: basic
# PyTorch has no types to speak of.

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.importers.torch.sweep import checking  # noqa: E402
from tests.importers.torch.sweep.fused_images import IMAGES  # noqa: E402
from tests.importers.torch.sweep.fused_rows import ROWS  # noqa: E402
from tests.importers.torch.sweep.fused_volumes import VOLUMES  # noqa: E402
from tests.importers.torch.sweep.language import LANGUAGE  # noqa: E402
from tests.importers.torch.sweep.networks import NETWORKS  # noqa: E402
from tests.importers.torch.sweep.nodes_cells import CELLS  # noqa: E402
from tests.importers.torch.sweep.nodes_places import PLACES  # noqa: E402
from tests.importers.torch.sweep.nodes_recurrent import STATES  # noqa: E402
from tests.importers.torch.sweep.nodes_windows import WINDOWS  # noqa: E402
from tests.importers.torch.sweep.recurrent import RECURRENT  # noqa: E402
from tests.importers.torch.sweep.vision import VISION  # noqa: E402

FUSED = {
    name: (lambda make=make, shapes=shapes: (make(), *map(torch.randn, shapes)))
    for name, (make, *shapes) in {**ROWS, **IMAGES, **VOLUMES}.items()
}

PROGRAMS = {
    **FUSED,
    **CELLS,
    **PLACES,
    **STATES,
    **WINDOWS,
    **LANGUAGE,
    **RECURRENT,
    **VISION,
    **NETWORKS,
}

SOME = (
    "18 folds of one row", "38 pool, clamp, softmax, scale", "mod of bytes",
    "grid sample where cells lie", "embedding bag with offsets", "resize bilinear, antialias",
    "average pool, ceil, pads", "transposed, groups, dilated", "PointNet", "GRU",
    "non-max suppression", "frames and back",
)  # fmt: skip

EXTERNAL: dict[str, set[str]] = {
    "erf": {"erfc", "erfinv"},
    "casts to float8": {"_to_copy"},
    "gammas": {"lgamma", "digamma", "polygamma"},
    "bessel": {"i0", "special_i0e", "special_i1", "special_i1e"},
    "gcd": {"gcd", "lcm"},
    "frexp": {"frexp"},
    "repeated as counted": {"repeat_interleave"},
    "counted": {"histc"},
    "determinant": {"_linalg_det", "linalg_lu_solve"},
    "frames and back": {"_fft_r2c", "_fft_c2r", "_fft_c2c"},
}
"""By program, the operators of ATen that stay PyTorch's."""

UNTRACED = ("gaussian",)
"""Where PyTorch looks at the data before it computes: no graph comes to a backend."""


def rows(names: Any) -> list[Any]:
    return [n if n in SOME else pytest.param(n, marks=pytest.mark.slow) for n in names]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", rows(PROGRAMS))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_program(name: str) -> None:
    torch.manual_seed(0)
    model, *args = PROGRAMS[name]()
    report = checking.check_inference(model, *args)
    report.uses += checking.check_gradients(model, *args).uses
    assert {use.operator.split(".")[1] for use in report.external} == EXTERNAL.get(name, set())
    assert bool(report.uses) == (name not in UNTRACED)


@pytest.mark.slow
@pytest.mark.parametrize("name", FUSED)
def test_any_batch(name: str) -> None:
    torch.manual_seed(0)
    model, *args = FUSED[name]()
    checking.check_batches(model, *args)
