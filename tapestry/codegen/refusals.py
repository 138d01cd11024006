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
A kernel that Triton compiles wrongly stands for all that compute the same in several stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr

from tapestry.algebra.dtypes import is_float
from tapestry.codegen.aot import CompiledKernel
from tapestry.codegen.aot_jobs import CompileError, installed
from tapestry.codegen.specs import KernelSpec
from tapestry.devices import find_spec
from tapestry.dialects import triton
from tapestry.dialects.triton import element_of
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
        return any(self.refuses(digest) for digest in _digests(kernel))

    def refuses(self, kernel: str) -> bool:
        """The same of a kernel by its digest."""
        return any(self._has(_key(kernel, target)) for target in self._targets)

    def learn(self, lowered: ModuleOp, compiled: Sequence[CompiledKernel]) -> bool:
        """Keep what is wrong with the kernels of a module; whether some of it was not known.

        `compiled` are its kernels in order, each for all targets. What is new is said, once.
        """
        found = list(zip(_kernels(lowered, len(self._targets)), compiled, strict=True))
        learned = False
        for op, one in found:
            if one.problems:
                learned |= self._learn(op, one.target, "; ".join(one.problems), [_digest(op)])
        return learned

    def learn_miscompiled(
        self, lowered: ModuleOp, printed: Sequence[KernelSpec], error: CompileError
    ) -> bool:
        """Keep which kernels of a module Triton compiles wrongly; whether some of it was not known.

        `printed` are its kernels in order. What does not compile at all may be the machine's fault.
        """
        learned = False
        for op, spec in zip(_kernels(lowered), printed, strict=True):
            for target in self._targets:
                if said := error.miscompiled.get((spec.name, target)):
                    learned |= self._learn(op, target, said, _digests(op))
        return learned

    def _learn(self, op: triton.KernelOp, target: int, said: str, digests: Sequence[str]) -> bool:
        """Keep what is wrong with what has some digests; whether that was not known."""
        keys = [_key(digest, target) for digest in digests]
        if all(self._has(key) for key in keys):
            return False
        self._known.update(keys)
        name, schedule = op.sym_name.data, op.schedule.data
        if self._store is not None:
            for key in keys:
                self._store.write(key, {"kernel": name, "schedule": str(schedule), "said": said})
        channel("fallbacks").warning(
            "@%s with %s, on sm_%d: %s; the cost model chooses it no more",
            *(name, schedule, target, said),
        )
        return True

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
        answers = {digest: self._refusals.refuses(digest) for digest in _digests(kernel)}
        self._answers |= answers
        return any(answers.values())

    @property
    def answers(self) -> Mapping[str, bool]:
        """Whether kernels were refused, by their digests."""
        return self._answers

    def answers_alike(self, answers: Mapping[str, bool]) -> bool:
        """Whether the same would be answered now."""
        return all(self._refusals.refuses(digest) == one for digest, one in answers.items())


def _kernels(lowered: ModuleOp, times: int = 1) -> Iterator[triton.KernelOp]:
    """The kernels of a module in order, each so many times."""
    for op in lowered.body.block.ops:
        if isinstance(op, triton.KernelOp):
            yield from [op] * times


def bare_text(kernel: triton.KernelOp) -> str:
    """What a kernel is, apart from what it is called, where it comes from and how it is used."""
    bare = kernel.clone()
    bare.properties |= {"sym_name": StringAttr("kernel"), "origins": ArrayAttr([])}
    bare.properties.pop("numerics", None)
    return text_without_names(bare)


def _digest(kernel: triton.KernelOp) -> str:
    return sha256(bare_text(kernel).encode()).hexdigest()


def _digests(kernel: triton.KernelOp) -> list[str]:
    """That of a kernel, and of all that compute the same of tiles of any sizes, in stages.

    A compiler that lets products read what the next step writes does so whatever the tiles are.
    """
    if kernel.schedule.data.stages == 1:
        return [_digest(kernel)]
    made = [
        "load" if isinstance(op, triton.LoadOp | triton.LoadBlockOp) else op.name
        for op in kernel.body.walk()
        for value in op.results
        if is_float(element_of(value))
    ]
    kinds = [str(value.type) for value in kernel.body.block.args]
    text = "\n".join(["in stages", *kinds, *made])
    return [_digest(kernel), sha256(text.encode()).hexdigest()]


def _key(kernel: str, target: int) -> str:
    return key_of({"kernel": kernel, "target": target, "triton": installed()})
