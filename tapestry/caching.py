"""Programs that were lowered before: a pipeline is run once for a program, on one machine.

    module = lowered(module, "default")      # what run_pipeline makes, or what it made before

A lowered program is found by all that it is made by: the module with its names, places and cells,
the passes with their options and what is in the files that these name, and the sources of Tapestry
and versions of what it stands on. What is kept is plain data (`tapestry.encoding`), none of it is
executed. The cells of large constants are not in it: they come from the module that is lowered.
What an importer makes of a program in another form is kept as well (`imported`).

The passes run as ever where steps are to be shown (`--dump`, `TAPESTRY_LOGS=passes`), where a pass
is not Tapestry's, and with `TAPESTRY_CACHE=0`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from json import dumps
from logging import INFO
from pathlib import Path
from typing import Final, Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.arg_spec import ArgSpec

from tapestry.encoding import Cells, EncodingError, decode, encode, encode_exactly
from tapestry.environment import digest_of, environment, find_current
from tapestry.frontend import Steps, make_context, run_pipeline
from tapestry.logs import channel
from tapestry.passes._collection import collection_paused
from tapestry.pipelines import pass_specs
from tapestry.store import Store, key_of
from tapestry.universe import TAPESTRY_UNIVERSE

KIND: Final = "lowered"
"""The folder of lowered programs."""

ANSWERS: Final = "answers"
"""What an entry calls the answers that its program was made by."""


def lowered(
    module: ModuleOp, pipeline: str, *, dump: Steps | None = None, verify_each: bool = True
) -> ModuleOp:
    """A verified module after a pipeline; the one that was given is not to be used afterwards.

    Raises what `run_pipeline` raises: what is wrong is never kept.
    """
    passes = pass_specs(pipeline)

    def run(given: ModuleOp) -> None:
        run_pipeline(given, pipeline, dump=dump, verify_each=verify_each)

    if dump is not None or channel("passes").isEnabledFor(INFO):
        run(module)  # somebody wants to see the passes
        return module
    return kept(module, passes, run)


def kept(
    module: ModuleOp,
    passes: Sequence[ArgSpec],
    make: Callable[[ModuleOp], None],
    *,
    asked: Asked | None = None,
) -> ModuleOp:
    """A verified module after passes, as `make` applies them to it; or what that made before.

    What `make` has `asked` beside the passes' options is kept with it; where that has other answers
    by now, it is made anew. The module that was given is not to be used afterwards.
    """
    known = TAPESTRY_UNIVERSE.all_passes
    ours = bool(passes) and all(one.name in known for one in passes)
    lowering = _find(module, passes, asks=asked is not None) if ours else None
    found = None if lowering is None else lowering.read(asked)
    if found is not None:
        return found
    make(module)
    if lowering is not None:
        lowering.write(module, asked)
    return module


class Asked(Protocol):
    """Questions that decide what is made, with answers that may change."""

    @property
    def answers(self) -> Mapping[str, bool]:
        """What was asked so far, and what the answers were."""
        ...

    def answers_alike(self, answers: Mapping[str, bool]) -> bool:
        """Whether questions have the same answers now."""
        ...


def imported(source: bytes, name: str, by: str, make: Callable[[], ModuleOp]) -> ModuleOp:
    """The module that `make` makes of a program in another form; or what it made before.

    `name` is what messages call it, `by` the package whose version decides what is made. One with
    large constants is not kept: they are nowhere else.
    """
    store = find_current(KIND)
    try:
        versions = {by: version(by)}
    except PackageNotFoundError:
        return make()
    if store is None:
        return make()
    digest = sha256(source).hexdigest()
    made_by = environment() | versions
    key = key_of({"source": digest, "name": name, "environment": made_by})
    store.say(key, f"is {digest[:12]} by {by}, sources {made_by['sources'][:12]}")
    lowering = Lowering(store, key, {})
    found = lowering.read()
    if found is None:
        found = make()
        lowering.write(found)
    return found


@dataclass(frozen=True)
class Lowering:
    """An entry of the cache, there or not: what a program becomes."""

    store: Store
    key: str
    cells: Cells
    """The large constants of the program."""

    def read(self, asked: Asked | None = None) -> ModuleOp | None:
        """The lowered module; None where it is not kept, or was made by other answers."""
        entry = self.store.read(self.key)
        if entry is None:
            return None
        if asked is not None and not asked.answers_alike(entry.pop(ANSWERS, {})):
            self.store.say(self.key, "made when other kernels were known to be no good")
            return None
        try:
            with collection_paused():
                return decode(entry, self.cells, make_context())
        except EncodingError as error:
            self.store.say(self.key, f"is no program: {error}")
            return None

    def write(self, module: ModuleOp, asked: Asked | None = None) -> None:
        """Keep the lowered module, if it can be read as it is."""
        try:
            data = encode_exactly(module, self.cells, make_context())
        except EncodingError as error:
            self.store.say(self.key, f"is not kept: {error}")
        else:
            if asked is not None:
                data = {**data, ANSWERS: dict(asked.answers)}
            if find_current(KIND) is not None:
                self.store.write(self.key, data)


def _find(module: ModuleOp, passes: Sequence[ArgSpec], *, asks: bool) -> Lowering | None:
    """The entry of a module and passes; None where nothing is kept.

    What is made by answers is another entry than what passes make that ask nothing.
    """
    store = find_current(KIND)
    if store is None:
        return None
    try:
        data, cells = encode(module)
    except EncodingError as error:
        channel("cache").info("%s: a program is not kept: %s", KIND, error)
        return None
    program = sha256(dumps(data).encode()).hexdigest()
    text = ",".join(map(str, passes))
    made_by = environment()
    key = key_of(
        {
            "program": program,
            "passes": text,
            "asks": asks,
            "files": dict(_files(passes)),
            "environment": made_by,
        }
    )
    store.say(key, f"is {program[:12]} by {text}, sources {made_by['sources'][:12]}")
    return Lowering(store, key, cells)


def _files(passes: Sequence[ArgSpec]) -> Iterator[tuple[str, str]]:
    """The files and folders that options name, with what is in them: rules, templates."""
    for one in passes:
        for value in chain.from_iterable(one.parameters.values()):
            if isinstance(value, str) and Path(value).exists():
                yield value, digest_of(Path(value))
