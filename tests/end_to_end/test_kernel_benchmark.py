"""The kernel benchmark on a CPU that stands in for a GPU, with times that are made up."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest

from tapestry.devices import find_spec
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.program import arguments
from tapestry.runtime.triton.devices import Cpu
from tapestry.runtime.triton.executor import TritonExecutor

real = pytest.importorskip("torch")

_FOLDER = str(Path(__file__).parents[2] / "benchmarks")
sys.path.insert(0, _FOLDER)
KERNELS: Any = importlib.import_module("kernels")
CASES: Any = importlib.import_module("_kernel_cases")
MEASURING: Any = importlib.import_module("_kernel_measuring")
COMPILING: Any = importlib.import_module("_kernel_compiling")
sys.path.remove(_FOLDER)

CEILINGS = ("copy bytes/s", "read bytes/s", "add bytes/s", "bf16 flop/s")


class Event:
    """An event that is recorded 10 us after the one before it."""

    now = 0.0

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        Event.now += 1e-2
        self.at = Event.now

    def elapsed_time(self, end: Event) -> float:
        return end.at - self.at


class Graph:
    """A graph records nothing: calls have already happened."""

    def replay(self) -> None:
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return


class Torch:
    """PyTorch whose "cuda" is the CPU."""

    def __init__(self, *, graphs: bool = True) -> None:
        def graph(_: Graph, *, capture_error_mode: str) -> Graph:
            assert capture_error_mode == "thread_local"
            if not graphs:
                raise RuntimeError("operation not permitted when stream is capturing")
            return Graph()

        self.cuda = SimpleNamespace(
            Event=Event,
            CUDAGraph=Graph,
            graph=graph,
            synchronize=lambda: None,
            current_stream=lambda: "the stream",
            stream=lambda one: nullcontext(one),
            is_available=lambda: True,
            get_device_name=lambda: "NVIDIA H200",
            get_device_capability=lambda: (9, 0),
        )
        self.compiler = SimpleNamespace(reset=lambda: None)
        self.compiled: list[dict[str, Any]] = []

    def compile(self, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        self.compiled.append(options)
        if options.get("mode") == "refused":
            raise RuntimeError
        return function

    def Generator(self, device: str) -> Any:  # noqa: N802 - PyTorch's name
        assert device == "cuda"
        return real.Generator()

    def __getattr__(self, name: str) -> Any:
        found = getattr(real, name)
        if name not in ("empty", "randn", "randint"):
            return found

        def on_cpu(*sizes: Any, device: str, **options: Any) -> Any:
            assert device == "cuda"
            # The ceilings are of large tensors, which nothing looks at.
            small = [min(size, 64) if isinstance(size, int) else size for size in sizes]
            return found(*(sizes if name == "randint" else small), **options)

        return on_cpu


class Gpu(MEASURING.Gpu):
    """Measures in Triton's interpreter."""

    modules: list[Any]

    def scheduled(self, case: Any) -> Any:
        self.modules = [COMPILING.loom_of(case)]
        return self.modules[0]

    def tune(self, case: Any, seconds: float) -> list[dict[str, Any]]:
        del case
        self.tuned = seconds
        return []

    def launch(self, lowered: Any) -> Callable[..., Any]:
        del lowered
        (module,) = self.modules

        def run(*given: Any) -> Any:
            names = [argument.name for argument in arguments(module)]
            arrays = [one.numpy() for one in given]
            executor = TritonExecutor(Cpu())
            made = executor.run(module, dict(zip(names, arrays, strict=True)), NoWatch()).outputs
            results = tuple(real.from_numpy(np.ascontiguousarray(one)) for one in made)
            return results[0] if len(results) == 1 else results

        return run


@pytest.fixture
def cases() -> list[Any]:
    names = ("matmul f16 512", "embedding", "sum along axis 1")
    return [one.small for one in CASES.CASES if any(one.name.startswith(n) for n in names)]


def _gpu(torch: Torch, seconds: float = 1000) -> Gpu:
    return Gpu(torch, find_spec("h200"), seconds, 0.0)


def _console() -> Any:
    return SimpleNamespace(print=lambda *_: None)


def test_cases_are_checked_and_timed_beside_their_peers(cases: Any) -> None:
    torch = Torch()
    found = MEASURING.measured(cases, _gpu(torch), _console())
    assert set(found["ceilings"]) == set(CEILINGS)
    assert len(found["rows"]) == len(cases) == 3
    for row in found["rows"]:
        assert row["problems"] == []
        assert row["error"] < 1e-2
        assert 0 < row["ours"] <= 1e-5
        assert set(row["peers"]) == {"eager", "compile", "max-autotune"}
        assert row["predicted"] > row["floor"] > 0
        assert row["schedules"]
    assert torch.compiled == [{}, {"mode": "max-autotune-no-cudagraphs"}] * 3
    json.dumps(found)


def test_inputs_are_given_by_name() -> None:
    (case,) = (one.small for one in CASES.CASES if one.name.startswith("optimizer step"))
    module = COMPILING.loom_of(case)
    assert [one.name for one in arguments(module)] != [one.name for one in case.inputs]
    (row,) = MEASURING.measured([case], _gpu(Torch()), _console())["rows"]
    assert row["problems"] == []
    assert row["error"] < 1e-6


def test_further_peers_are_timed_and_what_pytorch_picks_is_said() -> None:
    names = ("attention causal d=64", "linear+bias+gelu+residual 2048")
    found = [one.small for one in CASES.CASES if one.name.startswith(names)]
    attention, linear = sorted(
        MEASURING.measured(found, _gpu(Torch()), _console())["rows"], key=lambda row: row["family"]
    )
    assert attention["picked"]
    assert {"flash", "cudnn"} <= attention["peers"].keys() | attention["missing"].keys()
    assert linear["peers"]["product"] > 0
    assert linear["bytes"] > 0


def test_what_cannot_be_recorded_is_timed_as_it_is(cases: Any) -> None:
    found = MEASURING.measured(cases[:1], _gpu(Torch(graphs=False)), _console())
    (row,) = found["rows"]
    assert row["ours"] == pytest.approx(1e-5)


def test_a_case_that_fails_is_a_row(cases: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = _gpu(Torch())
    launch = gpu.launch

    def failing(lowered: Any) -> Callable[..., Any]:
        if "embedding" in str(lowered):
            raise RuntimeError("out of resource: shared memory\nand more")
        return launch(lowered)

    monkeypatch.setattr(gpu, "launch", failing)
    found = MEASURING.measured(cases, gpu, _console())
    problems = [row["problems"] for row in found["rows"]]
    assert problems.count(["RuntimeError: out of resource: shared memory"]) == 1
    assert problems.count([]) == 2


def test_wrong_numbers_are_a_problem(cases: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = _gpu(Torch())
    launch = gpu.launch
    monkeypatch.setattr(gpu, "launch", lambda lowered: lambda *x: launch(lowered)(*x) * 1.5)
    (row,) = MEASURING.measured(cases[:1], gpu, _console())["rows"]
    assert row["problems"] == ["error 5.0e-01"]


def test_the_time_is_bounded(cases: Any) -> None:
    said: list[str] = []
    console = SimpleNamespace(print=lambda text: said.append(str(text)))
    found = MEASURING.measured(cases, _gpu(Torch(), seconds=0.0), console)
    assert found["rows"] == []
    assert f"no time was left for {cases[0].name} and the 2 after it" in said


def test_the_command_writes_what_it_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = Torch()
    monkeypatch.setattr(KERNELS, "import_module", lambda _: torch)
    monkeypatch.setattr(KERNELS, "Gpu", Gpu)
    small = [one.small for one in CASES.CASES if one.family == "reduction"][:1]
    monkeypatch.setattr(KERNELS, "CASES", small)
    output = tmp_path / "kernels.json"
    assert KERNELS.main(["--measure", "--output", str(output)]) == 0
    written = json.loads(output.read_text())
    assert written["gpu"] == "NVIDIA H200"
    assert len(written["rows"]) == 1


def test_the_command_compiles_without_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = [one.small for one in CASES.CASES if one.name == "matmul f16 512"]
    monkeypatch.setattr(KERNELS, "CASES", small)
    output = tmp_path / "kernels.json"
    assert KERNELS.main(["--target", "90", "--output", str(output)]) in (0, 1)
    (row,) = json.loads(output.read_text())["rows"]
    assert row["registers"] > 0
    assert row["spills"] == 0
    assert row["predicted"] > row["floor"]


def test_each_kernel_that_multiplies_is_to_use_warpgroups() -> None:
    (case,) = (one for one in CASES.CASES if one.name == "matmul f16 512")
    lowered = COMPILING.lowered_for(COMPILING.loom_of(case), "h200")
    assert COMPILING.halves(lowered) == {"matmul"}
    made = {"registers": 1, "shared": 1, "spills": 0, "problems": ()}
    kernels = [
        SimpleNamespace(name=name, tensor_cores=cores, **made)
        for name, cores in (("matmul", "wgmma"), ("other", "mma"), ("copy", ""))
    ]
    row = COMPILING.Row(case.name, case.family, 90)
    COMPILING._count(row, case, kernels, {"matmul"})
    assert row.problems == []
    COMPILING._count(row, case, kernels, {"matmul", "other"})
    assert row.problems == ["no wgmma in other"]


def test_spills_and_missing_warpgroups_fail_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = COMPILING.Row("a", "matmul", 90, problems=["spills 8 bytes"])
    monkeypatch.setattr(KERNELS, "compiled", lambda *_: [row])
    monkeypatch.setattr(KERNELS, "show_compiled", lambda *_: None)
    assert KERNELS.main(["--output", str(tmp_path / "kernels.json")]) == 1
    row.problems = []
    assert KERNELS.main(["--output", str(tmp_path / "kernels.json")]) == 0


def test_there_are_cases_of_every_family() -> None:
    families = {case.family for case in CASES.CASES}
    assert len(CASES.CASES) >= 50
    assert families >= {
        "matmul",
        "linear",
        "softmax",
        "layer norm",
        "rms norm",
        "cross entropy",
        "attention",
        "attention backward",
        "reduction",
        "views",
        "elementwise",
        "convolution",
        "windows",
        "indexing",
    }
    assert len({case.name for case in CASES.CASES}) == len(CASES.CASES)
