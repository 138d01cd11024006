"""The guide to the language holds: its sessions run, and its YAML is YAML that is read."""

import doctest
import re
from pathlib import Path

from tapestry.metakernels import load_library

GUIDE = Path(__file__).parents[2] / "docs" / "weft.md"


def test_sessions() -> None:
    result = doctest.testfile(str(GUIDE), module_relative=False)
    assert result.failed == 0
    assert result.attempted > 10


def test_whole_templates() -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    templates = [block for block in blocks if "inputs:" in block]
    assert len(templates) >= 4
    for block in templates:
        load_library().with_text(block)
