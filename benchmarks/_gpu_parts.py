"""The parts of `gpu_check.py` that are not scripts of their own: each writes a table.

python benchmarks/_gpu_parts.py small table.json
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from traceback import print_exception
from typing import Any

import numpy as np
from _gpu_models import models_part
from _gpu_peers import peers_part
from _gpu_rows import Rows, as_json

import tapestry
from tapestry.codegen.aot import compile_kernels
from tapestry.codegen.driver import Cuda
from tapestry.devices import find_spec, name_of
from tapestry.runtime.triton.devices import find_device
from tapestry.runtime.triton.executor import TritonExecutor
from tapestry.store import find_store
from tapestry.tuning.calibration import CudaStopwatch, Probe, calibrate, write_spec

RNG = np.random.default_rng(0)
WORKERS = 8


def machine_part(path: Path) -> dict[str, Any]:
    """The GPU and what runs it; whether Triton has what is called of it.

    The rest is written before that is known: a machine that was just started takes long to read.
    """
    asked = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        said = str(error)
    found: dict[str, Any] = {"nvidia-smi": said.strip()}
    for name in ("torch", "triton", "numpy", "xdsl"):
        try:
            found[name] = str(__import__(name).__version__)
        except (ImportError, AttributeError) as error:
            found[name] = str(error)
    found["summary"] = f"{found['nvidia-smi'] or 'no GPU'}, Triton {found['triton']}"
    path.write_text(json.dumps(found))
    tests = Path(__file__).parents[1] / "tests" / "codegen" / "test_triton_api.py"
    asked = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    found["triton has what is called of it"] = (done.stdout or done.stderr).strip()[-800:]
    return found


def _programs() -> dict[str, tuple[Any, dict[str, np.ndarray], Callable[..., Any]]]:
    """Programs of every kind: the expression, its inputs, and NumPy's answer in float64."""
    x, y = tapestry.input("x", (200, 300)), tapestry.input("y", (300, 120))
    half = tapestry.input("x", (256, 128), "float16")
    other = tapestry.input("y", (128, 192), "float16")

    def cells(dtype: str, *shape: int) -> np.ndarray:
        return RNG.normal(size=shape).astype(dtype)

    a = {"x": cells("f4", 200, 300), "y": cells("f4", 300, 120)}
    h = {"x": cells("f2", 256, 128), "y": cells("f2", 128, 192)}

    def softmax(v: Any) -> Any:
        e = np.exp(v - v.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    q, k, v = (tapestry.input(n, (4, 200, 64), "float16") for n in "qkv")
    qkv = {n: RNG.normal(size=(4, 200, 64)).astype("f2") for n in "qkv"}
    scores = q @ k.transpose((0, 2, 1)) * 0.125
    only = {"x": a["x"]}
    return {
        "map": (tapestry.relu(x) * 2 + 1, only, lambda x: np.maximum(x, 0) * 2 + 1),
        "fold": (x.sum(axis=1), only, lambda x: x.sum(1)),
        "columns": (x.max(axis=0), only, lambda x: x.max(0)),
        "softmax": (tapestry.softmax(x), only, softmax),
        "matmul": (x @ y, a, lambda x, y: x @ y),
        "matmul, 16 bits": (half @ other, h, lambda x, y: x @ y),
        "layer": (tapestry.relu(half @ other), h, lambda x, y: np.maximum(x @ y, 0)),
        "attention": (
            tapestry.softmax(scores) @ v,
            qkv,
            lambda q, k, v: softmax(q @ k.transpose(0, 2, 1) * 0.125) @ v,
        ),
        "scan": (x.cumsum(axis=1), only, lambda x: x.cumsum(1)),
        "transpose": (x.transpose((1, 0)) + 1, only, lambda x: x.T + 1),
        "sort": (x.sort(axis=1)[0] * 2, only, lambda x: np.sort(x, 1) * 2),
    }


def small_part(path: Path) -> dict[str, Any]:
    """Programs against float64; what is said where something runs otherwise than asked."""
    import torch

    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("tapestry.fallbacks").addHandler(handler)
    kept = Rows(path)
    if find_device(quiet=True).capability is None:
        raise RuntimeError("programs would run in Triton's interpreter, not on the GPU")
    cases = [(name, shards) for name in _programs() for shards in (1, 3)]
    left = [case for case in cases if not kept.has(program=case[0], shards=case[1])]
    kept.write()
    lowered = [_lowered(*case) for case in left]
    began = perf_counter()
    with ThreadPoolExecutor(WORKERS) as pool:  # kernels are compiled in processes of their own
        list(pool.map(_compiled, lowered))
    kept.rest["compile_seconds"] = perf_counter() - began
    for (name, shards), program in zip(left, lowered, strict=True):
        row: dict[str, Any] = {"program": name, "shards": shards}
        _, inputs, answer = _programs()[name]
        want = answer(*(one.astype(np.float64) for one in inputs.values()))
        before = len(said)
        try:
            if isinstance(program, Exception):
                raise program
            got = np.asarray(program(**inputs), np.float64)
            row["error"] = float(np.abs(got - want).max() / (np.abs(want).max() + 1e-30))
            rough = next(iter(inputs.values())).dtype == np.float16
            row["right"] = bool(row["error"] < (4e-3 if rough else 1e-4))
        except Exception as error:  # noqa: BLE001 - the table says what failed
            print_exception(error)
            row |= {"right": False, "problem": f"{type(error).__name__}: {error}"[:600]}
        kept.add(row | {"said": said[before:]})
        kept.restart_if_lost(torch)
    rows = kept.rows
    right = sum(row["right"] for row in rows)
    fallen = sum(bool(row["said"]) for row in rows)
    summary = f"{right} of {len(rows)} right; {fallen} ran otherwise than asked"
    ok = right == len(rows) and not fallen
    return {**kept.rest, "rows": rows, "summary": summary, "ok": ok}


def _lowered(name: str, shards: int) -> Any:
    """A program, or what lowering it failed with."""
    try:
        program = tapestry.compile(_programs()[name][0], on="triton")
        return program if shards == 1 else program.sharded(shards=shards)
    except Exception as error:  # noqa: BLE001 - the table says what failed
        return error


def _compiled(program: Any) -> None:
    """Have the kernels of a program in the cache; what fails, fails again when it is run."""
    with suppress(Exception):
        printed = TritonExecutor().printed(program.lowered, find_device())
        store, targets = find_store("aot"), [Cuda().capability()]
        compile_kernels(
            printed.path, printed.kernels, targets=targets, cache=store and store.folder
        )


_ALONE = """
import sys, time
sys.path.insert(0, sys.argv[1])
import numpy, torch
from load import load
program = load()
assert not {n.split(".")[0] for n in sys.modules} & {"tapestry", "xdsl"}
given = numpy.load(sys.argv[2])
tensors = [torch.from_numpy(given[one["name"]]).cuda() for one in program.inputs]
y = program(*tensors)
out = torch.empty_like(y)
program(*tensors, out=out)
with torch.cuda.stream(torch.cuda.Stream()):
    elsewhere = program(*tensors)
torch.cuda.synchronize()
assert torch.equal(y, out) and torch.equal(y, elsewhere)
calls, taken = int(sys.argv[4]), []
for _ in range(calls):  # others use the GPU meanwhile, now and then
    begin = time.perf_counter()
    for _ in range(calls):
        program(*tensors)
    torch.cuda.synchronize()
    taken.append((time.perf_counter() - begin) / calls * 1e6)
print(min(taken))
numpy.save(sys.argv[3], y.cpu().numpy())
"""


def loader_part(*, small: bool = False) -> dict[str, Any]:
    """A compiled folder, run by its own loader in a process that has no Tapestry."""
    import torch

    from tapestry.codegen.bundle import compile_bundle

    major, minor = torch.cuda.get_device_capability()
    rows = 16 if small else 512
    x = tapestry.input("x", (rows, 256))
    y = x
    for _ in range(3):
        weights = RNG.normal(size=(256, 256)).astype("f4") / 16
        y = tapestry.softmax(y @ weights)
    program = tapestry.compile(y)
    given = RNG.normal(size=(rows, 256)).astype("f4")
    with tempfile.TemporaryDirectory() as folder:
        began = perf_counter()
        bundle = compile_bundle(program.lowered, Path(folder, "out"), targets=[10 * major + minor])
        compiled = perf_counter() - began
        np.savez(Path(folder, "in.npz"), x=given)
        files = [f"{folder}/{name}" for name in ("out", "in.npz", "y.npy")]
        asked = [sys.executable, "-c", _ALONE, *files, "2" if small else "20"]
        environment = {"PATH": "/usr/bin:/bin", "HOME": folder}
        environment |= {k: v for k, v in os.environ.items() if k.startswith(("LD_", "CUDA", "NV"))}
        done = subprocess.run(
            asked, capture_output=True, text=True, cwd=folder, env=environment, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-2000:])
        got = np.load(Path(folder, "y.npy"))
    error = float(np.abs(got - np.asarray(program(x=given))).max())
    taken = float(done.stdout.split()[-1])
    summary = f"error {error:.1e}; {taken:.0f} us a call of {len(bundle.plan.launches)} launches"
    return {
        "error": error,
        "microseconds": taken,
        "launches": len(bundle.plan.launches),
        "arena": bundle.plan.arena,
        "compile_seconds": compiled,
        "summary": summary,
        "ok": error < 1e-4,
    }


def calibrated_part(path: Path, *, small: bool = False) -> dict[str, Any]:
    """The figures of this GPU that the cost model is made of; a file of them beside the table."""
    import torch

    own = name_of(torch.cuda.get_device_name(), Cuda().capability()) or "h100"
    base, stopwatch = find_spec(own), CudaStopwatch(torch)

    def little(probe: Probe) -> float:
        """A time that is made up, after a run of little work of that kind."""
        stopwatch(replace(probe, size=max(1, probe.size >> 16)))
        return 1e-6 * probe.size

    spec, measured = calibrate(base, little if small else stopwatch)
    named = spec.model_copy(update={"title": torch.cuda.get_device_name()})
    write_spec(path.with_name(f"{own}.yaml"), named, measured, own)
    memory, rates = spec.memory.bandwidth / 1e12, spec.rates.bf16 / 1e12
    summary = f"copy {memory:.2f} TB/s, bf16 {rates:.0f} TFLOP/s, in {own}.yaml"
    return {"figures": spec.model_dump(), "measured": sorted(measured), "summary": summary}


PARTS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "machine": machine_part,
    "small": small_part,
    "loader": lambda _: loader_part(small="--small" in sys.argv),
    "calibrated": lambda path: calibrated_part(path, small="--small" in sys.argv),
    "peers": lambda path: peers_part(path, float(sys.argv[3]), small="--small" in sys.argv),
    "models": lambda path: models_part(path, float(sys.argv[3]), small="--small" in sys.argv),
}


if __name__ == "__main__":
    made = PARTS[sys.argv[1]](Path(sys.argv[2]))
    Path(sys.argv[2]).write_text(as_json(made))
    print(made["summary"])
    sys.exit(0 if made.get("ok", True) else 1)
