"""Work that is done ahead, in several threads, while results before it are used.

    with Ahead(compile, workers=16) as ahead:
        for item, done in ahead.of(candidates):
            done.result()                       # what `compile` gave, or raises what it raised
            ...                                 # meanwhile the next ones are compiled

Threads wait for processes that compile, so all cores are used. No more than twice as many items as
workers are taken ahead: what is not reached costs little.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, Self, TypeVar

Item = TypeVar("Item")


class Ahead(Generic[Item]):
    """Does `work` for items ahead; with no workers, when an item's turn has come."""

    def __init__(self, work: Callable[[Item], None], workers: int) -> None:
        self._work = work
        self._workers = workers
        self._pool = ThreadPoolExecutor(workers, "ahead") if workers else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def of(self, items: Iterable[Item]) -> Iterator[tuple[Item, Future[None]]]:
        """The items in order, each with its work."""
        waiting: deque[tuple[Item, Future[None]]] = deque()
        for item in items:
            waiting.append((item, self._begun(item)))
            if len(waiting) > 2 * self._workers:
                yield waiting.popleft()
        while waiting:
            yield waiting.popleft()

    def _begun(self, item: Item) -> Future[None]:
        if self._pool is not None:
            return self._pool.submit(self._work, item)
        done: Future[None] = Future()
        try:
            self._work(item)
        except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
            done.set_exception(error)
        else:
            done.set_result(None)
        return done
