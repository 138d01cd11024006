"""Wrong templates, a file of them for each part of the language: each has its own error.

A case holds the text of a template file, the shapes, dtypes and parameters that @t is applied to (a
case without shapes is wrong as it stands), and the error: its kind, where it is, what it says, and
what it says would be right.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tapestry.metakernels import TensorSpec, WeftError, errors, expand, load_library

FOLDER = Path(__file__).parent / "wrong"
CASES: dict[str, dict[str, Any]] = {
    f"{path.stem}.{name}": case
    for path in sorted(FOLDER.glob("*.yaml"))
    for name, case in yaml.safe_load(path.read_text()).items()
}
KINDS = {kind.kind for kind in errors.WeftError.__subclasses__()}
GUIDE = Path(__file__).parents[2] / "docs" / "weft.md"


def apply(case: dict[str, Any]) -> None:
    library = load_library().with_text(case["text"], "t.yaml")
    shapes: list[list[int]] = case.get("shapes", [])
    dtypes: list[str] = case.get("dtypes") or ["f32"] * len(shapes)
    specs = [TensorSpec(tuple(shape), dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    if "shapes" in case:
        expand(library.get("t"), specs, case.get("params", {}), library)


@pytest.mark.parametrize("name", CASES)
def test_each_has_its_error(name: str):
    case = CASES[name]
    with pytest.raises(WeftError) as caught:
        apply(case)
    error = caught.value
    place = None if error.location is None else f"{error.location.line}:{error.location.column}"
    assert (error.kind, place, error.hint) == (case["kind"], case.get("at"), case.get("hint"))
    assert case["says"] in error.message
    if error.location is not None:
        assert error.location.file == "t.yaml"


def test_there_are_enough():
    assert len(CASES) > 200
    files = {name.partition(".")[0] for name in CASES}
    assert all(sum(name.startswith(f"{file}.") for name in CASES) >= 10 for file in files)


def test_every_kind_is_documented():
    guide = GUIDE.read_text()
    assert not [kind for kind in KINDS if f"| `{kind}` |" not in guide]


def test_most_say_what_would_fit():
    assert sum("hint" in case for case in CASES.values()) > len(CASES) / 2
