"""A list of launches as one CUDA graph: captured once, and replayed.

    run = Replayed(launches)
    (y,) = run([x, w])              # as `launches([x, w])`

A graph reads and writes the addresses that it was captured with. The first call launches and notes
where inputs are, the second captures: inputs that are where they were (weights) are read in place,
others are copied to tensors of the graph's own before each replay. An input that moves later is
copied from then on, which takes another capture. Results are copied out, so that they are the
caller's.

Where capturing fails, calls launch as without graphs; `note` is told why, once. While the caller
captures a graph of its own, calls are launches of that one. A graph keeps its arena and its results
while it lives. Threads may share it: calls take turns, on the host and on the GPU. This file is
part of what `tapestry compile` writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from tapestry.codegen.launches import Follow, Launches


class Replayed:
    """Called as `Launches` is."""

    def __init__(self, launches: Launches, note: Callable[[str], None] = lambda _: None) -> None:
        self.launches = launches
        self._note = note
        self._lock = Lock()
        self._places: list[int] | None = None
        self._moving: set[int] = set()
        self._taken: list[Any] = []
        self._replay: Callable[[], object] | None = None
        self._results: list[Any] = []
        self._stream: int | None = None
        self._usable = not launches.calls
        if launches.calls:
            note("it calls functions that are no kernels, which a CUDA graph does not hold")

    def __call__(
        self,
        inputs: Sequence[Any],
        out: Sequence[Any] | None = None,
        follow: Follow | None = None,
    ) -> list[Any]:
        """The results; see `Launches`."""
        if not self._usable or follow is not None:
            return self.launches(inputs, out, follow)
        with self._lock, self.launches.device.current():
            if self.launches.device.is_capturing():
                return self.launches(inputs, out)
            places = [tensor.data_ptr() for tensor in inputs]
            if self._places is None:
                self._places = places
                return self.launches(inputs, out)
            before = self._places
            moved = {n for n, place in enumerate(places) if place != before[n]} - self._moving
            if moved or self._replay is None:
                self._moving |= moved
                try:
                    self._capture(inputs)
                except Exception as error:  # noqa: BLE001 - whatever it is, launching works
                    self._usable, self._replay, self._results = False, None, []
                    self._note(f"capturing failed: {error}")
                    return self.launches(inputs, out)
            return self._replayed(inputs, out)

    def _capture(self, inputs: Sequence[Any]) -> None:
        """Capture the launches, on tensors of the graph's own for inputs that move."""
        device = self.launches.device
        self._replay, self._results = None, []  # their memory first
        self._taken = [
            device.empty(tuple(tensor.shape), tensor.dtype) if n in self._moving else tensor
            for n, tensor in enumerate(inputs)
        ]
        self._replay, self._results = device.capture(lambda: self.launches(self._taken))

    def _replayed(self, inputs: Sequence[Any], out: Sequence[Any] | None) -> list[Any]:
        device = self.launches.device
        assert self._replay is not None
        stream = device.stream()
        if self._stream is not None and stream != self._stream:
            device.after(self._stream)  # which may still read what is written now
        self._stream = stream
        for n in self._moving:
            self._taken[n].copy_(inputs[n])
        self._replay()
        results: list[Any] = []
        for n, made in enumerate(self._results):
            own = self.launches.input_of(n)
            found = made if own is None else inputs[own].reshape(tuple(made.shape))
            if out is not None:
                out[n].copy_(found)
                found = out[n]
            elif own is None:
                found = made.clone()
            results.append(found)
        return results
