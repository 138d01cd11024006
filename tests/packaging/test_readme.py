"""README says what is so: its links lead somewhere, its commands and its API exist."""

import re
from pathlib import Path

import pytest

import tapestry

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / "README.md", ROOT / "benchmarks" / "README.md"),
    *sorted(ROOT.glob("docs/**/*.md")),
    *ROOT.glob("examples/*/README.md"),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", re.sub(r"`[^`]*`", "", page.read_text()))
    for link in links:
        assert link.startswith("https://") or (page.parent / link).exists(), link


def test_the_two_commands_come_first():
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", PAGES[0].read_text(), re.MULTILINE | re.DOTALL)
    assert [language for language, _ in blocks[:2]] == ["bash", "bash"]
    main_job, tests = (command for _, command in blocks[:2])
    assert "pip install ." in main_job
    assert "examples/digits/run.py --on triton --shards 4" in main_job
    assert "lit lit_tests" in tests
    assert "pytest" in tests


def test_what_the_python_example_uses_is_public():
    used = set(re.findall(r"tapestry\.([a-z_]+)\(", PAGES[0].read_text()))
    assert used >= {"input", "run", "compile", "load"}
    for name in used:
        assert callable(getattr(tapestry, name))
