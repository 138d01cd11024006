"""Tapestry: a compiler for tensor programs whose operations say which cells they touch.

    import numpy as np
    import tapestry

    module = tapestry.load_module("model.mlir")
    tapestry.run_pipeline(module, "weft-apply,loom-simplify,loom-fuse,loom-shard{shards=4}")
    result = tapestry.run(module, {"x": np.zeros((450, 64), "f4"), ...}, on="triton")
    print(result.outputs, result.records)

What is exported here is what users need; everything else may change.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tapestry.diagnostics import InvalidProgramError as InvalidProgramError
    from tapestry.diagnostics import Location as Location
    from tapestry.diagnostics import TapestryError as TapestryError
    from tapestry.diagnostics import UsageError as UsageError
    from tapestry.explaining import boundaries as boundaries
    from tapestry.explaining import explain as explain
    from tapestry.frontend import load_module as load_module
    from tapestry.frontend import parse_module as parse_module
    from tapestry.frontend import run_pipeline as run_pipeline
    from tapestry.frontend import verify_module as verify_module
    from tapestry.graph import consumers as consumers
    from tapestry.graph import flops as flops
    from tapestry.graph import operations as operations
    from tapestry.graph import peak_live_bytes as peak_live_bytes
    from tapestry.graph import producers as producers
    from tapestry.graph import scalar_operations as scalar_operations
    from tapestry.graph import selections as selections
    from tapestry.graph import shards as shards
    from tapestry.graph import traffic as traffic
    from tapestry.issues import BrokenRulesError as BrokenRulesError
    from tapestry.issues import Issue as Issue
    from tapestry.metakernels import load_library as load_library
    from tapestry.movement import edges as edges
    from tapestry.movement import moved_bytes as moved_bytes
    from tapestry.pipelines import DEFAULT_PIPELINE as DEFAULT_PIPELINE
    from tapestry.proving.equality import Verdict as Verdict
    from tapestry.proving.equality import compare_programs as compare_programs
    from tapestry.runtime.executor import Record as Record
    from tapestry.runtime.executor import Result as Result
    from tapestry.runtime.externals import register_external as register_external
    from tapestry.runtime.program import arguments as arguments
    from tapestry.runtime.running import run as run
    from tapestry.verification import find_issues as find_issues
    from tapestry.zspace import AffineMap as AffineMap
    from tapestry.zspace import Partition as Partition
    from tapestry.zspace import Projection as Projection
    from tapestry.zspace import Range as Range

_HOMES = {
    "InvalidProgramError": "tapestry.diagnostics",
    "Location": "tapestry.diagnostics",
    "TapestryError": "tapestry.diagnostics",
    "UsageError": "tapestry.diagnostics",
    "boundaries": "tapestry.explaining",
    "explain": "tapestry.explaining",
    "load_module": "tapestry.frontend",
    "parse_module": "tapestry.frontend",
    "run_pipeline": "tapestry.frontend",
    "verify_module": "tapestry.frontend",
    "consumers": "tapestry.graph",
    "flops": "tapestry.graph",
    "operations": "tapestry.graph",
    "peak_live_bytes": "tapestry.graph",
    "producers": "tapestry.graph",
    "scalar_operations": "tapestry.graph",
    "selections": "tapestry.graph",
    "shards": "tapestry.graph",
    "traffic": "tapestry.graph",
    "BrokenRulesError": "tapestry.issues",
    "Issue": "tapestry.issues",
    "load_library": "tapestry.metakernels",
    "edges": "tapestry.movement",
    "moved_bytes": "tapestry.movement",
    "DEFAULT_PIPELINE": "tapestry.pipelines",
    "Verdict": "tapestry.proving.equality",
    "compare_programs": "tapestry.proving.equality",
    "Record": "tapestry.runtime.executor",
    "Result": "tapestry.runtime.executor",
    "register_external": "tapestry.runtime.externals",
    "arguments": "tapestry.runtime.program",
    "run": "tapestry.runtime.running",
    "find_issues": "tapestry.verification",
    "AffineMap": "tapestry.zspace",
    "Partition": "tapestry.zspace",
    "Projection": "tapestry.zspace",
    "Range": "tapestry.zspace",
}
"""Where each public name lives; modules are imported when a name of theirs is first used."""


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tapestry' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_HOMES)
