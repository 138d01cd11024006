"""How ahead-of-time compilation spreads over processes, with a compiler that is made up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import tapestry as t
from tapestry.codegen import aot_jobs
from tapestry.codegen.aot import compile_kernels
from tapestry.codegen.module_printer import print_module
from tapestry.codegen.specs import KernelSpec
from tapestry.frontend import run_pipeline


class Compiler:
    """Answers requests as processes that compile do, and counts those at the same time."""

    def __init__(self, together: int) -> None:
        self._lock = threading.Lock()
        # So many have to be there before the first of them answers.
        self._first = threading.Barrier(together, timeout=20)
        self._waiting = together
        self.now = self.most = 0
        self.asked: list[str] = []

    @contextmanager
    def process(self) -> Iterator[Compiler]:
        yield self

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        name = request["kernel"]["name"]
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.asked.append(name)
            first, self._waiting = self._waiting > 0, self._waiting - 1
        if first:
            self._first.wait()
        with self._lock:
            self.now -= 1
        return {
            "name": name,
            "target": request["target"],
            "ptx": "",
            "cubin": "",
            "scratch": 0,
            "registers": 32,
            "spills": 0,
            "shared": 0,
            "warnings": [],
            "overwritten": [],
        }


def _spec(name: str) -> KernelSpec:
    return KernelSpec(name, (), (), 4, 1)


@pytest.mark.parametrize(("kernels", "workers", "expected"), [(12, 3, 3), (2, 8, 4), (5, 1, 1)])
def test_as_many_processes_as_workers_and_no_more(
    kernels: int,
    workers: int,
    expected: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiler = Compiler(expected)
    monkeypatch.setattr(aot_jobs, "compiler", compiler.process)
    names = [f"kernel{n}" for n in range(kernels)]
    (tmp_path / "kernels.py").write_text("")
    specs = [_spec(name) for name in names]
    found = compile_kernels(tmp_path / "kernels.py", specs, targets=(90, 80), workers=workers)
    assert compiler.most == expected
    assert sorted(compiler.asked) == sorted(2 * names)
    assert [(one.name, one.target) for one in found] == [(n, c) for n in names for c in (90, 80)]


def test_layers_and_shards_are_compiled_once() -> None:
    x = t.input("x", (64, 32), "f32")
    for name in "abcd":
        x = t.relu(x @ t.input(name, (32, 32), "f32"))
    program = t.compile(x, pipeline="weft-apply,loom-simplify")
    module = program.sharded(shards=4).lowered.clone()
    run_pipeline(module, 'loom-to-triton{device="h200"}')
    kernels = print_module(module).kernels
    launches = [op for op in module.walk() if op.name == "triton.launch"]
    assert len(launches) == 8
    assert len(kernels) == 2


def test_bundles_for_several_targets_are_made_for_the_smallest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tapestry.codegen import bundle

    made: list[str] = []
    lowering = bundle.LoomToTriton

    def noted(**options: Any) -> Any:
        made.append(options["device"])
        return lowering(**options)

    monkeypatch.setattr(bundle, "LoomToTriton", noted)
    module = t.compile(t.input("x", (64,), "f32") * 2, on="triton").lowered
    bundle.compile_bundle(module, tmp_path / "both", targets=(90, 80))
    bundle.compile_bundle(module, tmp_path / "one", targets=(90,))
    assert made == ["a100", "h100"]
