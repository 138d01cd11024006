"""Random functions of JAX, and their gradients, imported and run as JAX runs them.

    def function(v0, v1):
        v2 = jnp.take(v0, jnp.array([0, 1, 0]), axis=-1)
        v3 = lax.cumsum(v2, 1, reverse=True)
        return v2, v3

Lines are drawn one at a time and kept where JAX runs them.
"""

# pyright: basic
# JAX has no types to speak of.

from __future__ import annotations

from random import Random

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

import tapestry
from tapestry.importers import stablehlo
from tests.exploring.forms import read_forms

FORMS = read_forms("jax_functions.txt")
PIPELINES = ("weft-apply", "default", "default", "default,loom-shard{shards=3}")

_NAMES = {"jax": jax, "jnp": jnp, "lax": lax}


def check(seed: int) -> str:
    """How it was compared; raises where the import gives anything else."""
    rng = Random(seed)
    source, inputs = _drawn(rng, np.random.default_rng(seed))
    scope: dict = dict(_NAMES)
    exec(source, scope)  # noqa: S102 - lines of the file above
    function, backward = scope["function"], rng.random() < 0.5

    def total(*given):
        return sum(jnp.sum(jnp.sin(x) * (n + 1)) for n, x in enumerate(function(*given)))

    run = jax.grad(total, argnums=(0, 1)) if backward else function
    pipeline = rng.choice(PIPELINES)
    try:
        want = [np.asarray(x) for x in jax.tree.leaves(jax.jit(run)(*inputs))]
    except (TypeError, ValueError, NotImplementedError):
        return "refused by JAX"
    if not all(np.isfinite(x).all() for x in want):
        return "not finite"
    try:
        module = stablehlo.load(
            jax.export.export(jax.jit(run, keep_unused=True))(*inputs).mlir_module()
        )
        tapestry.run_pipeline(module, pipeline)
        names = [argument.name for argument in tapestry.arguments(module)]
        got = tapestry.run(module, dict(zip(names, inputs, strict=True)), on="numpy").outputs
        for n, (have, expected) in enumerate(zip(got, want, strict=True)):
            near = 3e-4 * (1 + np.abs(expected).max(initial=0))
            np.testing.assert_allclose(have, expected, rtol=0, atol=near, err_msg=f"result {n}")
    except Exception as error:
        error.add_note(f"{source}\n{[x.shape for x in inputs]} {backward=} -p {pipeline}")
        raise
    return "backward" if backward else "forward"


def _drawn(rng: Random, numbers: np.random.Generator) -> tuple[str, list[np.ndarray]]:
    """The source of a function, and inputs it runs on."""
    shapes = [(3, 4), (4, 4), (2, 3, 4), (4,), (3, 1), (2, 3, 4), (5, 2), (1, 4), ()]
    inputs = [numbers.normal(size=rng.choice(some)).astype("f4") for some in (shapes[:-1], shapes)]
    values = {f"v{n}": jnp.asarray(x) for n, x in enumerate(inputs)}
    lines: list[str] = []
    wanted, tries = rng.randint(3, 7), 0
    while wanted and tries < 80:
        tries += 1
        names = list(values)
        x = names[-1] if rng.random() < 0.6 else rng.choice(names)
        rank = values[x].ndim
        axis = [rng.randint(-rank, rank - 1) if rank else 0 for _ in range(2)]
        places = {"x": x, "y": rng.choice(names), "d": axis[0], "e": axis[1]}
        text = rng.choice(rng.choice(FORMS)).text.format(**places, i=rng.choice([0, 1]))
        try:
            made = eval(text, {**_NAMES, **values})  # noqa: S307 - a line of the file above
        except (TypeError, ValueError, IndexError, ZeroDivisionError, AssertionError):
            continue
        if not 0 < made.size <= 3000 or made.ndim > 5 or made.dtype != np.float32:
            continue
        if not jnp.isfinite(made).all() or jnp.abs(made).max() > 1e3:
            continue
        lines.append(f"v{len(values)} = {text}")
        values[f"v{len(values)}"] = made
        wanted -= 1
    body = "\n    ".join([*lines, f"return {', '.join(list(values)[-3:])}"])
    return f"def function(v0, v1):\n    {body}\n", inputs
