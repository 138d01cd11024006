"""Kernels that are compiled while the program that they are of is still being lowered.

    with compiling_ahead((90,), workers=2) as made:
        lowering.lower(Context(), module, made=made)    # tells it of each kernel
    compile_kernels(path, kernels, ...)                 # waits for those, compiles the others

A kernel that turns out to be another one in the end, by its name or by who launches it, is compiled
as it is then: what was begun ahead only saves time. Nothing is where no answers are kept.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, TypeAlias

from tapestry.codegen.aot_jobs import Job
from tapestry.codegen.module_printer import print_alone
from tapestry.codegen.units import unit_of
from tapestry.dialects import triton
from tapestry.passes.triton.host.launching import Made
from tapestry.store import find_store

_Answer: TypeAlias = "Mapping[str, Any]"
_Begun: TypeAlias = "Future[_Answer]"

_KEPT: Final = 256
"""How many refusals are kept, of kernels that nobody has asked for."""


@dataclass
class _Ahead:
    """The jobs of this process that were begun ahead, until they are done and kept.

    What is refused is not kept: it stays here until somebody asks for it. Threads are daemons: a
    process that ends does not wait for kernels.
    """

    owner: int = field(default_factory=os.getpid)
    jobs: dict[Job, _Begun] = field(default_factory=dict[Job, "_Begun"])
    queue: SimpleQueue[tuple[Job, _Begun]] = field(
        default_factory=SimpleQueue["tuple[Job, _Begun]"]
    )
    threads: list[Thread] = field(default_factory=list[Thread])
    lock: Any = field(default_factory=Lock)

    def find(self, job: Job) -> _Begun | None:
        """The answer of a job that was begun; who asks for it takes it."""
        with self.lock:
            found = self.jobs.get(job)
            if found is not None and found.done():
                del self.jobs[job]
            return found

    def begin(self, job: Job, workers: int) -> _Begun:
        """Have a job run, unless it is, by one of so many threads, or of those that there are."""
        with self.lock:
            if job in self.jobs:
                return self.jobs[job]
            made = self.jobs[job] = Future()
            while len(self.threads) < max(1, workers):
                self.threads.append(Thread(target=self._work, daemon=True))
                self.threads[-1].start()
        self.queue.put((job, made))
        return made

    def _work(self) -> None:
        while True:
            job, made = self.queue.get()
            kept = False
            if made.set_running_or_notify_cancel():
                try:
                    answer = job.run()
                    kept = "error" not in answer
                    made.set_result(answer)
                except BaseException as error:  # noqa: BLE001 - who waits for it is told
                    made.set_exception(error)
            with self.lock:
                if kept or made.cancelled():
                    self.jobs.pop(job, None)
                done = [one for one, begun in self.jobs.items() if begun.done()]
                for one in done[:-_KEPT]:
                    del self.jobs[one]


_ahead = _Ahead()


def _of_this_process() -> _Ahead:
    """What was begun here: a process that was forked has no threads of the one before."""
    global _ahead  # noqa: PLW0603 - one for each process
    if _ahead.owner != os.getpid():
        _ahead = _Ahead()
    return _ahead


@contextmanager
def compiling_ahead(targets: Sequence[int], workers: int) -> Generator[Made | None]:
    """What is told of kernels that are to be compiled for each target; None where none is kept.

    What is not running when an error ends it is not compiled.
    """
    store = find_store("aot")
    if store is None:
        yield None
        return
    ahead, begun = _of_this_process(), list[_Begun]()

    def made(kernel: triton.KernelOp, launch: triton.LaunchOp) -> None:
        printed = print_alone(kernel, [launch])
        (spec,) = printed.kernels
        unit = unit_of(printed.source, spec.name)
        for target in targets:
            job = Job(unit, spec, target, store)
            if job.known() is None:
                begun.append(ahead.begin(job, workers))

    try:
        yield made
    except BaseException:
        _give_up(begun)
        raise


def answers_of(jobs: Sequence[Job], workers: int) -> list[_Answer]:
    """The answers to jobs, in order.

    Those that were begun ahead are waited for; where there are some, the others are run beside
    them, by the same threads. Else so many run at once.
    """
    ahead = _of_this_process()
    begun = {job: one for job in jobs if (one := ahead.find(job)) is not None}
    # What was done in between is known now.
    known = {job: answer for job in jobs if job not in begun and (answer := job.known())}
    left = [job for job in jobs if job not in begun and job not in known]
    if not begun:
        with ThreadPoolExecutor(max(1, min(workers, len(left)))) as pool:
            # One by one, for they take unlike times: whichever process is free gets the next.
            known |= zip(left, pool.map(Job.run, left), strict=True)
        return [known[job] for job in jobs]
    begun |= {job: ahead.begin(job, workers) for job in left}
    try:
        known |= {job: _result(job, one) for job, one in begun.items()}
    except BaseException:
        _give_up(begun.values())
        raise
    for job in begun:
        ahead.find(job)  # a refusal has been told
    return [known[job] for job in jobs]


def _give_up(begun: Iterable[_Begun]) -> None:
    """Run none of some jobs that does not run yet."""
    for one in begun:
        one.cancel()


def _result(job: Job, begun: _Begun) -> _Answer:
    """The answer of a job that was begun, which who began it may have given up."""
    try:
        return begun.result()
    except CancelledError:
        return job.run()
