"""Everything Tapestry adds to xDSL, by name and loaded when first used.

The entry point group `xdsl.universe` makes it visible to plain `xdsl-opt` as well:

    xdsl-opt model.mlir -p weft-apply,loom-simplify
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.target import Target

_DIALECTS = {
    "zspace": ("tapestry.dialects.zspace", "ZSpace"),
    "weft": ("tapestry.dialects.weft", "Weft"),
    "loom": ("tapestry.dialects.loom", "Loom"),
    "triton": ("tapestry.dialects.triton", "Triton"),
}

_PASSES = {
    "weft-substitute": ("tapestry.passes.weft.substitute", "WeftSubstitute"),
    "weft-bind": ("tapestry.passes.weft.bind", "WeftBind"),
    "weft-apply": ("tapestry.passes.weft.apply", "WeftApply"),
    "loom-substitute": ("tapestry.passes.loom.substitute", "LoomSubstitute"),
    "loom-simplify": ("tapestry.passes.loom.simplify", "LoomSimplify"),
    "loom-materialize": ("tapestry.passes.loom.materialize", "LoomMaterialize"),
    "loom-stride-classes": ("tapestry.passes.loom.stride_classes", "LoomStrideClasses"),
    "loom-shard": ("tapestry.passes.loom.shard", "LoomShard"),
    "loom-propagate": ("tapestry.passes.loom.propagate", "LoomPropagate"),
    "loom-fuse": ("tapestry.passes.loom.fuse", "LoomFuse"),
    "loom-unfuse": ("tapestry.passes.loom.unfuse", "LoomUnfuse"),
    "loom-recompute": ("tapestry.passes.loom.recompute", "LoomRecompute"),
    "loom-canonicalize": ("tapestry.passes.loom.canonicalize", "LoomCanonicalize"),
    "loom-expand": ("tapestry.passes.loom.expand", "LoomExpand"),
    "loom-derive": ("tapestry.passes.loom.derive", "LoomDerive"),
    "loom-split-fold": ("tapestry.passes.loom.split_fold", "LoomSplitFold"),
    "loom-split-scan": ("tapestry.passes.loom.split_scan", "LoomSplitScan"),
    "loom-relayout": ("tapestry.passes.loom.relayout", "LoomRelayout"),
    "loom-pad-fold": ("tapestry.passes.loom.pad_fold", "LoomPadFold"),
    "loom-mask-to-domain": ("tapestry.passes.loom.mask_to_domain", "LoomMaskToDomain"),
    "loom-fold-to-read": ("tapestry.passes.loom.one_hot", "LoomFoldToRead"),
    "loom-read-to-fold": ("tapestry.passes.loom.one_hot", "LoomReadToFold"),
    "loom-expand-shards": ("tapestry.passes.loom.expand_shards", "LoomExpandShards"),
    "loom-outline": ("tapestry.passes.loom.outline", "LoomOutline"),
    "loom-inline": ("tapestry.passes.loom.outline", "LoomInline"),
    "loom-reshard": ("tapestry.passes.loom.reshard", "LoomReshard"),
    "loom-ungroup": ("tapestry.passes.loom.ungroup", "LoomUngroup"),
    "loom-split-complex": ("tapestry.passes.loom.split_complex", "LoomSplitComplex"),
    "loom-group": ("tapestry.passes.loom.group", "LoomGroup"),
    "loom-to-triton": ("tapestry.passes.triton.loom_to_triton", "LoomToTriton"),
}

_TARGETS = {
    "triton": ("tapestry.codegen.target", "TritonTarget"),
}


def _dialect(module: str, name: str) -> Callable[[], Dialect]:
    def load() -> Dialect:
        dialect = getattr(import_module(module), name)
        assert isinstance(dialect, Dialect)
        return dialect

    return load


def _pass(module: str, name: str) -> Callable[[], type[ModulePass]]:
    def load() -> type[ModulePass]:
        found = getattr(import_module(module), name)
        assert issubclass(found, ModulePass)
        return found

    return load


def _target(module: str, name: str) -> Callable[[], type[Target]]:
    def load() -> type[Target]:
        found = getattr(import_module(module), name)
        assert issubclass(found, Target)
        return found

    return load


TAPESTRY_UNIVERSE = Universe(
    all_dialects={key: _dialect(*where) for key, where in _DIALECTS.items()},
    all_passes={key: _pass(*where) for key, where in _PASSES.items()},
    all_targets={key: _target(*where) for key, where in _TARGETS.items()},
)
