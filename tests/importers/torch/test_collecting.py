"""The cycle collector while PyTorch compiles."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Generator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tapestry.importers.torch.collecting import pass_by  # noqa: E402


class Ring:
    """An object that only the cycle collector frees."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def passing() -> Generator[None]:
    torch.compiler.reset()
    pass_by()
    pass_by()  # which changes nothing
    yield
    assert gc.get_freeze_count() == 0
    torch.compiler.reset()


def compiled(seen: Callable[[], None]) -> Any:
    """A function that is compiled at its first call, by a backend that looks around."""

    def backend(graph: Any, _: Any) -> Any:
        seen()
        return graph.forward

    def function(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    return torch.compile(function, backend=backend)


def test_what_was_there_is_passed_by_while_a_graph_is_compiled_and_collected_after() -> None:
    kept = [Ring()]
    before, counts, left = weakref.ref(kept[0]), list[int](), list[object]()

    def look() -> None:
        counts.append(gc.get_freeze_count())
        kept.clear()
        made = weakref.ref(Ring())
        gc.collect()
        left.extend((made(), before()))

    compiled(look)(torch.ones(2))
    assert counts[0] > 0
    assert left[0] is None, "what the compilation leaves is collected meanwhile"
    assert isinstance(left.pop(), Ring)
    gc.collect()
    assert before() is None


def test_a_backend_that_fails_leaves_nothing_frozen() -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed):
        compiled(fail)(torch.ones(2))
    assert gc.get_freeze_count() == 0


def test_what_somebody_else_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        own = gc.get_freeze_count()
        compiled(lambda: None)(torch.ones(2))
        assert gc.get_freeze_count() >= 0.9 * own > 0  # some may be gone by themselves
    finally:
        gc.unfreeze()


def test_the_backend_has_it_done_after_a_reset() -> None:
    torch.compiler.reset()
    torch.compile(lambda x: x * 2, backend="tapestry")(torch.ones(2))
    counts: list[int] = []
    compiled(lambda: counts.append(gc.get_freeze_count()))(torch.ones(2))
    assert counts[0] > 0
