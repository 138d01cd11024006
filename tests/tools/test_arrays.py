import struct
import zipfile

import ml_dtypes
import numpy as np
import pytest

from tapestry.frontend import parse_text
from tapestry.runtime.fitting import fit_inputs
from tapestry.runtime.program import InputError
from tapestry.tools._arrays import ArrayFileError, read_arrays, write_outputs

BF16 = np.dtype(ml_dtypes.bfloat16)
MODULE = parse_text(
    """\
func.func @main(%x: !loom.tensor<[0] : [3], bf16>, %s: !loom.tensor<[] : [], f32>) {
  func.return
}"""
)
S = np.array(0.5, np.float32)
CELLS = np.array([1.0, -2.0, 0.5], BF16)


@pytest.mark.parametrize(
    "given",
    [CELLS, CELLS.astype(np.float32), CELLS.view(np.uint16), CELLS.view(np.dtype("V2"))],
    ids=["bf16", "float32", "uint16", "raw"],
)
def test_bf16_is_taken_in_every_form_a_file_may_hold(given):
    inputs = fit_inputs(MODULE, {"x": given, "s": S})
    assert inputs["x"].dtype == BF16
    np.testing.assert_array_equal(inputs["x"], CELLS)
    assert inputs["s"].shape == ()


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int16])
def test_other_forms_of_bf16_are_refused(dtype):
    with pytest.raises(InputError, match="input x is .* but must be bfloat16"):
        fit_inputs(MODULE, {"x": CELLS.astype(dtype), "s": S})


def test_bf16_survives_a_file(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, x=CELLS, s=S)
    np.testing.assert_array_equal(fit_inputs(MODULE, read_arrays(path))["x"], CELLS)


def test_bf16_outputs_are_written_as_float32(tmp_path):
    path = tmp_path / "out.npz"
    write_outputs(path, [CELLS])
    found = read_arrays(path)["out0"]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, CELLS.astype(np.float32))


@pytest.mark.parametrize("kind", ["f8E4M3FN", "f8E5M2"])
def test_8_bit_floats_are_numbers_or_bits(tmp_path, kind):
    module = parse_text(f"func.func @main(%x: !loom.tensor<[0] : [3], {kind}>) {{ func.return }}")
    numbers = np.array([1.5, -0.25, 2.0], np.float32)
    (cells,) = fit_inputs(module, {"x": numbers}).values()
    for form in (cells.view(np.uint8), cells.view("V1")):
        np.testing.assert_array_equal(fit_inputs(module, {"x": form})["x"], cells)
    write_outputs(tmp_path / "out.npz", [cells])
    np.testing.assert_array_equal(read_arrays(tmp_path / "out.npz")["out0"], numbers)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_unsigned_integers_are_taken_bit_for_bit(width):
    module = parse_text(f"func.func @main(%x: !loom.tensor<[0] : [2], i{width}>) {{ func.return }}")
    cells = np.array([0, (1 << width) - 1], f"u{width // 8}")
    assert fit_inputs(module, {"x": cells})["x"].tolist() == [0, -1]
    with pytest.raises(InputError):
        fit_inputs(module, {"x": cells.astype(np.float32)})


def test_a_header_that_does_not_end(tmp_path):
    path = tmp_path / "deep.npz"
    header = b"(" * 5000 + b"\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    with pytest.raises(ArrayFileError, match="array 'x' of .* cannot be read"):
        read_arrays(path)
