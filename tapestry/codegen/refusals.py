"""Kernels that were compiled and turned out badly, so that their schedules are not chosen again.

    refusals = Refusals(targets=(90,), store=find_store(KIND))
    while True:
        lowered = ...                   # LoomToTriton(device="h200").lower(..., refused=refusals)
        compiled = compile_kernels(...)
        if not refusals.learn(lowered, compiled):
            break                       # nothing new: what is there is as good as it gets

The cost model predicts registers and shared memory, the assembler knows them. What it says against
a kernel (`CompiledKernel.problems`) is kept by what determines it: the kernel in the triton
dialect, its schedule, the target and Triton's version. A later run takes the next schedule at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr

from tapestry.codegen.aot import CompiledKernel
from tapestry.codegen.aot_jobs import installed
from tapestry.devices import find_spec
from tapestry.dialects import triton
from tapestry.encoding import text_without_names
from tapestry.logs import channel
from tapestry.store import Store, find_store, key_of

KIND = "refused"
"""The folder of what is known."""


def find_refusals(device: str) -> Refusals:
    """What is known for the target of a device (`h200`, `sm_90`, a file)."""
    return Refusals([find_spec(device).capability], find_store(KIND))


class Refusals:
    """What compilers said against kernels, for some targets (90 for sm_90).

    Without a store it is known only as long as the object lives.
    """

    def __init__(self, targets: Sequence[int], store: Store | None = None) -> None:
        self._targets = tuple(targets)
        self._store = store
        self._known: set[str] = set()

    def __call__(self, kernel: triton.KernelOp) -> bool:
        """Whether a kernel turned out badly on one of the targets."""
        return self.refuses(_digest(kernel))

    def refuses(self, kernel: str) -> bool:
        """The same of a kernel by its digest."""
        return any(self._has(_key(kernel, target)) for target in self._targets)

    def learn(self, lowered: ModuleOp, compiled: Sequence[CompiledKernel]) -> bool:
        """Keep what is wrong with the kernels of a module; whether some of it was not known.

        `compiled` are its kernels in order, each for all targets. What is new is said, once.
        """
        ops = [op for op in lowered.body.block.ops if isinstance(op, triton.KernelOp)]
        count = len(self._targets)
        learned = False
        for place, one in enumerate(compiled):
            if not one.problems:
                continue
            op = ops[place // count]
            key = _key(_digest(op), one.target)
            if self._has(key):
                continue
            learned = True
            self._known.add(key)
            said = "; ".join(one.problems)
            if self._store is not None:
                schedule = str(op.schedule.data)
                self._store.write(key, {"kernel": one.name, "schedule": schedule, "said": said})
            channel("fallbacks").warning(
                "@%s with %s, on sm_%d: %s; the cost model chooses it no more",
                *(one.name, op.schedule.data, one.target, said),
            )
        return learned

    def _has(self, key: str) -> bool:
        if key in self._known:
            return True
        found = self._store is not None and self._store.read(key) is not None
        if found:
            self._known.add(key)
        return found


class Asked:
    """What is asked of refusals while a program is lowered, and what the answers are.

    As long as these stay, the program is what it would be if it were lowered again.
    """

    def __init__(self, refusals: Refusals) -> None:
        self._refusals = refusals
        self._answers: dict[str, bool] = {}

    def __call__(self, kernel: triton.KernelOp) -> bool:
        """Whether a kernel turned out badly."""
        digest = _digest(kernel)
        self._answers[digest] = self._refusals.refuses(digest)
        return self._answers[digest]

    @property
    def answers(self) -> Mapping[str, bool]:
        """Whether kernels were refused, by their digests."""
        return self._answers

    def answers_alike(self, answers: Mapping[str, bool]) -> bool:
        """Whether the same would be answered now."""
        return all(self._refusals.refuses(digest) == one for digest, one in answers.items())


def bare_text(kernel: triton.KernelOp) -> str:
    """What a kernel is, apart from what it is called, where it comes from and how it is used."""
    bare = kernel.clone()
    bare.properties |= {"sym_name": StringAttr("kernel"), "origins": ArrayAttr([])}
    bare.properties.pop("numerics", None)
    return text_without_names(bare)


def _digest(kernel: triton.KernelOp) -> str:
    return sha256(bare_text(kernel).encode()).hexdigest()


def _key(kernel: str, target: int) -> str:
    return key_of({"kernel": kernel, "target": target, "triton": installed()})
