"""Tapestry: a compiler for tensor programs whose operations say which cells they touch.

    import numpy as np
    import tapestry

    module = tapestry.load_module("model.mlir")
    tapestry.run_pipeline(module, "weft-apply,loom-simplify,loom-fuse,loom-shard{shards=4}")
    result = tapestry.run(module, {"x": np.zeros((450, 64), "f4"), ...}, on="triton")
    print(result.outputs, result.records)

or, without a file:

    x = tapestry.input("x", (450, 64), "float32")
    y = tapestry.relu(x @ w1 + b1)          # nothing runs yet
    print(tapestry.run(y, x=images))

Every metakernel of the library is a function here. What is exported is what users need; everything
else may change.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tapestry import started as started  # before any other module of it

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tapestry.diagnostics import InvalidProgramError as InvalidProgramError
    from tapestry.diagnostics import Location as Location
    from tapestry.diagnostics import TapestryError as TapestryError
    from tapestry.diagnostics import UsageError as UsageError
    from tapestry.explaining import boundaries as boundaries
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
    from tapestry.importers.expressions.api import compile as compile  # noqa: A004
    from tapestry.importers.expressions.api import constant as constant
    from tapestry.importers.expressions.api import explain as explain
    from tapestry.importers.expressions.api import input as input  # noqa: A004
    from tapestry.importers.expressions.api import run as run
    from tapestry.importers.expressions.api import save as save
    from tapestry.importers.expressions.api import shard as shard
    from tapestry.importers.expressions.functions import load_metakernels as load_metakernels
    from tapestry.importers.expressions.nodes import Expression as Expression
    from tapestry.issues import BrokenRulesError as BrokenRulesError
    from tapestry.issues import Issue as Issue
    from tapestry.metakernels import load_library as load_library
    from tapestry.movement import edges as edges
    from tapestry.movement import moved_bytes as moved_bytes
    from tapestry.pipelines import DEFAULT_PIPELINE as DEFAULT_PIPELINE
    from tapestry.programs import Program as Program
    from tapestry.programs import load as load
    from tapestry.proving.equality import Verdict as Verdict
    from tapestry.proving.equality import compare_programs as compare_programs
    from tapestry.runtime.executor import Record as Record
    from tapestry.runtime.executor import Result as Result
    from tapestry.runtime.externals import register_external as register_external
    from tapestry.runtime.program import arguments as arguments
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
    "compile": "tapestry.importers.expressions.api",
    "constant": "tapestry.importers.expressions.api",
    "explain": "tapestry.importers.expressions.api",
    "input": "tapestry.importers.expressions.api",
    "run": "tapestry.importers.expressions.api",
    "save": "tapestry.importers.expressions.api",
    "shard": "tapestry.importers.expressions.api",
    "load_metakernels": "tapestry.importers.expressions.functions",
    "Expression": "tapestry.importers.expressions.nodes",
    "BrokenRulesError": "tapestry.issues",
    "Issue": "tapestry.issues",
    "load_library": "tapestry.metakernels",
    "edges": "tapestry.movement",
    "moved_bytes": "tapestry.movement",
    "DEFAULT_PIPELINE": "tapestry.pipelines",
    "Program": "tapestry.programs",
    "load": "tapestry.programs",
    "Verdict": "tapestry.proving.equality",
    "compare_programs": "tapestry.proving.equality",
    "Record": "tapestry.runtime.executor",
    "Result": "tapestry.runtime.executor",
    "register_external": "tapestry.runtime.externals",
    "arguments": "tapestry.runtime.program",
    "find_issues": "tapestry.verification",
    "AffineMap": "tapestry.zspace",
    "Partition": "tapestry.zspace",
    "Projection": "tapestry.zspace",
    "Range": "tapestry.zspace",
}
"""Where each public name lives; modules are imported when a name of theirs is first used."""


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if not name.startswith("_"):
        from tapestry.importers.expressions.functions import function
        from tapestry.metakernels import load_library

        names = load_library().names
        if name in names:
            return function(name)
        near = get_close_matches(name, [*_HOMES, *names], n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise AttributeError(f"module 'tapestry' has no attribute {name!r}{hint}")
    raise AttributeError(f"module 'tapestry' has no attribute {name!r}")


def __dir__() -> list[str]:
    from tapestry.metakernels import load_library

    return sorted({*_HOMES, *load_library().names})
