"""Cells in order: short rows by counting, in kernels of their own; longer ones by a sort."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import tapestry  # noqa: E402
from tapestry.dialects import loom  # noqa: E402
from tests.importers.torch import models  # noqa: E402
from tests.importers.torch.compare import check_forward  # noqa: E402


def in_order(x):
    return x.topk(2), x.sort(1, descending=True), x.argsort(0), x.kthvalue(2)


def externals(folder: Path) -> list[str]:
    (last,) = (max(found.glob("*.mlir")) for found in folder.iterdir())
    steps = tapestry.load_module(str(last)).walk()
    return [op.callee.data for op in steps if isinstance(op, loom.ExternalOp)]


@pytest.mark.parametrize("on", ["numpy", "triton"])
def test_short_rows_are_counted(on: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randperm(24).reshape(4, 6).float() - 7
    check_forward(in_order, x, on=on, dump=str(tmp_path), rtol=0, atol=0)
    assert externals(tmp_path) == []


def test_long_rows_are_sorted(tmp_path: Path) -> None:
    check_forward(in_order, torch.randperm(200).reshape(4, 50), dump=str(tmp_path), rtol=0, atol=0)
    assert "sort" in externals(tmp_path)


def test_the_best_of_long_rows_are_sorted_once(tmp_path: Path) -> None:
    check_forward(
        lambda x: x.topk(5), torch.randperm(200).reshape(4, 50), dump=str(tmp_path), rtol=0, atol=0
    )
    assert externals(tmp_path) == ["argsort"]


def test_the_best_experts_are_found_without_a_sort(tmp_path: Path) -> None:
    report = check_forward(models.Mixture(), torch.randn(5, 6), dump=str(tmp_path))
    assert report.native_share == 1
    assert externals(tmp_path) == []


def undone(x):
    order = x.argsort(-1, descending=True)
    moved = torch.zeros_like(x).scatter(-1, order, x)
    put = x[0].index_put((order[0],), x[1])
    return moved, (x > 0).scatter(-1, order % 7, x > 1), put


def test_what_is_written_last_is_kept_without_a_look_at_each_place() -> None:
    # As a sampler of a language model puts what it removes back where it was: 4 * 40000^2 points.
    for length in (50, 40000):
        rows = torch.stack([torch.randperm(length) for _ in range(4)])
        check_forward(undone, rows / length * 4 - 2, rtol=0, atol=0)


@pytest.mark.parametrize("mode", ["max", "sum", "mean"])
def test_bags(mode: str) -> None:
    bag = torch.nn.EmbeddingBag(30, 8, mode=mode, padding_idx=3)
    with torch.no_grad():
        bag.weight[5:9] *= 0
        bag.weight[7] *= -1
    ids = torch.randint(0, 30, (90,))
    ids[:20] = torch.tensor([5, 7, 7, 5, 3, 3, 7, 7, 11, 1] * 2)
    offsets = torch.tensor([0, 2, 4, 4, 6, 8, 20, 60, 90])
    check_forward(bag, ids, offsets)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [0, 1, 7, 300])
def test_the_first_of_long_rows(k: int, largest: bool) -> None:
    def first(x):
        values, places = x.topk(k, -1, largest)
        ordered = x.sort(-1, descending=True)[0][:, :k]
        return values.nan_to_num(1e6), places, ordered.nan_to_num(1e6)

    for rows in (3, 0):
        x = torch.stack([torch.randperm(300) for _ in range(3)])[:rows]
        check_forward(first, x, rtol=0, atol=0)
        spoilt = x.float()
        spoilt[:1, 40] = torch.nan
        check_forward(first, spoilt, rtol=0, atol=0)
