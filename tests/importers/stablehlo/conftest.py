"""What the tests of the StableHLO importer share: a JAX function, imported, against JAX itself."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tapestry
from tapestry.importers import stablehlo

MAPS = "weft-apply,loom-simplify,loom-fuse"


def exported(function: Callable[..., Any], *arguments: Any) -> Any:
    """What jax.export makes of a function for arguments like these."""
    import jax

    return jax.export.export(jax.jit(function))(*arguments)


def run_like_jax(
    function: Callable[..., Any],
    *arguments: Any,
    on: str = "numpy",
    pipeline: str = MAPS,
    rtol: float = 2e-5,
    atol: float = 2e-5,
) -> ModuleOp:
    """Import, run and compare all outputs with JAX's; the module as it ran."""
    import jax

    module = stablehlo.load(exported(function, *arguments).mlir_module())
    tapestry.run_pipeline(module, pipeline)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]
    names = [argument.name for argument in tapestry.arguments(module)]
    got = tapestry.run(module, dict(zip(names, leaves, strict=True)), on=on).outputs
    want = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(function)(*arguments))]
    assert [array.dtype for array in got] == [array.dtype for array in want]
    for have, expected in zip(got, want, strict=True):
        wide = np.complex128 if have.dtype.kind == "c" else np.float64
        if have.dtype.kind in "biu":
            np.testing.assert_array_equal(have, expected)
        else:
            np.testing.assert_allclose(
                have.astype(wide), expected.astype(wide), rtol=rtol, atol=atol
            )
    return module


@pytest.fixture
def agrees() -> Callable[..., ModuleOp]:
    """`agrees(f, x, ...)`: f(x, ...) computed by Tapestry is what JAX computes."""
    pytest.importorskip("jax")
    return run_like_jax
