"""Compiled graphs in PyTorch's own cache of what Dynamo made.

    TORCH_CACHING_PRECOMPILE=1 python serve.py
    torch.compiler.save_cache_artifacts()        # at its end: the next process does not trace

There PyTorch keeps Dynamo's code and guards, and for each graph what a backend gives it. That is
the name of an entry of Tapestry's cache here, which is read when PyTorch reads its own: where the
entry is no more, or not of these sources, PyTorch's is no entry either, and the graph is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from torch._dynamo import precompile_context

from tapestry.importers.torch.options import Options
from tapestry.importers.torch.shortcuts import Shortcut, find_named, maker

_context: Any = precompile_context  # whose types are not complete
_Artifact: Any = _context.BackendCacheArtifact


class Precompiled(_Artifact):
    """A graph of PyTorch's name `key`, and where it is kept; pickled as names alone."""

    compiled: Callable[..., Any] | None = None

    def after_deserialization(self) -> Callable[..., Any]:
        """The compiled graph, as Dynamo calls it."""
        assert self.compiled is not None, "what was not read is not installed"
        return self.compiled

    def __deepcopy__(self, _: object) -> Precompiled:
        return self  # nothing in it changes

    def __reduce__(self) -> tuple[Any, ...]:
        shortcut: Shortcut = self.content
        return restored, (self.key, shortcut.key, asdict(shortcut.options), maker())


def record(key: str, shortcut: Shortcut) -> None:
    """Tell PyTorch of a graph that is kept, by the name that PyTorch has for it."""
    _context.PrecompileContext.record_artifact(Precompiled(key, shortcut))


def restored(key: str, entry: str, options: Mapping[str, object], made_by: str) -> Precompiled:
    """What was pickled. LookupError where the entry is not there, or none is to be read."""
    shortcut = find_named(entry, Options.of(options), made_by)
    compiled = None if shortcut is None else shortcut.read()
    if compiled is None:
        raise LookupError(f"the graph {entry[:12]} is not kept")
    found = Precompiled(key, shortcut)
    found.compiled = compiled
    return found
