"""The script that checks everything on a GPU: a part that fails or hangs does not stop the rest."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

_FOLDER = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(_FOLDER))

import _gpu_rows  # noqa: E402
import gpu_check  # noqa: E402
import machine  # noqa: E402

WRITES = "import sys; open(sys.argv[1], 'w').write('{\"summary\": \"fine\"}')"


def _commands(monkeypatch: pytest.MonkeyPatch, **code: str) -> None:
    def command(part: str, table: Path, limit: float, *, small: bool) -> list[str]:
        assert limit > 0
        assert not small
        return [sys.executable, "-c", code.get(part, WRITES), str(table)]

    monkeypatch.setattr(gpu_check, "command", command)


def test_what_fails_is_recorded_and_the_rest_goes_on(monkeypatch, tmp_path) -> None:
    _commands(
        monkeypatch,
        machine="raise ValueError('nothing works')",
        small="import time; time.sleep(60)",
        loader="pass",
        models="import os; os.abort()",
    )
    monkeypatch.setattr(gpu_check, "gpu", lambda: "H200")
    monkeypatch.setattr(gpu_check, "LIMITS", dict.fromkeys(gpu_check.LIMITS, 20.0) | {"small": 1.0})
    given = ["gpu_check.py", "--seconds", "161", "--output", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", given)
    assert gpu_check.main() == 1
    parts = json.loads((tmp_path / "gpu_check.json").read_text())["parts"]
    states = {one["part"]: one["state"] for one in parts}
    assert states == {
        "machine": "failed",
        "small": "too slow",
        "loader": "failed",
        "compiled": "done",
        "peers": "done",
        "kernels": "done",
        "launch": "done",
        "calibrated": "done",
        "models": "failed",
    }
    assert "nothing works" in parts[0]["said"]
    assert parts[-2]["table"] == {"summary": "fine"}


def test_without_a_gpu_parts_are_skipped(monkeypatch, tmp_path) -> None:
    _commands(monkeypatch)
    monkeypatch.setattr(gpu_check, "gpu", lambda: None)
    monkeypatch.setattr(sys, "argv", ["gpu_check.py", "--output", str(tmp_path)])
    assert gpu_check.main() == 0
    parts = json.loads((tmp_path / "gpu_check.json").read_text())["parts"]
    skipped = {one["part"] for one in parts if one["state"] == "skipped"}
    assert skipped == set(gpu_check.LIMITS) - set(gpu_check.ALONE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot read .*: No such file"),
        ('{"gpu": "H200", "parts": [{"part"', "or a damaged one"),
        ("[]", "or a damaged one"),
        ('{"gpu": "H200", "parts": [{"what": 3}]}', "or a damaged one"),
    ],
)
def test_a_table_that_cannot_be_gone_on_with_is_one_message(tmp_path, text, said) -> None:
    """As where a machine was taken away while it was written."""
    path = tmp_path / "before.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SystemExit, match=said):
        gpu_check.earlier(path, "H200")


def test_a_folder_that_cannot_be_written_to_is_one_message(monkeypatch, tmp_path, capsys) -> None:
    path = tmp_path / "file"
    path.write_text("")
    monkeypatch.setattr(sys, "argv", ["gpu_check.py", "--output", str(path)])
    with pytest.raises(SystemExit, match="2"):
        gpu_check.main()
    assert f"cannot write to {path}: File exists" in capsys.readouterr().err


def test_a_write_that_is_cut_short_leaves_the_table_before_it(monkeypatch, tmp_path) -> None:
    _commands(monkeypatch)
    monkeypatch.setattr(gpu_check, "gpu", lambda: None)
    monkeypatch.setattr(sys, "argv", ["gpu_check.py", "--output", str(tmp_path)])
    assert gpu_check.main() == 0
    own = Path.write_text

    def cut(self: Path, text: str) -> int:
        own(self, text[: len(text) // 2])
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", cut)
    with pytest.raises(KeyboardInterrupt):
        gpu_check.main()
    assert json.loads((tmp_path / "gpu_check.json").read_text())["parts"]


def test_all_parts_together_take_nine_minutes_at_most() -> None:
    assert sum(gpu_check.LIMITS.values()) <= 9 * 60


def test_rows_are_kept_of_what_takes_too_long(monkeypatch, tmp_path) -> None:
    code = """
import sys, time
from pathlib import Path
sys.path.insert(0, "benchmarks")
from _gpu_rows import Rows
Rows(Path(sys.argv[1])).add({"case": "first"})
time.sleep(60)
"""
    _commands(monkeypatch, small=code)
    monkeypatch.setattr(gpu_check, "gpu", lambda: "H200")
    monkeypatch.setattr(gpu_check, "LIMITS", gpu_check.LIMITS | {"small": 5.0})
    given = ["gpu_check.py", "--only", "small", "--seconds", "5", "--output", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", given)
    assert gpu_check.main() == 1
    (part,) = json.loads((tmp_path / "gpu_check.json").read_text())["parts"]
    assert part["state"] == "too slow"
    assert part["table"] == {"rows": [{"case": "first"}]}


ROWS = """
import os, sys
from pathlib import Path
sys.path.insert(0, "benchmarks")
from _gpu_rows import Rows
rows = Rows(Path(sys.argv[1]))
"""


def _only_small(monkeypatch, tmp_path, code: str, *more: str) -> tuple[int, dict[str, dict]]:
    """What a call with one part says, and its parts."""
    _commands(monkeypatch, small=ROWS + code)
    monkeypatch.setattr(gpu_check, "gpu", lambda: "H200")
    given = ["gpu_check.py", "--only", "small", *more, "--output", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", given)
    code = gpu_check.main()
    parts = json.loads((tmp_path / "gpu_check.json").read_text())["parts"]
    return code, {one["part"]: one for one in parts}


def test_a_part_that_dies_at_a_row_goes_on_after_it(monkeypatch, tmp_path) -> None:
    dying = """
rows.add({"case": len(rows.rows)})
if len(rows.rows) < 3:
    os.abort()
"""
    code, parts = _only_small(monkeypatch, tmp_path, dying)
    assert code == 0
    assert parts["small"]["state"] == "done"
    assert [row["case"] for row in parts["small"]["table"]["rows"]] == [0, 1, 2]


def test_a_part_that_always_dies_is_not_started_for_ever(monkeypatch, tmp_path) -> None:
    code, parts = _only_small(monkeypatch, tmp_path, "os.abort()")
    assert code == 1
    assert parts["small"]["state"] == "failed"


def test_a_part_that_hangs_goes_on_after_the_row(monkeypatch, tmp_path) -> None:
    hanging = """
rows.add({"case": len(rows.rows)})
if len(rows.rows) < 2:
    import time
    time.sleep(60)
"""
    monkeypatch.setattr(gpu_check, "SILENT", 2.0)
    code, parts = _only_small(monkeypatch, tmp_path, hanging, "--seconds", "40")
    assert code == 0
    assert [row["case"] for row in parts["small"]["table"]["rows"]] == [0, 1]


def test_a_second_call_makes_what_the_first_did_not(monkeypatch, tmp_path) -> None:
    first = """
rows.rest["until"] = 0
for case, right in (("a", True), ("b", False)):
    rows.add({"case": case, "right": right})
sys.exit(1)
"""
    assert _only_small(monkeypatch, tmp_path, first)[0] == 1
    before = tmp_path / "before.json"
    (tmp_path / "gpu_check.json").rename(before)
    second = """
assert "until" not in rows.rest
assert [row["case"] for row in rows.rows] == ["a"]
rows.add({"case": "b", "right": True})
"""
    code, parts = _only_small(monkeypatch, tmp_path, second, "--go-on", str(before))
    assert code == 0
    assert [row["case"] for row in parts["small"]["table"]["rows"]] == ["a", "b"]
    (tmp_path / "gpu_check.json").rename(before)
    third = "raise AssertionError('what is done is not done again')"
    code, parts = _only_small(monkeypatch, tmp_path, third, "--go-on", str(before))
    assert code == 0
    assert parts["small"]["state"] == "done"
    monkeypatch.setattr(gpu_check, "gpu", lambda: "H100")
    with pytest.raises(SystemExit, match="is of H200, and here is H100"):
        gpu_check.main()


def test_a_script_whose_gpu_is_lost_goes_on_where_it_was(tmp_path) -> None:
    """Each process can do one case before it loses its GPU."""
    code = """
import sys
from pathlib import Path
from types import SimpleNamespace
sys.path.insert(0, "benchmarks")
from _gpu_rows import Rows

def synchronize():
    raise RuntimeError("CUDA error: an illegal memory access was encountered")

rows = Rows(Path(sys.argv[1]))
rows.rest.setdefault("starts", []).append(len(rows.rows))
for name in ("a", "b", "c"):
    if not rows.has(case=name):
        rows.add({"case": name})
        rows.restart_if_lost(SimpleNamespace(cuda=SimpleNamespace(synchronize=synchronize)))
"""
    script, table = tmp_path / "script.py", tmp_path / "table.json"
    script.write_text(code)
    table.write_text("a table of another run, which is nothing to go on with")
    subprocess.run([sys.executable, script, table], cwd=_FOLDER.parent, check=True)
    made = json.loads(table.read_text())
    assert [row["case"] for row in made["rows"]] == ["a", "b", "c"]
    assert made["starts"] == [0, 1, 2]


def test_what_takes_too_long_is_interrupted() -> None:
    with pytest.raises(TimeoutError, match="more than 0 s"), _gpu_rows.within(0.05):
        time.sleep(20)
    with _gpu_rows.within(20):
        pass


def test_what_takes_too_long_says_so_also_where_that_made_another_error() -> None:
    """Some code makes another error of whatever happens in it."""

    def careless() -> None:
        try:
            time.sleep(20)
        except TimeoutError as error:
            raise TypeError("unsupported callable") from error

    with pytest.raises(TimeoutError, match="more than 0 s"), _gpu_rows.within(0.05):
        careless()
    with pytest.raises(TypeError, match="its own"), _gpu_rows.within(20):
        raise TypeError("its own")


def test_tables_are_json_also_where_numbers_are_none() -> None:
    text = _gpu_rows.as_json({"rows": [{"error": float("inf"), "us": (1.0, float("nan"))}]})
    assert json.loads(text) == {"rows": [{"error": None, "us": [1.0, None]}]}
    assert "Infinity" not in text


def test_peers_are_compiled_of_every_case_and_model_once() -> None:
    pytest.importorskip("torch")
    code = "import _gpu_peers; print(*(repr((j.kind, j.by)) for j in _gpu_peers.jobs()), sep=';');"
    code += "assert len(set(_gpu_peers.jobs())) == len(_gpu_peers.jobs())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=_FOLDER, capture_output=True, text=True, check=True
    )
    found = Counter(done.stdout.strip().split(";"))
    assert len(set(found.values())) == 2
    kinds = {"model": ("tapestry", "inductor", "max-autotune"), "case": ("compile", "max-autotune")}
    assert found.keys() == {repr((kind, by)) for kind, bys in kinds.items() for by in bys}


def test_the_parts_are_those_of_the_other_file() -> None:
    code = "import _gpu_parts; print(*_gpu_parts.PARTS)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=_FOLDER, capture_output=True, text=True, check=True
    )
    others = {"launch", "kernels", "compiled"}
    assert set(done.stdout.split()) == set(gpu_check.LIMITS) - others


def test_tapestry_may_run_from_its_folder_without_being_installed(monkeypatch) -> None:
    def version(name: str) -> str:
        if name == "tapestry":
            raise PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(machine, "version", version)
    versions = machine.machine()["versions"]
    assert versions == {"tapestry": "not installed", "xdsl": "1.0", "numpy": "1.0"}
