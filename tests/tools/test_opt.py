"""What `tapestry-opt -o` leaves behind."""

import subprocess
import sys
from pathlib import Path

import pytest

GOOD = """\
func.func @main(%x: !loom.tensor<[0] : [3], f32>) -> !loom.tensor<[0] : [3], f32> {
  func.return %x : !loom.tensor<[0] : [3], f32>
}
"""


def opt(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tapestry.tools.opt", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.mlir"
    path.write_text(GOOD)
    return path


def test_writes_a_file(source: Path, tmp_path: Path):
    output = tmp_path / "out.mlir"
    done = opt(source, "-o", output)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert output.read_text() == opt(source).stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.mlir", "out.mlir"]


@pytest.mark.parametrize("extra", [["-p", "loom-shard{grid=2,2}"], ["-p", "no-such-pass"]])
def test_a_failure_leaves_the_file_as_it_was(source: Path, tmp_path: Path, extra: list[str]):
    source.write_text(GOOD.replace("[3], f32> {", "[4], f32> {"))
    output = tmp_path / "out.mlir"
    output.write_text("as it was")
    done = opt(source, "-o", output, *extra)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert output.read_text() == "as it was"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.mlir", "out.mlir"]


def test_a_device_stays_a_device(source: Path):
    assert opt(source, "-o", "/dev/null").returncode == 0
    assert Path("/dev/null").is_char_device()


def test_says_what_cannot_be_opened(source: Path, tmp_path: Path):
    for arguments, message in (
        ((source, "-o", tmp_path / "no" / "out.mlir"), "there is no folder"),
        ((tmp_path / "nowhere.mlir", "-o", tmp_path / "out.mlir"), "nowhere.mlir"),
    ):
        done = opt(*arguments)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert message in done.stderr
