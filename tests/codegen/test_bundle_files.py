"""Files of a folder of compiled kernels: those of earlier programs go, and others' stay."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import tapestry
from tapestry.codegen.bundle import compile_bundle
from tapestry.codegen.manifests import digest_of
from tapestry.diagnostics import UsageError


def test_files_of_an_earlier_program_are_removed_and_no_others(tmp_path: Path) -> None:
    x = tapestry.input("x", (16, 16))
    out = tmp_path / "out"
    weights = np.arange(256, dtype=np.float32).reshape(16, 16)
    compile_bundle(tapestry.compile(x @ weights).lowered, out)
    (first,) = out.glob("*.cubin")
    (out / "mine.cubin").write_bytes(b"mine")
    compile_bundle(tapestry.compile(x + 1).lowered, out)
    assert not first.exists()
    (second,) = set(out.glob("*.cubin")) - {out / "mine.cubin"}
    written = {"kernels.py", "load.py", "manifest.json", second.name}
    assert {path.name for path in out.iterdir()} == written | {"mine.cubin"}
    second.write_bytes(b"another's")
    compile_bundle(tapestry.compile(x - 2 * x.T).lowered, out)
    assert second.read_bytes() == b"another's"


def test_what_no_manifest_of_ours_lists_is_left(tmp_path: Path) -> None:
    x = tapestry.input("x", (16, 16))
    (tmp_path / "kept.txt").write_text("kept")
    files = {"kept.txt": sha256(b"kept").hexdigest()}
    forged = {"targets": [], "files": files, "kernels": []}
    (tmp_path / "manifest.json").write_text(json.dumps(forged))
    compile_bundle(tapestry.compile(x + 1).lowered, tmp_path)
    outside = {"targets": [], "files": {"../kept.txt": files["kept.txt"]}, "kernels": []}
    out = tmp_path / "out"
    out.mkdir()
    (out / "manifest.json").write_text(json.dumps({**outside, "sha256": digest_of(outside)}))
    compile_bundle(tapestry.compile(x + 1).lowered, out)
    assert (tmp_path / "kept.txt").read_text() == "kept"


@pytest.mark.parametrize("name", ["kernels.py", "load.py", "manifest.json", "constants.npz"])
@pytest.mark.parametrize("content", [b"", b"mine\n", b"\xff\xfe\x00", b'{"targets": {}}'])
def test_files_of_others_are_not_overwritten(name: str, content: bytes, tmp_path: Path) -> None:
    program = tapestry.compile(tapestry.input("x", (16, 16)) + 1).lowered
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=f"{name}: there is one that Tapestry did not write"):
        compile_bundle(program, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == content


def test_constants_and_folders_of_others_stay(tmp_path: Path) -> None:
    program = tapestry.compile(tapestry.input("x", (16, 16)) + 1).lowered
    np.savez(tmp_path / "constants.npz", mine=np.arange(5))
    with pytest.raises(UsageError, match=r"constants.npz: there is one that Tapestry did not"):
        compile_bundle(program, tmp_path)
    assert np.load(tmp_path / "constants.npz")["mine"].tolist() == [0, 1, 2, 3, 4]
    (tmp_path / "out" / "load.py").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"cannot read .*load.py"):
        compile_bundle(program, tmp_path / "out")


def test_what_was_left_half_written_is_overwritten(tmp_path: Path) -> None:
    program = tapestry.compile(tapestry.input("x", (16, 16)) + 1).lowered
    compile_bundle(program, tmp_path)
    kernels = (tmp_path / "kernels.py").read_bytes()
    (tmp_path / "manifest.json").unlink()
    for name in ("kernels.py", "load.py"):
        path = tmp_path / name
        path.write_bytes(path.read_bytes()[:400])
    compile_bundle(program, tmp_path)
    assert (tmp_path / "kernels.py").read_bytes() == kernels
