"""Kernels that are compiled while the program that they are of is still being lowered.

    with compiling_ahead((90,), workers=2) as made:
        lowering.lower(Context(), module, made=made)    # tells it of each kernel
    compile_kernels(path, kernels, ...)                 # waits for those, compiles the others

A kernel that turns out to be another one in the end, by its name or by who launches it, is compiled
as it is then: what was begun ahead only saves time. Nothing is where no answers are kept.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

from tapestry.codegen.aot_jobs import Job
from tapestry.codegen.module_printer import print_alone
from tapestry.codegen.units import unit_of
from tapestry.dialects import triton
from tapestry.passes.triton.host.launching import Made
from tapestry.store import find_store

_Answer: TypeAlias = "Mapping[str, Any]"


@dataclass
class _Begun:
    """The jobs of this process that were begun ahead, by their keys, until they are done."""

    owner: int = field(default_factory=os.getpid)
    pools: dict[int, ThreadPoolExecutor] = field(default_factory=dict[int, ThreadPoolExecutor])
    jobs: dict[str, Future[_Answer]] = field(default_factory=dict[str, "Future[_Answer]"])
    lock: Any = field(default_factory=Lock)

    def find(self, job: Job) -> Future[_Answer] | None:
        """The answer of a job that is not done yet."""
        with self.lock:
            return self.jobs.get(job.key)

    def begin(self, job: Job, workers: int) -> Future[_Answer]:
        """Have a job run, unless it is, in one of so many processes."""
        with self.lock:
            found = self.jobs.get(job.key)
            if found is not None:
                return found
            pool = self.pools.setdefault(workers, ThreadPoolExecutor(workers))
            made = self.jobs[job.key] = pool.submit(job.run)
        # Where it is done already, this is called at once, and takes the lock.
        made.add_done_callback(lambda _: self._forget(job.key))
        return made

    def _forget(self, key: str) -> None:
        with self.lock:
            self.jobs.pop(key, None)


_begun = _Begun()


def _of_this_process() -> _Begun:
    """What was begun here: a process that was forked has no threads of the one before."""
    global _begun  # noqa: PLW0603 - one for each process
    if _begun.owner != os.getpid():
        _begun = _Begun()
    return _begun


@contextmanager
def compiling_ahead(targets: Sequence[int], workers: int) -> Generator[Made | None]:
    """What is told of kernels that are to be compiled for each target; None where none is kept.

    What is not begun when an error ends it is not compiled.
    """
    store = find_store("aot")
    if store is None:
        yield None
        return
    begun, futures = _of_this_process(), list[Future[_Answer]]()

    def made(kernel: triton.KernelOp, launch: triton.LaunchOp) -> None:
        printed = print_alone(kernel, [launch])
        (spec,) = printed.kernels
        unit = unit_of(printed.source, spec.name)
        for target in targets:
            job = Job(Path(f"{spec.name}.py"), unit, spec, target, store)
            if job.known() is None:
                futures.append(begun.begin(job, workers))

    try:
        yield made
    except BaseException:
        for one in futures:
            one.cancel()
        raise


def answers_of(jobs: Sequence[Job], workers: int) -> list[_Answer]:
    """The answers to jobs, in order, of at most so many processes at once.

    Those that were begun ahead are waited for; where there are some, the others are run beside
    them, by the same processes.
    """
    begun = _of_this_process()
    running = {job.key: one for job in jobs if (one := begun.find(job)) is not None}
    # What was done in between is known now.
    found = {job.key: job.known() for job in jobs if job.key not in running}
    left = [job for job in jobs if job.key not in running and found[job.key] is None]
    if running:
        running |= {job.key: begun.begin(job, workers) for job in left}
        found |= {job.key: _result(job, running[job.key]) for job in jobs if job.key in running}
    elif left:
        with ThreadPoolExecutor(max(1, min(workers, len(left)))) as pool:
            # One by one, for they take unlike times: whichever process is free gets the next.
            found |= zip((job.key for job in left), pool.map(Job.run, left), strict=True)
    return [answer for job in jobs if (answer := found[job.key]) is not None]


def _result(job: Job, running: Future[_Answer]) -> _Answer:
    """The answer of a job that is running, which who began it may have given up."""
    try:
        return running.result()
    except CancelledError:
        return job.run()
