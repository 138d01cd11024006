"""Functions that are compiled, kept, found again, and not loaded when they are damaged."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import numpy as np
import pytest

from tapestry.codegen.loops import Cell, Graph, Layout, loop_text
from tapestry.runtime.cpu import native

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

_SQUARES = loop_text(
    Graph(("double",), (), (Cell(lambda w, v: w.binary("fmul", *v), (0, 0), "double"),), (1,)),
    Layout((False,), ((True,), (True,)), (True, True)),
)


def _square(function: native.Compiled) -> float:
    x, y = np.array([3.0]), np.zeros(1)
    arguments = np.array([1, x.ctypes.data, y.ctypes.data])
    function(arguments.ctypes.data)
    return y[0].item()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, and a process that has compiled nothing."""
    monkeypatch.setenv("TAPESTRY_CACHE", "1")
    monkeypatch.setenv("TAPESTRY_CACHE_DIR", str(tmp_path))
    return tmp_path / native.KIND


def _compiled(caplog: pytest.LogCaptureFixture) -> str:
    """How a function was come by, in a process that knows none."""
    native.forget()
    caplog.clear()
    with caplog.at_level(logging.INFO, "tapestry.kernels"):
        function = native.compiled(_SQUARES)
    assert function is not None
    assert _square(function) == 9.0
    (record,) = [one for one in caplog.records if one.name == "tapestry.kernels"]
    return record.getMessage()


def test_a_function_is_found_again(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert "compiled" in _compiled(caplog)
    assert "found" in _compiled(caplog)
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("how", ["damaged", "shared"])
def test_code_that_may_be_another_s_is_not_loaded(
    how: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _compiled(caplog)
    (entry,) = folder.iterdir()
    if how == "damaged":
        held = bytearray(entry.read_bytes())
        held[-40] ^= 1
        entry.write_bytes(held)
    else:
        entry.chmod(0o666)
    assert "compiled" in _compiled(caplog)


def test_nothing_is_compiled_where_it_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(native.SWITCH, "0")
    assert not native.is_ready()
    assert native.compiled(_SQUARES) is None


def _fail(*_: object) -> bytes:
    raise RuntimeError("LLVM ERROR: out of registers")


def test_what_llvm_fails_on_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TAPESTRY_CACHE", "0")
    native.forget()
    monkeypatch.setattr(native._Machine, "_compile", _fail)
    with caplog.at_level(logging.WARNING, "tapestry.kernels"):
        assert native.compiled(_SQUARES) is None
        assert native.compiled(_SQUARES) is None
        assert native.compiled(_SQUARES + "\n") is None
    (record,) = caplog.records
    assert "out of registers" in record.getMessage()
    native.forget()


def test_without_llvmlite_nothing_is_compiled(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def absent(name: str) -> object:
        raise ImportError(f"no module named {name}")

    monkeypatch.setattr(native, "import_module", absent)
    native._machine.cache_clear()
    try:
        with caplog.at_level(logging.INFO, "tapestry.kernels"):
            assert not native.is_ready()
            assert native.compiled(_SQUARES + "\n\n") is None
        assert [record.getMessage() for record in caplog.records] == [
            "no loops are compiled: no module named llvmlite.binding"
        ]
    finally:
        native._machine.cache_clear()
        native.forget()


def test_a_function_may_be_compiled_while_another_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a signal's handler runs a program while this thread compiles."""
    del folder
    native.forget()
    compile_, inner = native._Machine._compile, _SQUARES.replace("entry", "begin")

    def interrupted(self: native._Machine, text: str) -> bytes:
        if text == _SQUARES:
            function = native.compiled(inner)
            assert function is not None
            assert _square(function) == 9.0
        return compile_(self, text)

    monkeypatch.setattr(native._Machine, "_compile", interrupted)
    found: list[native.Compiled | None] = []
    thread = threading.Thread(target=lambda: found.append(native.compiled(_SQUARES)), daemon=True)
    thread.start()
    thread.join(60)
    assert len(found) == 1
    assert found[0] is not None
    assert _square(found[0]) == 9.0
