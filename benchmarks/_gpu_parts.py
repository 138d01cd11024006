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
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import tapestry

RNG = np.random.default_rng(0)


def machine_part() -> dict[str, Any]:
    """The GPU and what runs it; whether Triton has what is called of it."""
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
    tests = Path(__file__).parents[1] / "tests" / "codegen" / "test_triton_api.py"
    asked = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    found["triton has what is called of it"] = (done.stdout or done.stderr).strip()[-800:]
    found["summary"] = f"{found['nvidia-smi'] or 'no GPU'}, Triton {found['triton']}"
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


def small_part() -> dict[str, Any]:
    """Programs against float64; what is said where something runs otherwise than asked."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("tapestry.fallbacks").addHandler(handler)
    rows: list[dict[str, Any]] = []
    for name, (expression, inputs, answer) in _programs().items():
        want = answer(*(one.astype(np.float64) for one in inputs.values()))
        for shards in (None, 3):
            row: dict[str, Any] = {"program": name, "shards": shards or 1}
            began, before = perf_counter(), len(said)
            try:
                program = tapestry.compile(expression, on="triton")
                program = program if shards is None else program.sharded(shards=shards)
                got = np.asarray(program(**inputs), np.float64)
                row["error"] = float(np.abs(got - want).max() / (np.abs(want).max() + 1e-30))
                rough = next(iter(inputs.values())).dtype == np.float16
                row["right"] = bool(row["error"] < (4e-3 if rough else 1e-4))
            except Exception as error:  # noqa: BLE001 - the table says what failed
                row |= {"right": False, "problem": f"{type(error).__name__}: {error}"[:600]}
            row |= {"seconds": perf_counter() - began, "said": said[before:]}
            rows.append(row)
    right = sum(row["right"] for row in rows)
    fallen = sum(bool(row["said"]) for row in rows)
    summary = f"{right} of {len(rows)} right; {fallen} ran otherwise than asked"
    return {"rows": rows, "summary": summary, "ok": right == len(rows)}


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
begin = time.perf_counter()
for _ in range(200):
    program(*tensors)
torch.cuda.synchronize()
print((time.perf_counter() - begin) / 200 * 1e6)
numpy.save(sys.argv[3], y.cpu().numpy())
"""


def loader_part() -> dict[str, Any]:
    """A compiled folder, run by its own loader in a process that has no Tapestry."""
    import torch

    from tapestry.codegen.bundle import compile_bundle

    major, minor = torch.cuda.get_device_capability()
    x = tapestry.input("x", (512, 256))
    y = x
    for _ in range(3):
        weights = RNG.normal(size=(256, 256)).astype("f4") / 16
        y = tapestry.softmax(y @ weights)
    program = tapestry.compile(y)
    given = RNG.normal(size=(512, 256)).astype("f4")
    with tempfile.TemporaryDirectory() as folder:
        began = perf_counter()
        bundle = compile_bundle(program.lowered, Path(folder, "out"), targets=[10 * major + minor])
        compiled = perf_counter() - began
        np.savez(Path(folder, "in.npz"), x=given)
        files = [f"{folder}/{name}" for name in ("out", "in.npz", "y.npy")]
        asked = [sys.executable, "-c", _ALONE, *files]
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


def models_part() -> dict[str, Any]:
    """Models of PyTorch: results against eager in float64, and time beside eager and inductor."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width: int = 512, heads: int = 8) -> None:
            super().__init__()
            self.norm, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.heads = heads

        def forward(self, x: Any) -> Any:
            b, t, c = x.shape
            parts = self.qkv(self.norm(x)).view(b, t, 3, self.heads, c // self.heads)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
            return x + self.down(nn.functional.gelu(self.up(self.after(x))))

    perceptron = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 10))
    images = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.LazyLinear(10)
    )
    cases = {
        "perceptron": (perceptron, (256, 784), torch.float32),
        "block, float16": (Block(), (4, 256, 512), torch.float16),
        "convolution": (images, (64, 3, 32, 32), torch.float32),
    }
    rows: list[dict[str, Any]] = []
    for name, (model, shape, dtype) in cases.items():
        torch.manual_seed(0)
        model, x = model.eval(), torch.randn(shape)
        with torch.no_grad():
            want = model.double()(x.double())
            model, x = model.to("cuda", dtype), x.to("cuda", dtype)
            row: dict[str, Any] = {"model": name, "eager_us": _timed(model, x)}
            rows.append(row)
            for backend in ("tapestry", "inductor"):
                torch.compiler.reset()
                try:
                    began = perf_counter()
                    compiled = torch.compile(model, backend=backend, dynamic=False)
                    got = compiled(x)
                    row[f"{backend}_compile_s"] = perf_counter() - began
                    worst = (got.double().cpu() - want).abs().max() / want.abs().max()
                    row[f"{backend}_error"] = float(worst)
                    row[f"{backend}_us"] = _timed(compiled, x)
                except Exception as error:  # noqa: BLE001 - the table says what failed
                    row[f"{backend}_problem"] = f"{type(error).__name__}: {error}"[:600]
    limit = {"block, float16": 2e-2}
    ok = [row.get("tapestry_error", 1.0) < limit.get(row["model"], 1e-3) for row in rows]
    return {"rows": rows, "summary": f"{sum(ok)} of {len(ok)} models right", "ok": all(ok)}


def _timed(run: Callable[..., object], *given: object) -> float:
    """Microseconds of a call on the GPU: the median by events."""
    import torch

    for _ in range(5):
        run(*given)
    taken: list[float] = []
    for _ in range(30):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run(*given)
        end.record()
        end.synchronize()
        taken.append(begin.elapsed_time(end) * 1e3)
    return float(np.median(taken))


PARTS = {
    "machine": machine_part,
    "small": small_part,
    "loader": loader_part,
    "models": models_part,
}


if __name__ == "__main__":
    made = PARTS[sys.argv[1]]()
    Path(sys.argv[2]).write_text(json.dumps(made, indent=1))
    print(made["summary"])
    sys.exit(0 if made.get("ok", True) else 1)
