"""What `torch.compile` makes of cases and models, compiled by several processes at once.

    python benchmarks/_gpu_peers.py table.json 60       # for a minute; the part `peers`

Inductor and Triton keep what they compiled in folders that later processes read, with the choices
that max-autotune made: so the parts that time find it there. While the processes compile, each
measures candidates alone, under a lock: Inductor's choices are those that it makes by itself. What
is not reached, or fails, is compiled where it is timed.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Timer
from time import perf_counter
from traceback import print_exception
from typing import Any, Self

from _gpu_rows import Rows
from _kernel_peers import compiled_peer, inputs_of, quiet

WORKERS = min(10, os.cpu_count() or 1)
"""Processes that compile; each also has threads that do."""
THREADS = 2
LONGEST = 90.0
"""Seconds after which a process that compiles one thing is stopped."""


@dataclass(frozen=True)
class Job:
    """Something to compile: a case of `kernels.py` or a model, and what by."""

    kind: str
    name: str
    by: str


def jobs() -> list[Job]:
    """What there is to compile, the most worthwhile first."""
    from _gpu_networks import NETWORKS
    from _kernel_cases import CASES
    from _kernel_measuring import spread

    cases = [case.name for case in spread(CASES)]
    early = [Job("model", name, "tapestry") for name in NETWORKS]
    early += [Job("case", name, "compile") for name in cases]
    early += [Job("model", name, "inductor") for name in NETWORKS]
    # Models take long: each begins while others do some cases.
    models = iter(NETWORKS)
    late: list[Job] = []
    for number, name in enumerate(cases):
        late += [Job("model", one, "max-autotune") for one in islice(models, number % 4 == 0)]
        late.append(Job("case", name, "max-autotune"))
    return [*early, *late, *(Job("model", one, "max-autotune") for one in models)]


def peers_part(path: Path, seconds: float, *, small: bool = False) -> dict[str, Any]:
    """Compile as much as there is time for; a row for each."""
    end = perf_counter() + seconds
    kept, lock = Rows(path), Lock()
    kept.write()
    waiting: SimpleQueue[Job] = SimpleQueue()
    for job in jobs():
        if not kept.has(**asdict(job)):
            waiting.put(job)

    def work(_: int) -> None:
        with Worker(small=small) as worker:
            while (left := end - perf_counter()) > 0:
                try:
                    job = waiting.get_nowait()
                except Empty:
                    return
                row = asdict(job) | worker.compile(job, min(left, LONGEST))
                with lock:
                    kept.add(row)

    with tempfile.NamedTemporaryFile() as turns:
        os.environ[TURNS] = turns.name
        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(work, range(WORKERS)))
    made = sum("seconds" in row for row in kept.rows)
    summary = f"{made} compiled, {len(kept.rows) - made} failed, {waiting.qsize()} not reached"
    return {**kept.rest, "rows": kept.rows, "summary": summary}


class Worker:
    """A process that compiles what it is given, and another one where it ends."""

    def __init__(self, *, small: bool) -> None:
        self._small = small
        self._process: subprocess.Popen[str] | None = None

    def compile(self, job: Job, limit: float) -> dict[str, Any]:
        """The seconds that it took, or a problem."""
        if self._process is None or self._process.poll() is not None:
            tiny = ["--small"] if self._small else []
            self._process = subprocess.Popen(
                [sys.executable, __file__, "worker", *tiny],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        late = Timer(limit, process.kill)
        late.start()
        try:
            process.stdin.write(json.dumps(asdict(job)) + "\n")
            process.stdin.flush()
            said = process.stdout.readline()
        except OSError:
            said = ""
        finally:
            late.cancel()
        if said:
            return json.loads(said)
        process.wait()
        return {"problem": f"its process ended with {process.returncode}, {limit:.0f} s at most"}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


TURNS = "TAPESTRY_BENCHMARK_TURNS"
"""The file whose lock a process holds while it measures."""


def worker(*, small: bool) -> None:
    """Compile what is asked for on stdin; an answer for each goes where stdout was."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = str(THREADS)
    import torch

    quiet()
    taking_turns()
    for line in sys.stdin:
        job, began = Job(**json.loads(line)), perf_counter()
        try:
            COMPILED[job.kind](torch, job, small=small)
            row: dict[str, Any] = {"seconds": perf_counter() - began}
        except Exception as error:  # noqa: BLE001 - the row says what failed
            print_exception(error)
            row = {"problem": f"{type(error).__name__}: {error}"[:300]}
        answers.write(json.dumps(row) + "\n")
        answers.flush()
        torch.cuda.empty_cache()


def _case(torch: Any, job: Job, *, small: bool) -> None:
    """Compile a peer of a case, by calling it."""
    from _kernel_cases import CASES

    case = next(one for one in CASES if one.name == job.name)
    case = case.small if small else case
    compiled_peer(torch, case, job.by)(*inputs_of(torch, case, 0))
    torch.cuda.synchronize()


def _model(torch: Any, job: Job, *, small: bool) -> None:
    """Compile a model, by calling it."""
    from _gpu_models import backends
    from _gpu_networks import NETWORKS

    torch.compiler.reset()
    network = NETWORKS[job.name].small if small else NETWORKS[job.name]
    module, inputs = network.made("cuda")
    network.run(module, inputs, backends()[job.by](module))
    torch.cuda.synchronize()


COMPILED: dict[str, Callable[..., None]] = {"case": _case, "model": _model}


def taking_turns() -> None:
    """Have Inductor measure candidates while no other of these processes does."""
    from torch._inductor.runtime import benchmarking

    bench: Any = benchmarking.benchmarker
    measure = bench.benchmark_gpu

    measuring = False

    @functools.wraps(measure)
    def alone(*given: Any, **options: Any) -> Any:
        nonlocal measuring
        if measuring:  # one way to measure calls another
            return measure(*given, **options)
        with turn():
            measuring = True
            try:
                return measure(*given, **options)
            finally:
                measuring = False

    bench.benchmark_gpu = alone


@contextmanager
def turn() -> Iterator[None]:
    """Hold the lock of those who measure, where there are others."""
    name = os.environ.get(TURNS)
    if name is None:
        yield
        return
    with open(name) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield  # closing lets go


if __name__ == "__main__":
    worker(small="--small" in sys.argv)
