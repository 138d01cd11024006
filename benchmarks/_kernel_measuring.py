"""The cases of `kernels.py` on a GPU: checked, tuned, and timed beside PyTorch and the ceilings.

First every case is checked and timed beside eager PyTorch. Then come the peers that take long to
compile, then tuning, each for one case of every family first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from math import prod
from pathlib import Path
from time import perf_counter
from traceback import print_exception
from typing import Any

from _gpu_rows import Rows, within
from _kernel_case import Case
from _kernel_compiling import bytes_of, floor, loom_of, lowered_for
from _kernel_errors import TOLERANCES, error_of
from _kernel_peers import MODES, compiled_peer, eager_peer, inputs_of, others
from rich.console import Console
from rich.table import Table

from tapestry.codegen.driver import Cuda
from tapestry.codegen.module_files import write_module
from tapestry.codegen.module_printer import print_module
from tapestry.codegen.planning import plan_of
from tapestry.devices import DeviceSpec
from tapestry.passes.triton.cost.predicting import predictions
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.runtime.program import arguments
from tapestry.runtime.triton.compiled import compiled_launches
from tapestry.store import find_store
from tapestry.tuning.cuda import CudaBench, sustained_seconds, turns
from tapestry.tuning.programs import tuner_on
from tapestry.tuning.records import KIND
from tapestry.tuning.tuner import give_best

PEERS = ("eager", *MODES)

LONGEST = 30.0
"""Seconds that one peer may take to compile and to be timed."""


@dataclass
class Timing:
    """A case on the GPU: the error of its worst row against float64 (relative), and seconds.

    `tuned` is with the fastest schedule that was found, where tuning found one. `bytes` are those
    of the inputs and outputs, each read or written once. `picked` is what eager PyTorch ran.
    """

    case: str
    family: str
    error: float | None = None
    ours: float | None = None
    tuned: float | None = None
    peers: dict[str, float] = field(default_factory=dict)
    picked: str = ""
    bytes: int = 0
    floor: float = 0.0
    predicted: float = 0.0
    schedules: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    """Peers that failed, and what with."""
    measured: list[dict[str, Any]] = field(default_factory=list)
    """What tuning tried: kernels alone, their schedules, and seconds or problems."""
    problems: list[str] = field(default_factory=list)


class Gpu:
    """Checks, tunes and times cases on a GPU, through PyTorch."""

    def __init__(
        self, torch: Any, spec: DeviceSpec, seconds: float, tune: float, *, small: bool = False
    ) -> None:
        self.torch, self.spec, self.small = torch, spec, small
        self.end = perf_counter() + seconds
        self.tuning = tune

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.end - perf_counter()

    def ceilings(self) -> dict[str, float]:
        """Bytes per second of a copy, of reading (a sum) and of adding two tensors; and operations
        per second of a product in bf16.
        """
        torch = self.torch
        size, side = (1 << 16, 64) if self.small else (1 << 30, 8192)
        big = torch.empty(size, dtype=torch.uint8, device="cuda").random_()
        other = torch.empty_like(big)
        a = torch.randn(side, side, device="cuda", dtype=torch.bfloat16)
        self.time([lambda: a @ a])  # so that clocks are what they are under load
        product = self.time([lambda: a @ a])
        copy = self.time([lambda: other.copy_(big)])
        x, y, z = (one.view(torch.float32) for one in (big, other, torch.empty_like(big)))
        x.fill_(1.0)
        y.fill_(1.0)
        read = self.time([x.sum])
        add = self.time([lambda: torch.add(x, y, out=z)])
        return {
            "copy bytes/s": 2 * big.numel() / copy,
            "read bytes/s": big.numel() / read,
            "add bytes/s": 3 * big.numel() / add,
            "bf16 flop/s": 2 * side**3 / product,
        }

    def time(self, calls: Sequence[Callable[[], object]]) -> float:
        """The seconds of calls, which take turns."""
        return sustained_seconds(self.torch, calls)

    def scheduled(self, case: Case) -> Any:
        """The program of a case in loom, with the best schedules that are known."""
        module = loom_of(case)
        give_best(module, self.bench.device, find_store(KIND), self.bench.lowering)
        return module

    @property
    def bench(self) -> CudaBench:
        """Where candidates are measured."""
        return CudaBench(self.torch, LoomToTriton(device=self.spec.name))

    def tune(self, case: Case, seconds: float) -> tuple[Any, list[dict[str, Any]]]:
        """A case with the schedules that make it faster, looked for for some time.

        It comes in loom, with all that is known of each of its kernels untuned on the device.
        """
        tuner, module = tuner_on(self.bench, self.spec, find_store(KIND)), loom_of(case)
        found = tuner.tune(module, seconds)
        tuner.give(module, found)
        return module, [
            {
                "kernel": tuned.job.task.name,
                "place": tuned.job.place,
                "device": self.spec.name,
                "schedule": str(one.schedule),
                "seconds": one.seconds,
                "problem": one.problem,
            }
            for tuned in found
            for one in tuned.records.made.values()
        ]

    def launch(self, lowered: Any) -> Callable[..., Any]:
        """What runs a program in triton on tensors, as the executor does."""
        made = print_module(lowered)
        plan, path = plan_of(lowered, made.kernels), write_module(made.source)
        run = compiled_launches(path, made.kernels, plan, Cuda(), {})

        def launch(*given: Any) -> Any:
            results = run(given)
            return results[0] if len(results) == 1 else results

        return launch

    def running(self, case: Case, module: Any, lowered: Any) -> Callable[..., Any]:
        """What runs a case on its inputs: a program takes them in the order in which it uses them.

        `module` is the program in loom, `lowered` in triton.
        """
        launch = self.launch(lowered)
        places = {one.name: place for place, one in enumerate(case.inputs)}
        order = [places[argument.name] for argument in arguments(module)]
        return lambda *given: launch(*(given[place] for place in order))

    def sets(self, case: Case) -> list[list[Any]]:
        """Sets of inputs that take turns, so that they are not all in the L2."""
        given = inputs_of(self.torch, case, 0)
        size = sum(one.numel() * one.element_size() for one in given)
        more = (inputs_of(self.torch, case, seed) for seed in range(1, turns(size)))
        return [given, *more]

    def check(self, case: Case) -> Timing:
        """Check a case, and time it and eager PyTorch."""
        row = Timing(case.name, case.family)
        module = self.scheduled(case)
        lowered = lowered_for(module, self.spec.name)
        predicted = predictions(lowered, self.spec)
        row.floor, row.bytes = floor(module, lowered, self.spec), bytes_of(module)
        row.predicted = sum(one.estimate.seconds for one in predicted)
        row.schedules = list(dict.fromkeys(str(one.schedule) for one in predicted))
        launch, sets = self.running(case, module, lowered), self.sets(case)
        row.error = self.error(case, launch(*sets[0]), sets[0])
        if not row.error <= TOLERANCES[case.inputs[0].dtype]:
            row.problems.append(f"error {row.error:.1e}")
        row.ours = self.time([lambda one=one: launch(*one) for one in sets])
        self.beside(case, row, "eager", *case.beside)
        if case.picked is not None:
            with suppress(RuntimeError):  # of PyTorch's own, which say nothing of the case
                row.picked = case.picked(self.torch, *sets[0])
        return row

    def beside(self, case: Case, row: Timing, *names: str) -> None:
        """Time peers."""
        sets, known = self.sets(case), self.peers(case)
        for name in names:
            try:
                with within(min(LONGEST, max(self.left, 1.0))):
                    peer = known[name]()
                    row.peers[name] = self.time([partial(peer, *one) for one in sets])
            except Exception as error:  # noqa: BLE001 - what a peer fails with is said in its row
                row.missing[name] = said(error)

    def improve(self, case: Case, row: Timing, seconds: float) -> None:
        """Tune a case for some time, check it and time it again."""
        module, row.measured = self.tune(case, seconds)
        lowered = lowered_for(module, self.spec.name)
        launch, sets = self.running(case, module, lowered), self.sets(case)
        error = self.error(case, launch(*sets[0]), sets[0])
        if not error <= TOLERANCES[case.inputs[0].dtype]:
            row.problems.append(f"tuned: error {error:.1e}")
        row.tuned = self.time([lambda one=one: launch(*one) for one in sets])

    def error(self, case: Case, got: Any, given: Sequence[Any]) -> float:
        """How far the worst row is from what PyTorch computes in float64, relative to it."""
        torch = self.torch
        try:
            wide = [one.double() if one.is_floating_point() else one for one in given]
            want = case.peer(torch, *wide)
        except torch.OutOfMemoryError:
            want = case.peer(torch, *given)
        outputs = (got, want) if isinstance(want, tuple) else ((got,), (want,))
        dtype = case.inputs[0].dtype
        return max(error_of(torch, one, other, dtype) for one, other in zip(*outputs, strict=True))

    def peers(self, case: Case) -> dict[str, Callable[[], Callable[..., Any]]]:
        """What makes each peer: they are compiled when their turn comes."""
        torch = self.torch
        return {
            "eager": lambda: eager_peer(torch, case),
            **{name: partial(compiled_peer, torch, case, name) for name in MODES},
            **{name: lambda one=one: one for name, one in others(torch, case).items()},
        }


def said(error: Exception) -> str:
    """The first line of an error; the whole of it is printed."""
    print_exception(error)
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"[:200]


def measured(
    cases: Sequence[Case], gpu: Gpu, console: Console, path: Path | None = None
) -> dict[str, Any]:
    """Measure cases for as long as there is time; a case that fails is a row, not the end.

    The table is in the file `path` at any time; what is there already is not measured again.
    """
    kept = Rows(path)
    # Also for what is started in this process's place: the clock is the machine's.
    gpu.end = kept.rest.setdefault("until", gpu.end)
    if "ceilings" not in kept.rest:
        kept.rest["ceilings"] = gpu.ceilings()
    rows = {one["case"]: Timing(**one) for one in kept.rows}

    def keep(row: Timing) -> None:
        rows[row.case] = row
        kept.rows = [asdict(one) for one in rows.values()]
        kept.write()
        kept.restart_if_lost(gpu.torch)

    fresh = [case for case in cases if case.name not in rows]
    for number, case in enumerate(fresh):
        if gpu.left <= 0:
            console.print(
                f"no time was left for {case.name} and the {len(fresh) - number - 1} after it"
            )
            break
        # Where the process dies of it, that is what became of it.
        keep(Timing(case.name, case.family, problems=["it did not end"]))
        keep(checked(gpu, case))
        row = rows[case.name]
        console.print(f"{row.case}: {microseconds(row.ours)} us {'; '.join(row.problems)}")
    working = [case for case in cases if case.name in rows and rows[case.name].ours]
    for case in spread(working):
        for name in PEERS[1:]:
            row = rows[case.name]
            tried = name in row.peers or name in row.missing
            if gpu.left > gpu.tuning and not tried:
                gpu.beside(case, row, name)
                keep(row)
    for number, case in enumerate(spread(working)):
        row = rows[case.name]
        share = max(5.0, min(gpu.tuning, gpu.left) / max(1, len(working) - number))
        if gpu.tuning > 0 and gpu.left > share and row.tuned is None:
            try:
                gpu.improve(case, row, share)
            except Exception as error:  # noqa: BLE001 - see above
                row.problems.append(f"tuned: {said(error)}")
            keep(row)
    show_measured(list(rows.values()), console)
    return {"ceilings": kept.rest["ceilings"], "rows": [asdict(row) for row in rows.values()]}


def checked(gpu: Gpu, case: Case) -> Timing:
    """The row of a case; one with its problem where it failed."""
    try:
        return gpu.check(case)
    except Exception as error:  # noqa: BLE001 - see above
        return Timing(case.name, case.family, problems=[said(error)])


def spread(cases: Sequence[Case]) -> Iterator[Case]:
    """Cases, the last of every family first: these are the largest, mostly."""
    families: dict[str, list[Case]] = {}
    for case in cases:
        families.setdefault(case.family, []).append(case)
    while families:
        for name in list(families):
            yield families[name].pop()
            if not families[name]:
                del families[name]


def show_measured(rows: Sequence[Timing], console: Console) -> None:
    """Print a table, and the geometric mean beside each peer."""
    table = Table(title="kernels, measured", title_justify="left")
    table.add_column("case")
    ratios = [f"{name}/ours" for name in PEERS]
    for column in ("error", "us", "tuned us", "predicted us", "floor/us", *ratios):
        table.add_column(column, justify="right")
    table.add_column("problems")
    for row in rows:
        table.add_row(
            row.case,
            "" if row.error is None else f"{row.error:.1e}",
            microseconds(row.ours),
            microseconds(row.tuned),
            microseconds(row.predicted),
            times(row.floor, row.ours),
            *(times(row.peers.get(name), row.ours) for name in PEERS),
            "; ".join([*row.problems, *(f"{n}: {why}" for n, why in row.missing.items())]),
        )
    console.print(table)
    for name in PEERS:
        found = [row.peers[name] / row.ours for row in rows if row.ours and name in row.peers]
        if found:
            mean = prod(found) ** (1 / len(found))
            console.print(f"{name} / ours: geometric mean {mean:.3f}, least {min(found):.3f}")


def microseconds(seconds: float | None) -> str:
    """Seconds as microseconds; nothing where there are none."""
    return "" if seconds is None else f"{seconds * 1e6:.1f}"


def times(one: float | None, other: float | None) -> str:
    """How many times another time one is; nothing where one of them is not known."""
    return f"{one / other:.2f}" if one and other else ""
