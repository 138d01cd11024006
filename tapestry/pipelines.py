"""Pipelines that have names.

    tapestry-opt model.mlir -p default
    tapestry run model.mlir -p 'default,loom-shard{shards=4}'

`default` is the recommended one: templates applied, views folded away, maps joined with what they
feed, folds that read earlier folds made one pass, folds of one cell made reads, masks made domains,
and what is left put into groups, a kernel each.

    >>> [str(one) for one in pass_specs("default")][:2]
    ['weft-apply', 'loom-simplify']
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, get_type_hints

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from tapestry.diagnostics import UsageError

DEFAULT_PIPELINE = (
    "weft-apply,loom-simplify,loom-fuse,loom-derive,loom-simplify,loom-fuse,"
    "loom-fold-to-read,loom-simplify,loom-fuse,loom-mask-to-domain,"
    "loom-fuse{kinds=keep,beside},loom-group"
)
"""The recommended pipeline from weft to groups.

After `loom-derive` there are views and maps that stood between folds, hence the second round. Folds
that look up one cell are reads from then on, which join what they feed.
"""

_NAMED = {"default": DEFAULT_PIPELINE}


def pass_specs(pipeline: str) -> list[ArgSpec]:
    """The passes that a pipeline text names, with the passes of named pipelines in their place.

    Raises UsageError for text that is no pipeline.
    """
    try:
        entries = list(parse_pipeline(pipeline))
    except ArgSpecParseError as error:
        reason = [line.strip() for line in str(error).splitlines() if line.strip()][-1]
        raise UsageError(
            f"the pipeline {pipeline!r} is not well formed: {reason.lstrip('^- ')}"
        ) from None
    passes: list[ArgSpec] = []
    for entry in entries:
        if entry.name not in _NAMED:
            passes.append(entry)
        elif entry.parameters:
            raise UsageError(f"the pipeline {entry.name!r} takes no options")
        else:
            passes += parse_pipeline(_NAMED[entry.name])
    return passes


def make_pass(pass_type: type[ModulePass], spec: ArgSpec) -> ModulePass:
    """The pass with the options that `spec` gives it.

    Raises UsageError for an option that it does not have, or cannot have the value of. A pass that
    reads its own options, as `weft-bind` does whose options are sizes, says itself what is wrong.
    """
    if "from_spec" in vars(pass_type):
        try:
            return pass_type.from_spec(spec)
        except ValueError as error:
            raise UsageError(f"pass {spec.name}: {error}") from None
    options = {field.name: field for field in fields(pass_type) if field.name != "name"}
    given = spec.normalize_parameter_names().parameters
    for name in given:
        if name not in options:
            known = f"its options are {', '.join(options)}" if options else "it takes none"
            raise UsageError(
                f"pass {spec.name} has no option {name!r}", hint=nearest(name, options) or known
            )
    try:
        return pass_type.from_spec(spec)
    except (ValueError, TypeError) as error:
        kinds = get_type_hints(pass_type)
        for name, values in given.items():
            if _fails(pass_type, spec, name):
                shown = ",".join(map(repr, values)) or "nothing"
                kind = _shown(kinds[name])
                message = f"pass {spec.name}: {name} cannot be {shown}; it is {kind}"
                raise UsageError(message) from None
        raise UsageError(f"pass {spec.name}: {error}") from None


def _fails(pass_type: type[ModulePass], spec: ArgSpec, name: str) -> bool:
    """Whether the pass refuses the option `name` by itself."""
    alone = {key: one for key, one in spec.parameters.items() if key.replace("-", "_") == name}
    try:
        pass_type.from_spec(ArgSpec(spec.name, alone))
    except (ValueError, TypeError):
        return True
    return False


_KINDS = {
    int: "a whole number", float: "a number", bool: "true or false", str: "text",
    tuple[int, ...]: "whole numbers, with commas between", tuple[str, ...]: "words, with commas",
}  # fmt: skip


def _shown(kind: Any) -> str:
    """A type of options in words: `int | None` is a whole number."""
    parts = [one for one in getattr(kind, "__args__", ()) if one is not type(None)]
    if kind in _KINDS or not parts:
        return _KINDS.get(kind, str(kind))
    return " or ".join(_shown(one) for one in parts)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The hint for a name that is not known: those that are like it, if there are any."""
    close = get_close_matches(name, list(known), n=3)
    return f"did you mean {' or '.join(close)}?" if close else None
