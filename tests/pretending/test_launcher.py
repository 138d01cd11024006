"""Our launches beside those of Triton's own launcher, as the driver gets them: see `launching.py`.

What a kernel takes beside its operands differs between versions of Triton, and its launcher is what
knows: memory for descriptors, memory for profiles, threads, shared memory, attributes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tapestry

torch = pytest.importorskip("torch")
if shutil.which("cc") is None:
    pytest.skip("there is no C compiler to build a driver with", allow_module_level=True)
if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
    pytest.skip("there is no Python.h to build Triton's launcher with", allow_module_level=True)
if torch.cuda.is_available():
    pytest.skip("there is a real GPU", allow_module_level=True)

from xdsl.context import Context  # noqa: E402

from tapestry.codegen.driver import Cuda as CudaDevice  # noqa: E402
from tapestry.codegen.module_printer import print_module  # noqa: E402
from tapestry.codegen.planning import plan_of  # noqa: E402
from tapestry.dialects.triton import Schedule  # noqa: E402
from tapestry.passes.triton.loom_to_triton import LoomToTriton  # noqa: E402
from tapestry.passes.triton.tasks import give  # noqa: E402
from tapestry.runtime.triton import compiled  # noqa: E402
from tests.pretending.cuda import pretended  # noqa: E402
from tests.pretending.driver import Launch, PretendDriver  # noqa: E402

ROOT = Path(__file__).parents[2]
POINTERS = 1 << 32
"""What is larger is an address."""

Given = tuple[tuple[int, ...], str]


@pytest.fixture
def gpu(tmp_path: Path) -> Iterator[PretendDriver]:
    with pretended(tmp_path) as driver:
        yield driver
    assert driver.problems == []


def _programs() -> list[tuple[Any, list[Given]]]:
    """Of a product by descriptors, one with much shared memory, and folds in shards."""

    def product(schedule: str) -> Any:
        x, w = (
            tapestry.input("x", (256, 256), "float16"),
            tapestry.input("w", (256, 256), "float16"),
        )
        module = tapestry.compile(x @ w).lowered
        (op,) = [op for op in module.walk() if op.name == "loom.operation"]
        give(op, Schedule.parse(schedule))
        return module

    halves: list[Given] = [((256, 256), "float16")] * 2
    x = tapestry.input("x", (48, 100))
    shards = tapestry.compile(tapestry.softmax(x), on="triton").sharded(shards=3).lowered
    return [
        (product("M = 32, N = 32, K = 32, loads = descriptor"), halves),
        (product("M = 128, N = 128, K = 64, warps = 8, stages = 3"), halves),
        (shards, [((48, 100), "float32")]),
    ]


def test_the_driver_gets_what_tritons_launcher_gives_it(gpu: PretendDriver, tmp_path: Path) -> None:
    gpu.reads_only = True
    modules: list[str] = []
    for number, (module, given) in enumerate(_programs()):
        lowered = module.clone()
        LoomToTriton(device="h200").lower(Context(), lowered)
        made, path = print_module(lowered), tmp_path / f"kernels_{number}.py"
        path.write_text(made.source)
        path.with_suffix(".json").write_text(json.dumps(given))
        modules.append(str(path))
        plan = plan_of(lowered, made.kernels)
        run = compiled.compiled_launches(path, made.kernels, plan, CudaDevice(), {})
        run([torch.ones(shape, dtype=getattr(torch, kind)).to("cuda") for shape, kind in given])
    ours = [_seen(one) for one in gpu.launches]
    assert len(ours) == 5
    assert max(one.shared for one in gpu.launches) > 48 << 10
    own = {"PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | own
    asked = [sys.executable, "-m", "tests.pretending.launching", str(tmp_path), *modules]
    done = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    theirs = [_seen(Launch(**one)) for one in json.loads(done.stdout.splitlines()[-1])]
    assert ours == theirs


def _seen(launch: Launch) -> dict[str, Any]:
    """What does not depend on where tensors lie."""
    values = ["address" if value >= POINTERS else value for value in launch.values]
    return {**vars(launch), "values": values}
