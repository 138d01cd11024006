import os
from pathlib import Path

import numpy as np
import pytest

from tapestry.diagnostics import UsageError
from tapestry.files import check_writable, whole_file
from tapestry.tools._arrays import read_arrays, write_outputs


def test_replaces_when_done(tmp_path: Path):
    path = tmp_path / "out"
    path.write_text("old")
    with whole_file(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_changes_nothing_when_interrupted(tmp_path: Path, error: type[BaseException]):
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(error), whole_file(path) as temporary:
        temporary.write_text("ne")
        raise error
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out"]


def test_writes_through_a_link(tmp_path: Path):
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "target").write_text("old")
    with whole_file(tmp_path / "link") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_device_stays_a_device():
    with whole_file(Path("/dev/null")) as temporary:
        temporary.write_text("new")
    assert Path("/dev/null").is_char_device()


def test_says_what_cannot_be_written(tmp_path: Path):
    with pytest.raises(UsageError, match="there is no folder"):
        check_writable(tmp_path / "no" / "where")
    with pytest.raises(UsageError, match="it is a folder"):
        check_writable(tmp_path)
    with pytest.raises(UsageError, match="cannot write"), whole_file(tmp_path / "x") as temporary:
        temporary.mkdir()
        temporary.write_text("this is a folder")


def test_leaves_the_errors_of_other_files_alone(tmp_path: Path):
    with pytest.raises(FileNotFoundError), whole_file(tmp_path / "x"):
        (tmp_path / "input").read_text()


def test_outputs_are_read_back(tmp_path: Path):
    outputs = (np.float32(3).reshape(()), np.zeros((0, 2), np.int8), np.array([True]))
    write_outputs(tmp_path / "out.npz", outputs)
    found = read_arrays(tmp_path / "out.npz")
    assert list(found) == ["out0", "out1", "out2"]
    for output, array in zip(outputs, found.values(), strict=True):
        assert (array.dtype, array.shape) == (output.dtype, output.shape)
        np.testing.assert_array_equal(array, output)
