"""As many of PyTorch's own samples pass as the table says, and the table says enough."""

# pyright: basic
# PyTorch has no types to speak of.

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest")  # what PyTorch's samples need

from tests.importers.torch.opinfo.sampling import outcomes

TABLE = json.loads(Path(__file__).with_name("table.json").read_text())["claimed"]
SOME = ("add", "cumsum", "gather", "nn.functional.conv2d", "softmax")


def test_the_table_says_enough():
    counts = [pair for row in TABLE.values() for pair in row["passed"].values()]
    passed, every = (sum(column) for column in zip(*counts, strict=True))
    assert len(TABLE) >= 150
    assert passed >= 0.99 * every
    assert all("reasons" in row for row in TABLE.values() if _fails(row))


def _fails(row):
    return any(passed < every for passed, every in row["passed"].values())


@pytest.mark.parametrize("name", SOME)
def test_some_samples(name):
    for kind, (passed, every) in TABLE[name]["passed"].items():
        if passed == every:
            found = outcomes(name, kind, min(2, every))
            assert [one.reason for one in found] == [None] * min(2, every)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
def test_samples(name):
    for kind, (passed, every) in TABLE[name]["passed"].items():
        found = outcomes(name, kind)
        assert len(found) == every, "PyTorch has other samples: write the table anew"
        reasons = [one.reason for one in found if not one.passed]
        assert every - len(reasons) >= passed, reasons
