"""The part of `gpu_check.py` about models of PyTorch that the backend compiles.

Each model is checked against itself in float64, and timed by every compiler before the next model
comes: so what is compared was measured within seconds. A time is that of calls that follow each
other, as a server's or a training loop's do: the GPU's, or the host's where that takes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from traceback import print_exception
from typing import TYPE_CHECKING, Any

from _gpu_rows import Rows, within
from _kernel_peers import quiet

if TYPE_CHECKING:
    from _gpu_networks import Network

RESERVE = 8.0
"""Seconds of the part that its start and end take."""
CALLS = 10
"""Calls that follow each other."""
REPEATS = 7
"""How often these are timed."""
LONGEST = 45.0
"""Seconds that one compiler may take for one model."""
OURS = ("tapestry", "tapestry, graphs")


def backends() -> dict[str, Callable[[Any], Callable[..., Any]]]:
    """What compiles a model, what is to be known first coming first.

    Both compilers launch kernels one by one, and replay CUDA graphs: max-autotune has them.
    """
    import torch

    # By its function: its name is known only where Tapestry is installed.
    from tapestry.importers.torch import backend

    def by(**options: Any) -> Callable[[Any], Callable[..., Any]]:
        return lambda model: torch.compile(model, dynamic=False, **options)

    return {
        "tapestry": by(backend=backend),
        "eager": lambda model: model,
        "tapestry, graphs": by(backend=backend, options={"graphs": True}),
        "inductor": by(),
        "max-autotune": by(mode="max-autotune"),
    }


def models_part(path: Path, seconds: float, *, small: bool = False) -> dict[str, Any]:
    """Models of PyTorch: results against float64, and time beside eager and inductor."""
    import torch
    from _gpu_networks import NETWORKS

    quiet()
    end = perf_counter() + seconds - RESERVE
    kept = Rows(path)
    end = kept.rest.setdefault("until", end)
    for model, network in NETWORKS.items():
        made = None
        for name, compiling in backends().items():
            if kept.has(model=model, by=name) or perf_counter() >= end:
                continue
            kept.add({"model": model, "by": name})  # also where the process dies of it
            made = made or Checked(network, small=small)
            kept.rows[-1] |= made.row(compiling, min(LONGEST, end - perf_counter()))
            kept.write()
            kept.restart_if_lost(torch)
    ours = [row for row in kept.rows if row["by"] in OURS]
    right = sum(row.get("right", False) for row in ours)
    summary = f"{right} of {len(ours)} models right"
    return {**kept.rest, "rows": kept.rows, "summary": summary, "ok": right == len(ours)}


class Checked:
    """A model on the GPU, and its results in float64."""

    def __init__(self, network: Network, *, small: bool = False) -> None:
        import torch

        network = network.small if small else network
        self._network, self._small = network, small
        wide = network.made("cuda", torch.float64)
        self._wanted = [one.cpu() for one in network.run(*wide)]
        del wide
        torch.cuda.empty_cache()
        self._module, self._inputs = network.made("cuda")

    def row(self, compiling: Callable[[Any], Callable[..., Any]], left: float) -> dict[str, Any]:
        """The model by a compiler: the error, and what compiling and a call take."""
        import torch

        torch.compiler.reset()
        row: dict[str, Any] = {}
        try:
            with within(left):
                began = perf_counter()
                compiled = compiling(self._module)
                run = lambda: self._network.run(self._module, self._inputs, compiled)  # noqa: E731
                found = run()
                row["compile_seconds"] = perf_counter() - began
                row["error"] = self.error(found)
                row["right"] = row["error"] < self._network.tolerance
                del found
                row["us"], row["host_us"] = timed(run, small=self._small)
        except Exception as error:  # noqa: BLE001 - the table says what failed
            print_exception(error)
            row["problem"] = f"{type(error).__name__}: {error}"[:600]
        return row

    def error(self, found: Sequence[Any]) -> float:
        """The largest difference of a result, relative to its largest cell."""
        pairs = zip(found, self._wanted, strict=True)
        return max(_apart(one.detach().cpu().double(), wanted) for one, wanted in pairs)


def _apart(one: Any, other: Any) -> float:
    return float((one - other).abs().max() / other.abs().max().clamp_min(1e-30))


def timed(run: Callable[[], object], *, small: bool = False) -> tuple[float, float]:
    """Microseconds of one of many calls: until the GPU has done it, and on the host alone."""
    calls, repeats = (1, 1) if small else (CALLS, REPEATS)
    import torch

    for _ in range(3):  # graphs are captured by the second call, or the third
        run()
    torch.cuda.synchronize()
    whole: list[float] = []
    host: list[float] = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        began = perf_counter()
        begin.record()
        for _ in range(calls):
            run()
        end.record()
        host.append(perf_counter() - began)
        end.synchronize()
        whole.append(begin.elapsed_time(end) * 1e3)
    return median(whole) / calls, median(host) / calls * 1e6
