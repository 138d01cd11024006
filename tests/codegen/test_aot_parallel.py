"""How ahead-of-time compilation spreads over processes, with a compiler that is made up."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tapestry as t
from tapestry.codegen import aot
from tapestry.codegen.aot import compile_kernels
from tapestry.codegen.module_printer import print_module
from tapestry.codegen.specs import KernelSpec
from tapestry.frontend import run_pipeline


class Compiler:
    """Answers requests as the process that compiles does, and counts those at the same time."""

    def __init__(self, together: int) -> None:
        self._lock = threading.Lock()
        # All of a batch have to be there before one of them answers.
        self._all = threading.Barrier(together, timeout=20)
        self.now = self.most = 0
        self.asked: list[str] = []

    def run(self, _: Any, *, input: str, **__: Any) -> Any:  # noqa: A002 - subprocess's name
        request = json.loads(input)
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.asked += [kernel["name"] for kernel in request["kernels"]]
        self._all.wait()
        with self._lock:
            self.now -= 1
        answers = [
            {
                "name": kernel["name"],
                "target": target,
                "ptx": "",
                "cubin": "",
                "scratch": 0,
                "registers": 32,
                "spills": 0,
                "shared": 0,
                "warnings": [],
                "cached": False,
            }
            for kernel in request["kernels"]
            for target in request["targets"]
        ]
        return SimpleNamespace(returncode=0, stdout=json.dumps(answers), stderr="")


def _spec(name: str) -> KernelSpec:
    return KernelSpec(name, (), (), 4, 1)


@pytest.mark.parametrize(("kernels", "workers", "expected"), [(12, 3, 3), (2, 8, 2), (5, 1, 1)])
def test_as_many_processes_as_workers_and_no_more(
    kernels: int, workers: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = Compiler(expected)
    monkeypatch.setattr(aot, "subprocess", SimpleNamespace(run=compiler.run))
    names = [f"kernel{n}" for n in range(kernels)]
    found = compile_kernels(
        Path("kernels.py"), [_spec(name) for name in names], targets=(90, 80), workers=workers
    )
    assert compiler.most == expected
    assert sorted(compiler.asked) == sorted(names)
    assert [(one.name, one.target) for one in found] == [(n, c) for n in names for c in (90, 80)]
    assert subprocess.run is not compiler.run


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
