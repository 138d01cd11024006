"""Random functions of PyTorch, forward and backward, through the backend and without.

    def function(v0, v1):
        v0 = v0.clone()
        v2 = v0.transpose(0, 1)
        v2[..., 1:].mul_(v1[..., :1])
        v3 = v2.cumsum(-1)
        return v0, v3

Lines are drawn one at a time and kept where PyTorch runs them: maps, views, writes into views,
places as computed, folds, products, windows. Results, what is left in the arguments, and gradients
must be those of eager PyTorch.
"""

# pyright: basic
# PyTorch has no types to speak of.

from __future__ import annotations

from collections.abc import Callable
from random import Random

import torch
from torch._dynamo.exc import TorchRuntimeError, Unsupported

from tests.exploring.forms import read_forms
from tests.importers.torch.compare import compiled

FORMS = read_forms("torch_functions.txt")

_NAMES = {"torch": torch, "F": torch.nn.functional}


def check(seed: int) -> str:
    """How it was compared; raises where the backend gives anything else."""
    rng = Random(seed)
    torch.manual_seed(seed)
    dtype = rng.choice([torch.float64, torch.float64, torch.float32])
    source, inputs = _drawn(rng, dtype)
    function = _function(source)
    backward = rng.random() < 0.6
    try:
        want = _run(function, inputs, backward)
    except RuntimeError:
        want = None
    if want is None:
        return "not differentiable"
    if any(x.is_floating_point() and not x.isfinite().all() for x in want):
        return "not finite"
    try:
        _agree(_run(compiled(function), inputs, backward), want)
    except (TorchRuntimeError, Unsupported):
        return "refused by Dynamo"
    except Exception as error:
        if not _is_kept_by_pytorch(function, inputs, backward, want):
            return "other numbers by AOT autograd too"
        error.add_note(f"{source}\n{[tuple(x.shape) for x in inputs]} {dtype} {backward=}")
        raise
    return "forward and backward" if backward else "forward"


def _is_kept_by_pytorch(function, inputs, backward: bool, want: list[torch.Tensor]) -> bool:
    """Whether a function keeps its meaning where PyTorch traces it, and runs it as traced."""
    torch._dynamo.reset()
    try:
        _agree(_run(torch.compile(function, backend="aot_eager"), inputs, backward), want)
    except (AssertionError, RuntimeError):
        return False
    return True


def _drawn(rng: Random, dtype: torch.dtype) -> tuple[str, list[torch.Tensor]]:
    """The source of a function, and inputs it runs on."""
    shapes = [(3, 4), (4, 4), (2, 3, 4), (4,), (3, 1), (2, 3, 4, 4), (5, 2), (1, 4), ()]
    inputs = [torch.randn(rng.choice(shapes[:-1]), dtype=dtype)]
    inputs.append(torch.randn(rng.choice(shapes), dtype=dtype))
    values = {f"v{n}": x.clone() for n, x in enumerate(inputs)}
    lines = ["v0 = v0.clone()"] if rng.random() < 0.7 else []
    wanted, tries = rng.randint(3, 8), 0
    while wanted and tries < 200:
        tries += 1
        form = rng.choice(rng.choice(FORMS))
        names = list(values)
        x = names[-1] if rng.random() < 0.6 else rng.choice(names)
        rank = values[x].ndim
        places = {
            "x": x,
            "y": rng.choice(names),
            "d": rng.randint(-rank, rank - 1) if rank else 0,
            "e": rng.randint(-rank, rank - 1) if rank else 0,
            "i": rng.choice([0, 1]),
        }
        text = form.text.format(**places)
        line = text if form.kind == "writes" else f"v{len(values)} = {text}"
        # All lines are run again, so that views are views.
        trial = {f"v{n}": x.clone() for n, x in enumerate(inputs)}
        try:
            source = "\n".join([*lines, line])
            exec(source, dict(_NAMES), trial)  # noqa: S102 - lines of the file above
        except (RuntimeError, IndexError, TypeError, ValueError):
            continue
        made = list(trial.values())
        if any(v.numel() > 3000 or v.numel() == 0 or v.ndim > 5 for v in made):
            continue
        if any(not v.isfinite().all() or v.abs().max() > 1e3 for v in made):
            continue
        lines.append(line)
        values = trial
        wanted -= 1
    kept = list(values)[-3:]
    head = f"def function({', '.join(f'v{n}' for n in range(len(inputs)))}):"
    body = "\n    ".join([*lines, f"return {', '.join(kept)}"])
    return f"{head}\n    {body}\n", inputs


def _function(source: str) -> Callable[..., tuple[torch.Tensor, ...]]:
    scope: dict = dict(_NAMES)
    exec(source, scope)  # noqa: S102 - lines of the file above
    return scope["function"]


def _run(function, inputs, backward: bool) -> list[torch.Tensor] | None:
    """Results, what became of the inputs, and gradients."""
    given = [x.clone() for x in inputs]
    if not backward:
        with torch.no_grad():
            made = function(*given)
            return [*made, *given]
    leaves = [x.requires_grad_() for x in given]
    # What is written into must not be a leaf.
    made = function(*[leaf * 1 for leaf in leaves])
    slopes = [x for x in made if x.requires_grad]
    if not slopes:
        return None
    total = sum((x.sin() * (n + 1)).sum() for n, x in enumerate(slopes))
    found = torch.autograd.grad(total, leaves, allow_unused=True)
    # No gradient is one of zeros: AOT autograd does not tell them apart.
    pairs = zip(found, leaves, strict=True)
    slopes = (torch.zeros_like(leaf) if x is None else x for x, leaf in pairs)
    return [*(x.detach() for x in made), *slopes]


def _agree(got, want) -> None:
    assert len(got) == len(want)
    for n, (x, y) in enumerate(zip(got, want, strict=True)):
        size = float(y.abs().max()) if y.numel() else 0.0
        near = (2e-4 if y.dtype == torch.float32 else 1e-9) * (1 + size)
        torch.testing.assert_close(
            x, y, rtol=0, atol=near, msg=lambda text, n=n: f"result {n}: {text}"
        )
        assert x.shape == y.shape
