"""Programs that are saved and loaded, and files that are damaged or hostile."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tapestry
from tapestry.runtime.program import InputError
from tapestry.runtime.triton.executor import TritonExecutor

W = np.random.default_rng(0).normal(size=(64, 32)).astype(np.float32)
X = np.random.default_rng(1).normal(size=(3, 64)).astype(np.float32)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    x = tapestry.input("x", (3, 64))
    tapestry.save([x @ W, x * 2 + 1], tmp_path / "model.mlir")
    return tmp_path / "model.mlir"


def test_what_is_loaded_is_what_was_saved(saved: Path) -> None:
    assert sorted(path.name for path in saved.parent.iterdir()) == ["model.mlir", "model.npz"]
    assert len(saved.read_text()) < 2000
    product, line = tapestry.load(saved)(X)
    np.testing.assert_allclose(product, X @ W, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(line, X * 2 + 1)


def test_a_loaded_program_is_saved_elsewhere_with_its_constants(saved: Path) -> None:
    folder = saved.parent / "elsewhere"
    folder.mkdir()
    tapestry.save(tapestry.load(saved), folder / "copy.mlir")
    saved.with_suffix(".npz").unlink()
    np.testing.assert_allclose(tapestry.load(folder / "copy.mlir")(X)[0], X @ W, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["bf16", "f16", "int8", "bool"])
def test_constants_of_every_kind_are_kept(dtype: str, tmp_path: Path) -> None:
    from tapestry.importers.expressions.functions import dtype_of

    cells = (W * 3).astype(dtype_of(dtype))
    x = tapestry.input("x", (64, 32), dtype)
    tapestry.save(tapestry.concat([x, cells], axis=0), tmp_path / "m.mlir")
    got = tapestry.load(tmp_path / "m.mlir")(cells)
    np.testing.assert_array_equal(got, np.concatenate([cells, cells]))


def _npz(path: Path, name: str, content: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.npy", content)


def _header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def _pickled() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return stream.getvalue()


_HUGE = "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,), }\n"

_HOSTILE = {
    "no archive": (b"nothing", "cannot be read"),
    "a pickle": (_pickled(), "cannot be read: it holds Python objects, which are pickled"),
    "a huge header": (_header(_HUGE), r"of shape \(4611686018427387904,\), but the constant is"),
    "another shape": (None, "but the constant is float32"),
}


@pytest.mark.parametrize("what", _HOSTILE)
def test_damaged_and_hostile_side_files_are_refused(what: str, saved: Path) -> None:
    content, message = _HOSTILE[what]
    side = saved.with_suffix(".npz")
    if what == "no archive":
        side.write_bytes(content or b"")
    elif content is not None:
        _npz(side, "c0", content)
    else:
        np.savez(side, c0=W[:3])
    with pytest.raises(tapestry.TapestryError, match=message) as caught:
        tapestry.load(saved)(X)
    assert str(saved) in str(caught.value)


@pytest.mark.parametrize("path", ["../secret.npz", "/etc/secret.npz", "a\\\\b.npz", "model.pickle"])
def test_side_files_elsewhere_are_refused(path: str, saved: Path) -> None:
    saved.write_text(saved.read_text().replace("model.npz", path))
    with pytest.raises(tapestry.TapestryError, match=r"model.mlir:\d+:\d+.*the side file"):
        tapestry.load(saved)


def test_programs_that_are_none_are_refused(saved: Path) -> None:
    for text in ("", "func.func @main(", "\x00\x01", "module {}"):
        saved.write_text(text)
        with pytest.raises(tapestry.TapestryError):
            tapestry.load(saved)(X)
    with pytest.raises(tapestry.TapestryError, match="cannot read"):
        tapestry.load(saved.with_name("gone.mlir"))


def test_kernels_are_lowered_once_for_many_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered: list[object] = []
    printed = TritonExecutor.printed

    def counted(*given: object) -> object:
        lowered.append(given)
        return printed(*given)

    monkeypatch.setattr(TritonExecutor, "printed", counted)
    x = tapestry.input("x", (3, 4))
    program = tapestry.compile(x.sum(axis=1) * 2, on="triton")
    for _ in range(3):
        given = np.random.default_rng().normal(size=(3, 4)).astype(np.float32)
        np.testing.assert_allclose(program(given), given.sum(axis=1) * 2, rtol=1e-5)
    assert len(lowered) == 1
    split = program.sharded(shards=2)
    np.testing.assert_allclose(split(given), given.sum(axis=1) * 2, rtol=1e-5)
    assert len(lowered) == 2


def test_arrays_in_other_forms_are_what_the_program_takes() -> None:
    """What is exactly what a program takes is not looked at further; other arrays are made so."""
    x, y = tapestry.input("x", (2, 3)), tapestry.input("y", (3,), "int8")
    program = tapestry.compile([x * 2, y + y])
    plain = np.arange(6, dtype=np.float32).reshape(2, 3)
    few = np.array([1, -2, 3], np.int8)
    for given in (
        plain,
        plain.astype(">f4"),
        np.asfortranarray(plain),
        plain.view(np.matrix),
    ):
        for bits in (few, few.view(np.uint8)):
            doubled, sums = program(given, y=bits)
            assert type(doubled) is np.ndarray
            assert doubled.flags.c_contiguous
            np.testing.assert_array_equal(doubled, 2 * plain)
            np.testing.assert_array_equal(sums, 2 * few)
    for wrong in (plain.astype("f8"), plain[:1], plain[0]):
        with pytest.raises(InputError, match="the input x is"):
            program(wrong, few)
    with pytest.raises(InputError, match="there is no argument named z"):
        program(plain, few, z=few)
    with pytest.raises(InputError, match="the input y is missing"):
        program(plain)


@pytest.mark.parametrize("on", ["numpy", "reference", "triton"])
def test_outputs_are_on_memory_of_their_own(on: str) -> None:
    """To write to one changes no input, no other output, and not what the next call gives."""
    x, cells = tapestry.input("x", (2, 3)), np.arange(6, dtype="f4").reshape(2, 3)
    asked = [
        x,
        x.reshape(6),
        (x + 1).reshape(6),
        x + 1,
        (x + 1).T,
        tapestry.arange(stop=4),
        tapestry.eye(3),
    ]
    program = tapestry.compile(asked, on=on)
    for run in (program, lambda x: tapestry.run(asked, x=x, on=on)):
        wants = [one.copy() for one in run(cells)]
        for _ in range(2):
            gots = run(cells)
            for number, (got, want) in enumerate(zip(gots, wants, strict=True)):
                np.testing.assert_array_equal(got, want)
                got[...] = -9 - number
            for number, got in enumerate(gots):
                assert (got == -9 - number).all()
            np.testing.assert_array_equal(cells.reshape(6), np.arange(6))
