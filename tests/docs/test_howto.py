"""The how-to pages hold: their commands run, in order, and print what the page shows.

A ```bash block is run with the tools of this environment, in a folder that holds a copy of
`examples`; a ```text block right after it is what it prints, where `...` stands for anything. A
page that begins with `<!-- needs jax -->` is skipped where that is not installed.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "how-to").glob("*.md"))
BLOCK = re.compile(
    r"^```bash\n(?P<command>.*?)^```$(?:\s*^```text\n(?P<shown>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)

NEEDS = re.compile(r"<!-- needs (?P<package>\w+) -->")


def matches(shown: str, printed: str) -> bool:
    """Whether `printed` is `shown`, which may leave parts out as `...`."""
    pattern = ".*?".join(re.escape(part) for part in _lines(shown).split("..."))
    return re.fullmatch(pattern, _lines(printed), re.DOTALL) is not None


def _lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def test_there_are_pages():
    assert len(PAGES) >= 4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page: Path, tmp_path: Path):
    needed = NEEDS.match(page.read_text())
    if needed is not None:
        pytest.importorskip(needed["package"])
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    scripts = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join((scripts, os.environ["PATH"])),
        "TAPESTRY_CACHE": "1",  # as for a user
    }
    environment.pop("COLUMNS", None)
    blocks = list(BLOCK.finditer(page.read_text()))
    assert blocks, f"{page} shows no command"
    for block in blocks:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block["command"]],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{block['command']}\n{done.stderr}"
        if block["shown"] is not None:
            printed = done.stdout + done.stderr
            assert matches(block["shown"], printed), f"{block['command']}\nprinted\n{printed}"
