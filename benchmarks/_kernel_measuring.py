"""The cases of `kernels.py` on a GPU: checked, tuned, and timed beside PyTorch and the ceilings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from math import prod
from time import perf_counter
from typing import Any

from _kernel_cases import Case
from _kernel_compiling import floor, loom_of, lowered_for
from rich.console import Console
from rich.table import Table

from tapestry.codegen.host_printer import ENTRY
from tapestry.codegen.module_printer import print_module
from tapestry.devices import DeviceSpec
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.predicting import predictions
from tapestry.runtime.triton_module import load_kernels, write_module
from tapestry.store import find_store
from tapestry.tuning import Tuner
from tapestry.tuning.cuda import CudaBench, sustained_seconds, turns
from tapestry.tuning.records import KIND
from tapestry.tuning.tuner import give_best

PEERS = ("eager", "compile", "max-autotune")
NOT_A_NUMBER = float("nan")
TOLERANCES = {"f16": 2e-2, "bf16": 5e-2, "f32": 1e-3}


@dataclass
class Timing:
    """A case on the GPU: the error against float64 (relative), and seconds."""

    case: str
    family: str
    error: float = NOT_A_NUMBER
    ours: float = NOT_A_NUMBER
    peers: dict[str, float] = field(default_factory=dict)
    floor: float = 0.0
    predicted: float = 0.0
    schedules: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Gpu:
    """Checks, tunes and times cases on a GPU, through PyTorch."""

    def __init__(self, torch: Any, spec: DeviceSpec, seconds: float, tune: float) -> None:
        self.torch, self.spec = torch, spec
        self.end = perf_counter() + seconds
        self.tune = tune

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.end - perf_counter()

    def ceilings(self) -> dict[str, float]:
        """Bytes per second of a copy, and operations per second of a product in bf16."""
        torch = self.torch
        big = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").random_()
        other = torch.empty_like(big)
        copy = self.time([lambda: other.copy_(big)])
        a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
        product = self.time([lambda: a @ a])
        return {"copy bytes/s": 2 * big.numel() / copy, "bf16 flop/s": 2 * 8192**3 / product}

    def time(self, calls: Sequence[Callable[[], object]]) -> float:
        """The seconds of calls, which take turns."""
        return sustained_seconds(self.torch, calls)

    def inputs(self, case: Case, seed: int) -> list[Any]:
        """Inputs of a case: normal numbers, and places in the range of what they are places in."""
        torch = self.torch
        generator = torch.Generator(device="cuda").manual_seed(seed)
        dtypes = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
        made: list[Any] = []
        for one in case.inputs:
            if one.below:
                options = {"generator": generator, "device": "cuda"}
                made.append(torch.randint(one.below, one.shape, **options))
            else:
                cells = torch.randn(one.shape, generator=generator, device="cuda")
                made.append(cells.to(dtypes[one.dtype]))
        return made

    def scheduled(self, case: Case, seconds: float) -> Any:
        """The program of a case in loom, with the best schedules that are known or found now."""
        module = loom_of(case)
        bench, store = CudaBench(self.torch, LoomToTriton()), find_store(KIND)
        if seconds > 0:
            Tuner(bench, self.spec, LoomToTriton(), store).tune(module, seconds)
        give_best(module, bench.device, store, LoomToTriton())
        return module

    def launch(self, lowered: Any) -> Callable[..., Any]:
        """What runs a program in triton on tensors."""
        return vars(load_kernels(write_module(print_module(lowered).source)))[ENTRY]

    def measure(self, case: Case, seconds: float) -> Timing:
        """Tune a case for some time, check it, and time it and its peers."""
        row = Timing(case.name, case.family)
        module = self.scheduled(case, seconds)
        lowered = lowered_for(module, self.spec.name)
        predicted = predictions(lowered, self.spec)
        row.floor = floor(module, lowered, self.spec)
        row.predicted = sum(one.estimate.seconds for one in predicted)
        row.schedules = list(dict.fromkeys(str(one.schedule) for one in predicted))
        launch = self.launch(lowered)
        given = self.inputs(case, 0)
        row.error = self.error(case, launch(*given), given)
        if not row.error <= TOLERANCES[case.inputs[0].dtype]:
            row.problems.append(f"error {row.error:.1e}")
        size = sum(one.numel() * one.element_size() for one in given)
        sets = [given, *(self.inputs(case, seed) for seed in range(1, turns(size)))]
        row.ours = self.time([lambda one=one: launch(*one) for one in sets])
        for name, make in self.peers(case).items():
            if self.left <= 0:
                row.problems.append(f"no time for {name}")
                continue
            try:
                peer = make()
                row.peers[name] = self.time([lambda one=one, p=peer: p(*one) for one in sets])
            except Exception as error:  # noqa: BLE001 - what a peer fails with is said in its row
                row.problems.append(f"{name}: {said(error)}")
        return row

    def error(self, case: Case, got: Any, given: Sequence[Any]) -> float:
        """How far outputs are from what PyTorch computes in float64, relative to these."""
        torch = self.torch
        try:
            wide = [one.double() if one.is_floating_point() else one for one in given]
            want = case.peer(torch, *wide)
        except torch.OutOfMemoryError:
            want = case.peer(torch, *given).double()
        return float((got.double() - want).norm() / want.norm().clamp_min(1e-30))

    def peers(self, case: Case) -> dict[str, Callable[[], Callable[..., Any]]]:
        """What makes each peer: they are compiled when their turn comes."""
        torch = self.torch

        def eager(*given: Any) -> Any:
            return case.peer(torch, *given)

        def compiled(**options: Any) -> Callable[..., Any]:
            torch.compiler.reset()
            return torch.compile(eager, **options)

        return {
            "eager": lambda: eager,
            "compile": compiled,
            "max-autotune": lambda: compiled(mode="max-autotune-no-cudagraphs"),
        }


def said(error: Exception) -> str:
    """The first line of an error."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"[:200]


def measured(cases: Sequence[Case], gpu: Gpu, console: Console) -> dict[str, Any]:
    """Measure cases for as long as there is time; a case that fails is a row, not the end."""
    ceilings = gpu.ceilings()
    rows: list[Timing] = []
    for number, case in enumerate(cases):
        if gpu.left <= 0:
            console.print(
                f"no time was left for {case.name} and the {len(cases) - number - 1} after it"
            )
            break
        try:
            rows.append(gpu.measure(case, gpu.tune / len(cases)))
        except Exception as error:  # noqa: BLE001 - see above
            rows.append(Timing(case.name, case.family, problems=[said(error)]))
        row = rows[-1]
        console.print(f"{row.case}: {row.ours * 1e6:.1f} us {'; '.join(row.problems)}")
    show_measured(rows, console)
    return {"ceilings": ceilings, "timings": [asdict(row) for row in rows]}


def show_measured(rows: Sequence[Timing], console: Console) -> None:
    """Print a table, and the geometric mean beside each peer."""
    table = Table(title="kernels, measured", title_justify="left")
    table.add_column("case")
    ratios = [f"{name}/ours" for name in PEERS]
    for column in ("error", "us", "predicted us", "floor/us", *ratios):
        table.add_column(column, justify="right")
    table.add_column("problems")
    for row in rows:
        table.add_row(
            row.case,
            f"{row.error:.1e}",
            f"{row.ours * 1e6:.1f}",
            f"{row.predicted * 1e6:.1f}",
            f"{row.floor / row.ours:.2f}",
            *(f"{row.peers[n] / row.ours:.2f}" if n in row.peers else "" for n in PEERS),
            "; ".join(row.problems),
        )
    console.print(table)
    for name in PEERS:
        found = [row.peers[name] / row.ours for row in rows if name in row.peers]
        if found:
            mean = prod(found) ** (1 / len(found))
            console.print(f"{name} / ours: geometric mean {mean:.3f}, least {min(found):.3f}")
