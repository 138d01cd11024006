"""Folders of compiled kernels, run by their own loader.

There may be no GPU here: a device stands in for it that finds tensors by the addresses which the
loader passes, and runs the kernel of that name in Triton's interpreter.
"""

from __future__ import annotations

import ctypes
import importlib.util
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tapestry
from tapestry.codegen.bundle import Bundle, compile_bundle
from tapestry.runtime.triton_executor import Cpu
from tapestry.runtime.triton_module import load_kernels

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


class Standing:
    """A device whose memory is this process's."""

    def __init__(self, folder: Path, capability: int = 90) -> None:
        self._capability = capability
        self._cpu = Cpu()
        with self._cpu.session():
            self._kernels = vars(load_kernels(folder / "kernels.py"))
        self.functions = self._cpu.functions()
        self.tensors: dict[int, Any] = {}
        self.uploads = 0
        self.launched: list[tuple[str, tuple[int, ...]]] = []

    def capability(self) -> int:
        return self._capability

    def function(self, cubin: bytes, name: str, shared: int) -> Any:
        assert cubin.startswith(b"\x7fELF")
        assert shared >= 0
        return name

    def put(self, array: np.ndarray) -> Any:
        return self._known(self._cpu.put(array))

    def allocate(self, shape: Any, dtype: str, fill: Any = None) -> Any:
        return self._known(self.functions["allocate"](shape, dtype, fill))

    def upload(self, data: bytes, shape: Any, dtype: str) -> Any:
        self.uploads += 1
        return self._known(self.functions["upload"](data, shape, dtype))

    def launch(
        self, function: str, grid: Any, threads: int, shared: int, arguments: list[Any]
    ) -> None:
        kernel = self._kernels[function]
        options = self._kernels[function.upper()]
        parameters = inspect.signature(kernel.fn).parameters
        count = sum(name not in options for name in parameters)
        given, hidden = arguments[:count], arguments[count:]
        assert all(isinstance(one, ctypes.c_void_p) and not one.value for one in hidden)
        values = [
            self.tensors[one.value] if isinstance(one, ctypes.c_void_p) else one.value
            for one in given
        ]
        assert shared >= 0
        assert threads == 32 * options["num_warps"]
        with self._cpu.session():
            kernel[tuple(grid)](*values, **options)
        self.launched.append((function, tuple(grid)))

    def _known(self, tensor: Any) -> Any:
        self.tensors[tensor.data_ptr()] = tensor
        return tensor


class _Given:
    """What the loader asks of a tensor of PyTorch."""

    def __init__(self, tensor: Any) -> None:
        self.shape, self.dtype = tensor.array.shape, f"torch.{tensor.array.dtype}"
        self._tensor = tensor

    def contiguous(self) -> _Given:
        return self

    def clone(self) -> _Given:
        return self

    def data_ptr(self) -> int:
        return self._tensor.data_ptr()


def test_the_loader_runs_what_was_compiled(bundle: Bundle) -> None:
    device = Standing(bundle.folder)
    program = _loader(bundle.folder).load(
        device=device, allocate=device.allocate, upload=device.upload
    )
    want = X
    for w in W:
        want = np.maximum(want @ w, 0)
    for _ in range(2):
        got = program(_Given(device.put(X)))
        np.testing.assert_allclose(got.array, want, rtol=1e-4, atol=1e-5)
    assert device.uploads == len(W)
    once = len(device.launched) // 2
    assert device.launched[:once] == device.launched[once:]


def test_equal_kernels_of_shards_and_layers_are_one(bundle: Bundle) -> None:
    names = {kernel.name for kernel in bundle.kernels}
    launches = (bundle.folder / "host.py").read_text().count("[grid](")
    assert len(names) < launches
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: [one.write_bytes(b"\x7fELF") for one in f.glob("*.cubin")], "is damaged"),
        (lambda f: (f / "host.py").write_text("import os"), "is damaged"),
        (lambda f: (f / "constants.npz").unlink(), "cannot read"),
        (lambda f: (f / "manifest.json").write_text("{"), "holds no compiled program"),
        (lambda f: (f / "manifest.json").write_text('{"version": 2}'), "in form 2"),
        (lambda f: _rename(f, "../host.py"), "is not a file of"),
    ],
    ids=["cubin", "host", "constants", "no manifest", "other form", "path"],
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
        loader.load(tmp_path, device=Standing(bundle.folder))


def _rename(folder: Path, name: str) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["host"]["file"] = name
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_another_gpu_and_other_tensors_are_refused(bundle: Bundle) -> None:
    loader = _loader(bundle.folder)
    with pytest.raises(loader.LoadError, match="this GPU is sm_75.*compiled for sm_90, sm_80"):
        loader.load(device=Standing(bundle.folder, 75))
    device = Standing(bundle.folder, 86)
    program = loader.load(device=device, allocate=device.allocate, upload=device.upload)
    for given, named, message in (
        ((_Given(device.put(X[:3])),), {}, "must be float32 of shape"),
        ((), {}, "the input x is missing"),
        ((_Given(device.put(X)),) * 2, {}, "2 tensors are given"),
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
    kept = ("manifest.json", "host.py", "load.py", "kernels.py")
    return {name: (folder / name).read_bytes() for name in kept}


def test_a_damaged_cache_is_not_trusted(bundle: Bundle, tmp_path: Path) -> None:
    cache = Path(os.environ["TAPESTRY_CACHE_DIR"], "aot")
    entries = sorted(cache.glob("*.json"))
    assert len(entries) == len(bundle.kernels)
    first, second, *_ = entries
    first.write_bytes(first.read_bytes()[:-100])
    changed = json.loads(second.read_text())
    changed["answer"]["registers"] = 3
    second.write_text(json.dumps(changed))
    again = _compiled(tmp_path)
    assert sum(not kernel.cached for kernel in again.kernels) == 2
    assert [kernel.registers for kernel in again.kernels] == [k.registers for k in bundle.kernels]


def test_an_external_kernel_is_refused(tmp_path: Path) -> None:
    x = tapestry.input("x", (4, 8))
    with pytest.raises(tapestry.TapestryError, match="is an external kernel"):
        compile_bundle(tapestry.compile(x.sort(axis=1)).lowered, tmp_path / "out")


def test_the_command(tmp_path: Path) -> None:
    x = tapestry.input("x", (64, 64), "float16")
    tapestry.save(tapestry.relu(x @ x), tmp_path / "model.mlir")
    command = [sys.executable, "-m", "tapestry.tools.tapestry", "compile", "model.mlir"]
    for options, code, message in (
        (["--target", "sm_90", "-o", "out"], 0, "1 cubins in out"),
        (["--target", "sm_20", "-o", "out"], 2, "no target 'sm_20'"),
        (["-o", "model.mlir"], 2, "cannot write to"),
    ):
        done = subprocess.run(
            [*command, *options], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode, message in done.stdout + done.stderr) == (code, True), done
    assert (tmp_path / "out" / "load.py").exists()
