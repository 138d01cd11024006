"""Commands end with one message and an exit code, whenever they are interrupted."""

from __future__ import annotations

import builtins
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tapestry.tools._exits import exits
from tapestry.tools.tapestry import app


def test_an_interrupt_while_a_command_imports_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plainly = builtins.__import__

    def interrupted(name: str, *rest: Any) -> Any:
        if name == "xdsl.utils.exceptions":
            raise KeyboardInterrupt
        return plainly(name, *rest)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    with pytest.raises(typer.Exit) as caught:
        exits(lambda: None)()
    assert caught.value.exit_code == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize(
    ("target", "hint"),
    [("sm_90a", "did you mean sm_90?"), ("sm90", "did you mean sm_90?"), ("h100", "one of sm_80,")],
)
def test_a_target_that_is_not_there(target: str, hint: str) -> None:
    command = ["compile", "model.mlir", "--target", target, "-o", "compiled"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert f"there is no target '{target}'" in result.output
    assert hint in result.output
