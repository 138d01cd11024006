"""`tapestry run` as a user meets it: exit codes, messages, files, what it prints."""

import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tapestry

ADD_ONE = """\
func.func @main(%x: !loom.tensor<[0] : [6], f32>,
                %y: !loom.tensor<[0] : [6], i32>)
    -> (!loom.tensor<[0] : [6], f32>, !loom.tensor<[0] : [6], i32>) {
  %a = loom.operation @twice over <[0] : [6]> [map]
         ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%e: f32) { %s = arith.addf %e, %e : f32  loom.yield %s : f32 }
         : (!loom.tensor<[0] : [6], f32>) -> !loom.tensor<[0] : [6], f32>
  %b = loom.operation @square over <[0] : [6]> [map]
         ins(%y : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%e: i32) { %s = arith.muli %e, %e : i32  loom.yield %s : i32 }
         : (!loom.tensor<[0] : [6], i32>) -> !loom.tensor<[0] : [6], i32>
  func.return %a, %b : !loom.tensor<[0] : [6], f32>, !loom.tensor<[0] : [6], i32>
}
"""

X = np.arange(6, dtype=np.float32)
Y = np.arange(6, dtype=np.int32)


def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tapestry.tools.tapestry", *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "200", "TERM": "dumb"}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, **options
    )


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_text(ADD_ONE)
    return path


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    path = tmp_path / "in.npz"
    np.savez(path, x=X, y=Y)
    return path


def one_message(result: subprocess.CompletedProcess[str], code: int) -> str:
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.count("error: ") == 1
    return result.stderr


@pytest.mark.parametrize("on", ["reference", "numpy"])
def test_runs_and_reports(program: Path, inputs: Path, tmp_path: Path, on: str):
    output = tmp_path / "out.npz"
    result = run("run", program, "--inputs", inputs, "--output", output, "--on", on)
    assert (result.returncode, result.stderr) == (0, "")
    with np.load(output) as outputs:
        assert sorted(outputs.files) == ["out0", "out1"]
        np.testing.assert_array_equal(outputs["out0"], X + X)
        np.testing.assert_array_equal(outputs["out1"], Y * Y)
        assert (outputs["out0"].dtype, outputs["out1"].dtype) == (np.float32, np.int32)
    for row in ("twice", "square", "total"):
        assert re.search(rf"\b{row}\b.*\bbytes\b.*\bms\b", result.stdout)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.npz", "out.npz", "program.mlir"]


def test_shards_are_counted(program: Path, inputs: Path):
    result = run("run", program, "--inputs", inputs, "--on", "numpy", "--shards", 3)
    assert result.returncode == 0, result.stderr
    assert re.search(r"\btwice\W+3\b", result.stdout)


def test_a_pipeline_that_shards_is_left_alone(program: Path, inputs: Path):
    options = ("--on", "numpy", "--pipeline", "loom-shard{shards=2}", "--shards", 3)
    result = run("run", program, "--inputs", inputs, *options)
    assert result.returncode == 0, result.stderr
    assert re.search(r"\btwice\W+2\b", result.stdout)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"x": X},
            r"program.mlir:2:17: error: the input y is missing; it is int32 of shape \(6,\)",
        ),
        ({"x": X, "y": Y, "z": X}, r"no argument named z\n  hint: @main takes x, y"),
        ({"x": X, "y": Y[:5]}, r"input y is int32 of shape \(5,\), but must be int32 of shape"),
        (
            {"x": X.astype(np.float64), "y": Y},
            r"mlir:1:17: error: .* x is float64 .* must be float32",
        ),
    ],
)
def test_inputs_that_do_not_fit(
    program: Path, tmp_path: Path, arrays: dict[str, np.ndarray], message: str
):
    path = tmp_path / "in.npz"
    np.savez(path, **arrays)
    output = tmp_path / "out.npz"
    result = run("run", program, "--inputs", path, "--output", output, "--on", "numpy")
    assert re.search(message, one_message(result, 1))
    assert not output.exists()


def test_no_inputs_at_all(program: Path):
    assert "the input x is missing" in one_message(run("run", program, "--on", "numpy"), 1)


def test_a_truncated_file(program: Path, inputs: Path, tmp_path: Path):
    cut = tmp_path / "cut.npz"
    cut.write_bytes(inputs.read_bytes()[:-30])
    result = run("run", program, "--inputs", cut, "--on", "numpy")
    assert "cut.npz is not an .npz file, or it is cut off" in one_message(result, 1)


def test_a_damaged_array(program: Path, inputs: Path):
    data = inputs.read_bytes()
    at = data.index(X.tobytes()[4:])
    inputs.write_bytes(data[:at] + b"\xff" + data[at + 1 :])
    result = run("run", program, "--inputs", inputs, "--on", "numpy")
    assert re.search("array 'x' of .*in.npz cannot be read: Bad CRC-32", one_message(result, 1))


def test_an_npy_is_not_an_npz(program: Path, tmp_path: Path):
    path = tmp_path / "x.npy"
    np.save(path, X)
    assert "not an .npz file" in one_message(run("run", program, "--inputs", path), 1)


def test_python_objects_are_not_unpickled(program: Path, tmp_path: Path):
    path = tmp_path / "in.npz"
    np.savez(path, allow_pickle=True, x=np.array([print], dtype=object), y=Y)
    message = one_message(run("run", program, "--inputs", path), 1)
    assert re.search("array 'x' of .*cannot be read: Object arrays cannot be loaded", message)


def test_a_zip_of_something_else(program: Path, tmp_path: Path):
    path = tmp_path / "in.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x", "text")
        file.writestr("y.npy", "text")
    message = one_message(run("run", program, "--inputs", path), 1)
    assert re.search("array 'x' of .*in.npz cannot be read: it is not an array", message)


def test_big_endian_arrays_are_read(program: Path, tmp_path: Path):
    path = tmp_path / "in.npz"
    np.savez(path, x=X.astype(">f4"), y=np.asfortranarray(Y))
    output = tmp_path / "out.npz"
    result = run("run", program, "--inputs", path, "--output", output, "--on", "numpy")
    assert result.returncode == 0, result.stderr
    with np.load(output) as outputs:
        np.testing.assert_array_equal(outputs["out0"], X + X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--on", "ray"], "'ray' is not one of"),
        (["--shards", "0"], "Invalid value for '--shards'"),
        (["--pipeline", "loom-shrad{shards=2}"], "no pass 'loom-shrad'"),
        (["--pipeline", "loom-shard{shrads=2}"], "loom-shard"),
        (["--pipeline", "loom-shard{"], "not well formed"),
        (["--inputs", "nowhere.npz"], "cannot read nowhere.npz: No such file"),
        (["--output", "no/where.npz"], "there is no folder"),
        (["--output", "."], "it is a folder"),
        (["--output", "program.mlir"], "cannot write program.mlir: it is what is read"),
        (["--metakernels", "nowhere"], "--metakernels takes a folder; nowhere is none"),
        (["--no-such-option"], "--no-such-option"),
    ],
)
def test_bad_usage(program: Path, tmp_path: Path, options: list[str], message: str):
    result = run("run", program, *options, cwd=tmp_path)
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    assert message in result.stderr


@pytest.mark.parametrize("on", ["reference", "numpy", "triton"])
def test_a_program_that_does_not_fit_into_memory(tmp_path: Path, on: str):
    size = 1 << 62
    kind = f"!loom.tensor<[0] : [{size}], i8>"
    (tmp_path / "large.mlir").write_text(
        f"func.func @main() -> {kind} {{\n"
        f'  %y = weft.apply @zeros() {{shape = [{size}], dtype = "i8"}} : () -> {kind}\n'
        f"  func.return %y : {kind}\n}}\n"
    )
    result = run("run", tmp_path / "large.mlir", "--on", on)
    assert result.returncode == 1
    assert "error: there is not enough memory" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_full_disk(program: Path):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "tapestry.tools.tapestry", "inspect", str(program)]
        result = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert result.returncode == 1
    assert result.stderr == "error: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize("tool", ["tapestry", "opt"])
def test_a_tool_says_its_version(tool: str):
    command = [sys.executable, "-m", f"tapestry.tools.{tool}", "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert tapestry.__version__ in said


def test_no_such_program():
    assert "cannot read nowhere.mlir" in one_message(run("run", "nowhere.mlir"), 2)


def test_a_program_that_is_wrong_is_located(tmp_path: Path):
    path = tmp_path / "wrong.mlir"
    path.write_text(ADD_ONE.replace("arith.addf", "arith.and"))
    assert re.match(r".*wrong\.mlir:6:\d+: error: ", one_message(run("run", path), 1))


def test_compare_agrees(program: Path, inputs: Path, tmp_path: Path):
    expected = tmp_path / "expected.npz"
    np.savez(expected, out0=(X + X) * np.float32(1 + 1e-6), out1=Y * Y)
    options = ("--on", "numpy", "--compare", expected)
    result = run("run", program, "--inputs", inputs, *options)
    assert result.returncode == 0, result.stderr
    assert re.search(r"out0: agrees: max abs error \S+, max rel error \S+", result.stdout)
    assert "out1: agrees: all 6 cells are equal" in result.stdout
    tight = run("run", program, "--inputs", inputs, *options, "--rtol", 0, "--atol", 0)
    assert tight.returncode == 1
    assert re.search(r"out0: differs: 5 of 6 cells beyond tolerance", tight.stdout)


def test_compare_differs_and_the_output_is_still_written(
    program: Path, inputs: Path, tmp_path: Path
):
    expected, output = tmp_path / "expected.npz", tmp_path / "out.npz"
    np.savez(expected, out0=X + X, out1=Y)
    result = run(
        *("run", program, "--inputs", inputs, "--output", output),
        *("--on", "numpy", "--compare", expected),
    )
    assert result.returncode == 1
    assert "out0: agrees" in result.stdout
    assert "out1: differs: 4 of 6 cells not equal" in result.stdout
    assert output.exists()


def test_compare_with_other_names(program: Path, inputs: Path, tmp_path: Path):
    expected = tmp_path / "expected.npz"
    np.savez(expected, out0=X, result=Y)
    options = ("--on", "numpy", "--compare", expected)
    message = one_message(run("run", program, "--inputs", inputs, *options), 1)
    assert "expected.npz lacks out1 and also holds result" in message


def test_interrupted_leaves_nothing_behind(tmp_path: Path):
    """A fold of 2^31 points takes minutes on any executor; Ctrl-C comes while it runs."""
    program, output = tmp_path / "long.mlir", tmp_path / "out.npz"
    program.write_text(
        """\
func.func @main() -> !loom.tensor<[0] : [2048], i64> {
  %s = loom.operation @sum over <[0, 0, 0] : [2048, 1024, 1024]> [map, fold, fold] by @add
         ins() outs((d0) -> (d0))
         wrap () {
           %i = loom.index 0 : i64
           %j = loom.index 1 : i64
           %k = loom.index 2 : i64
           %ij = arith.addi %i, %j : i64
           %ijk = arith.xori %ij, %k : i64
           loom.yield %ijk : i64
         }
         : () -> !loom.tensor<[0] : [2048], i64>
  func.return %s : !loom.tensor<[0] : [2048], i64>
}
"""
    )
    output.write_bytes(b"as it was")
    # A suite that runs in the background ignores interrupts, and what it starts would too.
    heeding = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from tapestry.tools.tapestry import main; main()"
    )
    command = [sys.executable, "-c", heeding, "run", program, "--on", "reference"]
    process = subprocess.Popen(
        [*command, "--output", output],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    time.sleep(3)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "interrupted\n")
    assert output.read_bytes() == b"as it was"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["long.mlir", "out.npz"]
