"""Every rule has a kind that is documented, and a textual test that breaks it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tapestry.frontend import parse_text, verify_module
from tapestry.issues import BrokenRulesError, Problem, issue_of
from tapestry.verification import find_issues
from tapestry.zspace import Projection, Range

ROOT = Path(__file__).parents[1]
DOCUMENTED = re.findall(
    r"^\| `([a-z-]+)` \|", (ROOT / "docs" / "issues.md").read_text(), re.MULTILINE
)


def _kinds_in_code() -> set[str]:
    files = [*(ROOT / "dialects").glob("*.py"), *(ROOT / "tapestry" / "algebra").glob("*.py")]
    made = re.compile(r'\bProblem\(\s*"([a-z-]+)"')
    return {"structure"}.union(*(made.findall(f.read_text()) for f in files)) - {"too-big"}


def _kinds_in_tests() -> set[str]:
    found: set[str] = set()
    for path in (ROOT / "lit_tests").rglob("*.mlir"):
        for case in path.read_text().split("// -----"):
            try:
                module = parse_text(case, path.name)
            except Exception:  # noqa: BLE001 - some cases are no programs
                continue
            found.update(issue.kind for issue in find_issues(module))
    return found


def test_every_kind_is_documented_once() -> None:
    assert sorted(DOCUMENTED) == sorted(_kinds_in_code())


def test_every_kind_has_a_textual_test() -> None:
    assert _kinds_in_code() - _kinds_in_tests() == set()


WRONG = """
!v = !loom.tensor<[0] : [4], f32>
func.func @main(%x: !v) -> !v {
  %z = loom.view %y : (d0) -> (d0 + 1) : !v -> !v
  %y = loom.operation @y over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (0))
         wrap (%c: f32) {
           %i = "loom.index"() <{dim = 0 : i32}> : () -> i64
           loom.yield %c : f32
         } : (!v) -> !v
  %w = loom.application @gone over <[0] : [4]> (%x <[0] : [4]>) : (!v) -> !v
  func.return %x : !v
}
"""


def test_all_independent_issues_are_found_in_order() -> None:
    with pytest.raises(BrokenRulesError) as caught:
        verify_module(parse_text(WRONG, "p.mlir"))
    found = [(issue.kind, issue.location and issue.location.line) for issue in caught.value.issues]
    # The rules of @y are left out: its body is not sound.
    assert found == [
        ("dominance", 4),
        ("out-of-bounds", 4),
        ("structure", 7),
        ("kernel-unknown", 10),
    ]
    lines = str(caught.value).splitlines()
    assert len(lines) == 4
    assert all(line.startswith("p.mlir:") and ": error: " in line for line in lines)
    assert "property 'dim'" in lines[2]


def test_a_right_module_has_no_issues() -> None:
    module = parse_text(
        "!v = !loom.tensor<[0] : [4], f32>\nfunc.func @main(%x: !v) -> !v { func.return %x : !v }"
    )
    assert find_issues(module) == []


def test_contexts_are_plain_data() -> None:
    box, cells = Range.of((2, 3)), Projection.identity(2)
    problem = Problem("selection", "no", box=box, both=[box, cells], count=2, rule="x")
    issue = issue_of(problem, "", None, None)
    assert issue.contexts == {
        "box": "[0, 0] : [2, 3]",
        "both": ["[0, 0] : [2, 3]", "(d0, d1) -> (d0, d1)"],
        "count": 2,
        "rule": "x",
    }
    assert str(issue) == "error: no"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("opt", []), ("opt", ["-p", "loom-fuse"]), ("tapestry", ["run", "--on", "reference"])],
)
def test_tools_print_json(tool: str, arguments: list[str], tmp_path: Path) -> None:
    path = tmp_path / "p.mlir"
    path.write_text(WRONG)
    command = [sys.executable, "-m", f"tapestry.tools.{tool}", *arguments, str(path)]
    done = subprocess.run([*command, "--issues-json"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    issues = json.loads(done.stderr)
    assert [(i["kind"], i["file"], i["column"]) for i in issues] == [
        ("dominance", str(path), 3),
        ("out-of-bounds", str(path), 3),
        ("structure", str(path), 12),
        ("kernel-unknown", str(path), 3),
    ]
    assert issues[1]["contexts"] == {"selected": "[1] : [5]", "tensor": "[0] : [4]"}


def test_other_errors_are_issues_too(tmp_path: Path) -> None:
    (tmp_path / "p.mlir").write_text("func.func @main(%x i32) { func.return }")
    command = [
        sys.executable,
        "-m",
        "tapestry.tools.opt",
        "--issues-json",
        str(tmp_path / "p.mlir"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (issue,) = json.loads(done.stderr)
    assert (done.returncode, issue["kind"], issue["line"], issue["column"]) == (1, "syntax", 1, 20)
    done = subprocess.run([*command, "-p", "gone"], capture_output=True, text=True, check=False)
    (issue,) = json.loads(done.stderr)
    assert (done.returncode, issue["kind"], issue["line"]) == (2, "usage", None)
