"""Addresses are those that NumPy says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tapestry.runtime.cpu import addresses
from tapestry.runtime.cpu.addresses import address, is_within


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4),
        np.arange(12.0).reshape(3, 4)[1:, ::-1].T,
        np.broadcast_to(np.float32(3), (5, 5)),
        np.array(1.5),
        np.zeros((0, 3)),
        np.zeros(4)[4:],
        np.frombuffer(b"12345678", np.int32),
        np.ones((2, 2)).view(np.matrix),
    ],
)
def test_the_address_of_the_first_cell(array: np.ndarray) -> None:
    assert address(array) == array.__array_interface__["data"][0] == array.ctypes.data


def test_arrays_on_files(tmp_path: Path) -> None:
    cells = np.memmap(tmp_path / "cells", np.int64, "w+", shape=(4, 4))
    assert address(cells[2:]) == address(cells) + 64 == cells.ctypes.data + 64


def test_other_interpreters_ask_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert addresses._is_readable()
    monkeypatch.setattr(addresses, "_read", lambda array: id(array))
    assert not addresses._is_readable()
    assert addresses._said(np.arange(3)[1:]) != 0


def test_what_lies_within_another() -> None:
    whole = np.arange(24.0).reshape(4, 6)
    for view in (whole, whole.T, whole[1:3, ::-2], whole[2, 3:4], whole.view(np.int32)):
        assert is_within(view, whole)
    assert not is_within(whole, whole[1:])
    assert not is_within(whole[:2], whole[1:])
    assert not is_within(whole.copy(), whole)
    assert not is_within(whole[0, 0], whole)  # a number of its own
    assert not is_within(whole, 1.0)
