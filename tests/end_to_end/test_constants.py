"""Constants: every element type on every executor; side files, right and wrong."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from tapestry.algebra.dtypes import ELEMENT_TYPES, is_complex, numpy_dtype
from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects.loom import ConstantOp, TensorType
from tapestry.frontend import load_module, parse_text, verify_module
from tapestry.runtime.executor import EXECUTORS, NoWatch, find_executor
from tapestry.zspace import Range


def run(module, on: str) -> tuple[np.ndarray, ...]:
    verify_module(module)
    return find_executor(on).run(module, {}, NoWatch()).outputs


@pytest.mark.parametrize("on", EXECUTORS)
def test_cells_of_every_type_arrive(on: str) -> None:
    # Triton has no complex numbers.
    elements = [e for e in ELEMENT_TYPES if on != "triton" or not is_complex(e)]
    cells = [
        np.random.default_rng(n).integers(0, 2, (3, 40)).astype(numpy_dtype(element))
        for n, element in enumerate(elements)
    ]
    kinds = [TensorType.of(Range((1, -2), (4, 38)), element) for element in elements]
    constants = [ConstantOp.of(c, k) for c, k in zip(cells, kinds, strict=True)]
    lines = [str(op).replace("%0", f"%c{n}", 1) for n, op in enumerate(constants)]
    kinds_text = ", ".join(map(str, kinds))
    values = ", ".join(f"%c{n}" for n in range(len(kinds)))
    text = "\n".join(
        [
            f"func.func @main() -> ({kinds_text}) {{",
            *lines,
            f"func.return {values} : {kinds_text}}}",
        ]
    )
    for got, want in zip(run(parse_text(text), on), cells, strict=True):
        assert got.dtype == want.dtype
        assert got.flags.writeable
        np.testing.assert_array_equal(got, want)


_FILE = """
!w = !loom.tensor<[0] : [3], {element}>
func.func @main() -> !w {{
  %w = loom.constant file "sub/w.npz" entry "a" : !w
  %d = loom.operation @double over <[0] : [3]> [map] ins(%w : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: {element}) {{ %s = arith.addf %c, %c : {element} loom.yield %s : {element} }}
         : (!w) -> !w
  func.return %d : !w
}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    return tmp_path


def in_file(folder: Path, element: str):
    path = folder / "m.mlir"
    path.write_text(_FILE.format(element=element))
    return load_module(path)


@pytest.mark.parametrize("on", EXECUTORS)
@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_side_files_are_beside_the_program(on: str, element: str, folder: Path) -> None:
    module = in_file(folder, element)
    dtype = numpy_dtype(module.body.block.first_op.function_type.outputs.data[0].element_type)
    np.savez(folder / "sub" / "w.npz", a=np.array([1, 2, 3], dtype), b=np.zeros(1))
    (doubled,) = run(module, on)
    np.testing.assert_array_equal(doubled.astype(np.float32), [2, 4, 6])


@pytest.mark.parametrize("on", EXECUTORS)
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read: there is no such file"),
        (b"not a zip file at all", "cannot be read"),
        ({"b": np.ones(3, np.float32)}, "has no array 'a'\n  hint: it has b"),
        ({"a": np.ones(4, np.float32)}, r"is float32 of shape \(4,\), but the constant is float32"),
        ({"a": np.ones(3, np.int32)}, "is int32 of shape"),
        ({"a": np.array([{}, {}, {}])}, "cannot be read: .*Python objects, which are pickled"),
    ],
)
def test_other_side_files_are_refused(on: str, content, says: str, folder: Path) -> None:
    path = folder / "sub" / "w.npz"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        np.savez(path, **content)
    module = in_file(folder, "f32")
    with pytest.raises(InvalidProgramError, match=rf"m\.mlir:4:3: error: (?s:.*){says}"):
        run(module, on)


def npy(header: str, cells: bytes = b"") -> bytes:
    text = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + cells


@pytest.mark.parametrize(
    ("content", "says"),
    [
        # Room is made for what the constant needs, never for what a header says.
        (
            npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1 << 50,)}"),
            "cannot be read: malformed",
        ),
        (
            npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 3)}"),
            r"is float32 of shape \(1000000000000, 3\)",
        ),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", b"1234"), "a is cut off"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "its header of 4294967295 bytes is none"),
        (b"\x93NUMPY\x07\x00", r"its format \(7, 0\) is none"),
        (npy("print('run')"), "cannot be read: malformed"),
    ],
)
def test_hostile_side_files_are_refused(content: bytes, says: str, folder: Path) -> None:
    with zipfile.ZipFile(folder / "sub" / "w.npz", "w") as archive:
        archive.writestr("a.npy", content)
    with pytest.raises(InvalidProgramError, match=says):
        run(in_file(folder, "f32"), "numpy")


def test_links_out_of_the_folder_are_refused(folder: Path, tmp_path_factory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "w.npz"
    np.savez(elsewhere, a=np.ones(3, np.float32))
    (folder / "sub" / "w.npz").symlink_to(elsewhere)
    with pytest.raises(InvalidProgramError, match="a link out of the folder of the program"):
        run(in_file(folder, "f32"), "numpy")
