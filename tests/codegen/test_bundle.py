"""Folders of compiled kernels, run by their own loader.

There may be no GPU here: a device stands in for it that finds tensors by the addresses which the
loader passes, and runs the kernel of that name in Triton's interpreter.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tapestry
from tapestry.codegen import climbing
from tapestry.codegen.aot import MAX_SHARED_BYTES, CompileError
from tapestry.codegen.bundle import Bundle, compile_bundle
from tapestry.codegen.manifests import digest_of
from tapestry.dialects.triton import Schedule
from tapestry.passes.triton.tasks import give
from tests.codegen.standing import Standing, Tensor, aligned, standing

RNG = np.random.default_rng(5)
W = [RNG.normal(size=(32, 32)).astype(np.float32) / 6 for _ in range(3)]
X = RNG.normal(size=(20, 32)).astype(np.float32)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bundle]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAPESTRY_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield _compiled(tmp_path_factory.mktemp("out"))


def _compiled(folder: Path) -> Bundle:
    x = tapestry.input("x", (20, 32))
    y = x
    for w in W:
        y = tapestry.relu(y @ w)
    plain = tapestry.compile(y, pipeline="weft-apply,loom-simplify,loom-fuse")
    lowered = plain.sharded(shards=2).lowered
    return compile_bundle(lowered, folder, targets=(90, 80))


def _loader(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("load_of_bundle", folder / "load.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _device(bundle: Bundle, capability: int = 90) -> Standing:
    return standing(bundle.folder, bundle.specs, capability=capability)


def _given(array: np.ndarray) -> Tensor:
    return Tensor(aligned(array))


def _want(x: np.ndarray) -> np.ndarray:
    for w in W:
        x = np.maximum(x @ w, 0)
    return x


def test_the_loader_runs_what_was_compiled(bundle: Bundle) -> None:
    device = _device(bundle)
    program = _loader(bundle.folder).load(device=device)
    for _ in range(2):
        got = program(_given(X))
        np.testing.assert_allclose(got.array, _want(X), rtol=1e-4, atol=1e-5)
    assert device.uploads == len(W)
    once = len(device.launched) // 2
    assert once == len(bundle.plan.launches)
    assert device.launched[:once] == device.launched[once:]


def test_temporaries_share_one_arena(bundle: Bundle) -> None:
    device = _device(bundle)
    program = _loader(bundle.folder).load(device=device)
    program(_given(X))
    assert program.memory == bundle.plan.arena
    assert sorted(device.empties) == sorted([bundle.plan.arena, X.nbytes])
    assert 0 < bundle.plan.arena < bundle.plan.temporaries + 256 * len(bundle.plan.buffers)


def test_memory_that_a_kernel_asks_for_is_in_the_arena(tmp_path: Path) -> None:
    """Tensor descriptors are made in it."""
    x, w = tapestry.input("x", (64, 64), "float16"), tapestry.input("w", (64, 64), "float16")
    module = tapestry.compile(x @ w).lowered
    (op,) = [op for op in module.walk() if op.name == "loom.operation"]
    give(op, Schedule.parse("M = 32, N = 32, K = 32, loads = descriptor"))
    bundle = compile_bundle(module, tmp_path)
    (launch,) = bundle.plan.launches
    assert launch.scratch is not None
    assert bundle.plan.buffers[launch.scratch].bytes == 4 * bundle.kernels[0].scratch > 0
    array = RNG.normal(size=(64, 64)).astype(np.float16)
    device = _device(bundle)
    (scratch,) = [one.bytes for one in bundle.plan.buffers if one.kind == "temporary"]
    got = _loader(tmp_path).load(tmp_path, device=device)(_given(array), _given(array))
    np.testing.assert_allclose(got.array, array @ array, rtol=1e-2, atol=5e-2)
    assert bundle.plan.arena in device.empties
    assert bundle.plan.arena >= scratch


def test_equal_kernels_of_shards_and_layers_are_one(bundle: Bundle) -> None:
    names = {kernel.name for kernel in bundle.kernels}
    assert len(names) < len(bundle.plan.launches)
    assert len(list(bundle.folder.glob("*.cubin"))) == bundle.cubins <= 2 * len(names)


def test_the_manifest_says_what_is_taken_and_given(bundle: Bundle) -> None:
    manifest = json.loads((bundle.folder / "manifest.json").read_text())
    assert manifest["inputs"] == [{"name": "x", "dtype": "float32", "shape": [20, 32]}]
    assert manifest["outputs"] == [{"dtype": "float32", "shape": [20, 32]}]
    assert manifest["targets"] == [90, 80]


def test_the_loader_needs_nothing_of_tapestry_or_triton(bundle: Bundle) -> None:
    code = (
        "import sys, load\n"
        "loaded = {name.split('.')[0] for name in sys.modules}\n"
        "assert not loaded & {'tapestry', 'triton', 'xdsl'}"
    )
    subprocess.run([sys.executable, "-c", code], cwd=bundle.folder, check=True, env={})


def test_the_loader_says_what_is_missing_without_a_traceback(bundle: Bundle) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    command = [sys.executable, "load.py"]
    done = subprocess.run(command, cwd=bundle.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: PyTorch sees no GPU")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: [one.write_bytes(b"\x7fELF") for one in f.glob("*.cubin")], "is damaged"),
        (lambda f: (f / "constants.npz").unlink(), "cannot read"),
        (lambda f: (f / "manifest.json").write_text("{"), "holds no compiled program"),
        (lambda f: (f / "manifest.json").write_text('{"version": 1}'), "in form 1"),
        (lambda f: (f / "manifest.json").write_text("[" * 100_000), "holds no compiled program"),
        (lambda f: _edit(f, _offset(0, 1 << 20), sign=False), "manifest.json is damaged"),
        (lambda f: _edit(f, lambda m: m["kernels"][0].update(cubin="../x")), "is not a file of"),
        (lambda f: _edit(f, lambda m: m["files"].update({"/etc/passwd": ""})), "is not a file of"),
        (lambda f: _edit(f, lambda m: m["files"].update({"..": ""})), "cannot read"),
        (lambda f: _edit(f, lambda m: m["files"].update({"a\0b": ""})), r"'a\\x00b' is not a file"),
        (lambda f: _edit(f, lambda m: m["kernels"][0].update(cubin="\ud800")), r"'\\ud800' is not"),
        (lambda f: _edit(f, _file("../constants.npz")), "is not a file of"),
        (lambda f: _edit(f, _offset(0, 1 << 20)), "a temporary outside the arena"),
        (lambda f: _edit(f, _step(0, buffers=[0, 99, 1])), "a buffer that there is not"),
        (lambda f: _edit(f, _step(0, buffers=[0])), "takes .* arguments"),
        (lambda f: _edit(f, _step(0, programs=1 << 40)), "programs"),
        (lambda f: _edit(f, _step(0, kernel="other")), "step . runs no kernel of the manifest"),
        (lambda f: _edit(f, lambda m: m.pop("plan")), "cannot be: the manifest has no 'plan'"),
        (lambda f: _edit(f, lambda m: m.update(plan=[])), "manifest.plan is no table"),
        (lambda f: _edit(f, lambda m: m["kernels"][1].pop("symbol")), r"kernels\[1\] has no 'sy"),
        (lambda f: _edit(f, lambda m: m.update(targets=[True])), r"targets\[0\] is not a number"),
        (lambda f: _edit(f, lambda m: m.update(files=None)), "manifest.files is no table"),
        (lambda f: _edit(f, lambda m: m["inputs"][0].update(dtype="nn")), "has cells of 'nn'"),
        (lambda f: _edit(f, lambda m: m["inputs"][0].update(shape=[1])), "bytes of their buffers"),
        (lambda f: _edit(f, lambda m: m["outputs"][0].update(shape=[1])), "bytes of its buffer"),
        (lambda f: _edit(f, lambda m: m["outputs"].clear()), "1 results, of 0"),
        (lambda f: _edit(f, _step(0, numbers=[0, 1 << 70])), "does not fit 64 bits"),
    ],
    ids=[
        "cubin",
        "constants",
        "no manifest",
        "other form",
        "deep",
        "digest",
        "path of a cubin",
        "path of a file",
        "folder",
        "NUL",
        "half a surrogate pair",
        "path of a constant",
        "offset",
        "buffer",
        "arguments",
        "programs",
        "kernel",
        "no plan",
        "plan",
        "no symbol",
        "target",
        "files",
        "type of an input",
        "shape of an input",
        "shape of a result",
        "results",
        "number",
    ],
)
def test_what_is_damaged_is_refused(
    change: Any, message: str, bundle: Bundle, tmp_path: Path
) -> None:
    for path in bundle.folder.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    change(tmp_path)
    loader = _loader(bundle.folder)
    with pytest.raises(loader.LoadError, match=message):
        loader.load(tmp_path, device=_device(bundle))


def _edit(folder: Path, change: Callable[[dict[str, Any]], object], *, sign: bool = True) -> None:
    """Change a manifest, so that its digest is right again."""
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    if sign:
        del manifest["sha256"]
        manifest["sha256"] = digest_of(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def _offset(place: int, offset: int) -> Callable[[dict[str, Any]], object]:
    def change(manifest: dict[str, Any]) -> None:
        buffers = [b for b in manifest["plan"]["buffers"] if b["kind"] == "temporary"]
        buffers[place]["offset"] = offset

    return change


def _file(name: str) -> Callable[[dict[str, Any]], object]:
    def change(manifest: dict[str, Any]) -> None:
        next(b for b in manifest["plan"]["buffers"] if "file" in b)["file"] = name

    return change


def _step(place: int, **values: Any) -> Callable[[dict[str, Any]], object]:
    def change(manifest: dict[str, Any]) -> None:
        steps = [step for step in manifest["plan"]["steps"] if "kernel" in step]
        steps[place].update(values)

    return change


def test_another_gpu_and_other_tensors_are_refused(bundle: Bundle) -> None:
    loader = _loader(bundle.folder)
    with pytest.raises(loader.LoadError, match=r"sm_75, which is too old.*7\.5.*8\.0 at least$"):
        loader.load(device=_device(bundle, 75))
    said = "this GPU is sm_103.*compiled for sm_90, sm_80.*with --target sm_103"
    with pytest.raises(loader.LoadError, match=said):
        loader.load(device=_device(bundle, 103))
    program = loader.load(device=_device(bundle, 86))
    elsewhere = _given(X)
    elsewhere.device = "cpu"
    for given, named, message in (
        ((_given(X[:3]),), {}, "must be float32 of shape"),
        ((X.tolist(),), {}, "is a list, but must be a tensor"),
        ((elsewhere,), {}, "is on cpu"),
        ((), {}, "the input x is missing"),
        ((_given(X),) * 2, {}, "2 tensors are given"),
        ((), {"z": X}, "is no input"),
    ):
        with pytest.raises(TypeError, match=message):
            program(*given, **named)


def test_kernels_are_compiled_once(bundle: Bundle, tmp_path: Path) -> None:
    assert not any(kernel.cached for kernel in bundle.kernels)
    again = _compiled(tmp_path)
    assert all(kernel.cached for kernel in again.kernels)
    for file in bundle.folder.glob("*.cubin"):
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()
    assert _contents(tmp_path) == _contents(bundle.folder)


def _contents(folder: Path) -> dict[str, bytes]:
    kept = ("manifest.json", "load.py", "kernels.py")
    return {name: (folder / name).read_bytes() for name in kept}


def test_what_is_kept_needs_no_process(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*_: Any, **__: Any) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", started)
    again = _compiled(tmp_path)
    assert [one.cubin for one in again.kernels] == [one.cubin for one in bundle.kernels]


def test_a_damaged_cache_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPESTRY_CACHE_DIR", str(tmp_path / "cache"))
    bundle = _compiled(tmp_path / "before")
    entries = sorted((tmp_path / "cache" / "aot").glob("*.json"))
    assert len(entries) == len(bundle.kernels)
    first, second, *_ = entries
    first.write_bytes(first.read_bytes()[:-100])
    digest, held = second.read_text().split("\n")
    second.write_text(f"{digest}\n{json.dumps({**json.loads(held), 'registers': 3})}")
    again = _compiled(tmp_path / "after")
    assert sum(not kernel.cached for kernel in again.kernels) == 2
    assert [kernel.registers for kernel in again.kernels] == [k.registers for k in bundle.kernels]


def test_an_external_kernel_is_refused(tmp_path: Path) -> None:
    x = tapestry.input("x", (4, 8))
    with pytest.raises(tapestry.TapestryError, match="is an external kernel"):
        compile_bundle(tapestry.compile(x.sort(axis=1)).lowered, tmp_path / "out")


def test_what_does_not_fit_is_made_again_with_more_care(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a folder would be refused by each GPU of its target."""
    monkeypatch.setattr(climbing, "_said", set[str]())
    monkeypatch.setattr(logging.getLogger("tapestry.fallbacks"), "propagate", True)
    x = tapestry.input("x", (512, 512), "float16")
    module = tapestry.compile(x @ x).lowered.clone()
    (op,) = [op for op in module.walk() if op.name == "loom.operation"]
    give(op, Schedule.parse("M = 128, N = 128, K = 128, warps = 8, stages = 3"))
    monkeypatch.setitem(MAX_SHARED_BYTES, 90, 100 << 10)
    bundle = compile_bundle(module, tmp_path)
    (kernel,) = bundle.kernels
    assert kernel.shared <= 100 << 10
    (said,) = [one.getMessage() for one in caplog.records if "it runs with" in one.getMessage()]
    assert re.match(r"@matmul \(.*\) with M = 128, N = 128, K = 128, .*: takes \d+ bytes", said)
    assert "bytes of shared memory, and a program has 102400 on sm_90" in said
    assert "hint: give it a schedule that fits" in said


def test_what_fits_on_no_rung_is_an_error_that_names_the_operation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logging.getLogger("tapestry.fallbacks"), "propagate", True)
    x = tapestry.input("x", (512, 512), "float16")
    module = tapestry.compile(x @ x).lowered
    monkeypatch.setitem(MAX_SHARED_BYTES, 90, -1)
    with pytest.raises(CompileError) as found:
        compile_bundle(module, tmp_path)
    assert re.match(r"@matmul \(.*:\d+\) with M = .*: takes \d+ bytes", found.value.message)
    assert found.value.hint is not None
    assert not any("it runs with" in one.getMessage() for one in caplog.records)


def test_a_result_goes_where_kernels_can_write(bundle: Bundle) -> None:
    program = _loader(bundle.folder).load(device=_device(bundle))
    elsewhere = _given(np.empty((20, 32), np.float32))
    elsewhere.device = "cpu"
    with pytest.raises(TypeError, match="out is on cpu, and the program on another"):
        program(_given(X), out=elsewhere)
    with pytest.raises(TypeError, match="out has a ndarray, but must have tensors"):
        program(_given(X), out=np.empty((20, 32), np.float32))


def test_constants_that_do_not_fit_are_said(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OutOfMemoryError(RuntimeError):
        pass

    def upload(*_: Any) -> None:
        raise OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(Standing, "upload", upload)
    loader = _loader(bundle.folder)
    with pytest.raises(loader.LoadError, match=f"constants of .* take {3 * W[0].nbytes} bytes"):
        loader.load(device=_device(bundle))


@pytest.mark.parametrize(("code", "said"), [(700, "start the process again"), (46, "error 46$")])
def test_a_launch_that_fails_says_what_is_left_to_do(bundle: Bundle, code: int, said: str) -> None:
    device = _device(bundle)
    loader = _loader(bundle.folder)
    program = loader.load(device=device)
    device.codes = dict.fromkeys(device.signatures, code)
    with pytest.raises(loader.DriverError, match=f"kernel .* failed: CUDA error {code}") as found:
        program(_given(X))
    assert re.search(said, str(found.value))


def test_a_compiler_that_is_not_there_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No kernel is at fault, so none is made with more care."""
    monkeypatch.setenv("TAPESTRY_CACHE", "0")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    x = tapestry.input("x", (16, 16))
    with pytest.raises(tapestry.TapestryError, match="compiling .* failed"):
        compile_bundle(tapestry.compile(x @ x).lowered, tmp_path)


def test_the_command(tmp_path: Path) -> None:
    x = tapestry.input("x", (64, 64), "float16")
    tapestry.save(tapestry.relu(x @ x), tmp_path / "model.mlir")
    command = [sys.executable, "-m", "tapestry.tools.tapestry", "compile", "model.mlir"]
    for options, code, message in (
        (["--numerics", "mixed", "--target", "sm_90", "-o", "out"], 0, "1 cubins in out"),
        (["--target", "sm_20", "-o", "out"], 2, "no target 'sm_20'"),
        (["-o", "model.mlir"], 2, "cannot write to"),
    ):
        done = subprocess.run(
            [*command, *options], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode, message in done.stdout + done.stderr) == (code, True), done
    assert (tmp_path / "out" / "load.py").exists()
