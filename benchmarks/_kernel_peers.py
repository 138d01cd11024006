"""What the cases of `kernels.py` are timed beside, all on PyTorch's tensors.

given = inputs_of(torch, case, seed=0)
compiled_peer(torch, case, "max-autotune")(*given)
for name, peer in others(torch, case).items(): ...      # the backends of attention, say
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from _kernel_case import Case

MODES: dict[str, dict[str, str]] = {
    "compile": {},
    "max-autotune": {"mode": "max-autotune-no-cudagraphs"},
}
"""The options of `torch.compile` for each peer that is compiled."""

Call = Callable[..., Any]


def inputs_of(torch: Any, case: Case, seed: int) -> list[Any]:
    """Inputs of a case: normal numbers, and places in the range of what they are places in."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    dtypes = {
        "f16": torch.float16,
        "bf16": torch.bfloat16,
        "f32": torch.float32,
        "f64": torch.float64,
    }
    made: list[Any] = []
    for one in case.inputs:
        if one.below:
            options = {"generator": generator, "device": "cuda"}
            made.append(torch.randint(one.below, one.shape, **options))
        else:
            cells = torch.randn(one.shape, generator=generator, device="cuda")
            made.append(cells.to(dtypes[one.dtype]))
    return made


def eager_peer(torch: Any, case: Case) -> Call:
    """The case in PyTorch."""

    def eager(*given: Any) -> Any:
        return case.peer(torch, *given)

    return eager


def compiled_peer(torch: Any, case: Case, name: str) -> Call:
    """The case by `torch.compile`, compiled when it is called."""
    torch.compiler.reset()
    return torch.compile(eager_peer(torch, case), **MODES[name])


def others(torch: Any, case: Case) -> dict[str, Call]:
    """What else says how fast a case can be; nothing of it is compiled."""
    return {name: partial(peer, torch) for name, peer in case.beside.items()}


def quiet() -> None:
    """Have Inductor say nothing of candidates that do not fit: it tries some that cannot."""
    from torch._logging import set_logs

    set_logs(inductor=logging.CRITICAL)
