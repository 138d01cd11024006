"""`tapestry rules check`: a table of what was shown, messages for what was not, and exit codes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tapestry.tools.tapestry import app

RIGHT = """
twice:
  match: {r: {op: relu, x: x}, y: {op: relu, x: r}}
  types: {x: {dtype: f32}}
  produce: {y: r}
"""
WRONG = """
never:
  match: {y: {op: relu, x: x}}
  types: {x: {dtype: f32}}
  produce: {y: {op: neg, x: x}}
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPESTRY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")


def check(path: Path, text: str) -> tuple[int, str]:
    path.write_text(text)
    done = CliRunner().invoke(app, ["rules", "check", str(path)])
    return done.exit_code, done.output


def test_rules_that_hold(tmp_path: Path) -> None:
    code, output = check(tmp_path / "r.yaml", RIGHT)
    assert code == 0
    assert "twice" in output
    assert "the same" in output


def test_a_rule_that_does_not_hold_is_shown_beside_those_that_do(tmp_path: Path) -> None:
    code, output = check(tmp_path / "r.yaml", WRONG + RIGHT)
    assert code == 1
    assert "refused" in output
    assert "r.yaml:3:3: error: rule never: what is matched and what is produced differ" in output
    assert "twice" in output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n", "a template file is a mapping"),
        ("r: 3\n", "r.yaml:1:4: error: rule r must be a mapping"),
        ("r: {match: {}, produce: {}}\n", "r.yaml:1:12: error: rule r: match is empty"),
        ("r: {match: {y: {op: relu, x: x}}, produce: {y: q}}\n", "produce.y: q is not bound"),
    ],
)
def test_a_file_that_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    code, output = check(tmp_path / "r.yaml", text)
    assert code == 1
    assert message in output
    assert "Traceback" not in output


def test_no_such_rules() -> None:
    done = CliRunner().invoke(app, ["rules", "check", "identites"])
    assert done.exit_code == 2
    assert "did you mean identities?" in done.output


@pytest.mark.parametrize("name", ["nowhere.yaml", "identites"])
def test_rules_that_are_not_there(name: str) -> None:
    done = CliRunner().invoke(app, ["rules", "check", name])
    assert done.exit_code == 2
    assert ("cannot read nowhere.yaml" in done.output) or ("there are no rules" in done.output)
