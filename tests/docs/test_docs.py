"""The Python examples of the documentation hold: every `>>>` in a ```python block of docs/ is run.

The blocks of one page share their names and run in order.
"""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if ">>> " in page.read_text()]


def session(page: Path) -> doctest.DocTest:
    """The examples of a page, at the lines where the page has them."""
    text = page.read_text()
    lines = ["\n"] * len(text.splitlines())
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start("code"))
        code = block["code"].splitlines(keepends=True)
        lines[first : first + len(code)] = code
    return doctest.DocTestParser().get_doctest("".join(lines), {}, page.name, str(page), 0)


def test_the_geometry_has_a_page():
    assert ROOT / "docs" / "zspace.md" in PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples(page: Path):
    examples = session(page)
    assert len(examples.examples) == page.read_text().count(">>> ")
    result = doctest.DocTestRunner().run(examples)
    assert result.failed == 0
