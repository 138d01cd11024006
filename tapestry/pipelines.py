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
