"""`tapestry explain`: why a program is in as many pieces as it is.

$ tapestry explain model.mlir
@scores over <[0, 0, 0] : [8, 8, 4]>
@attention over ...
  derived: max = max of x1: a part of the state
  apart from @scores: @attention folds too: a fold of a fold is two operations
"""

from __future__ import annotations

from pathlib import Path

import typer

from tapestry.explaining import explain
from tapestry.frontend import load_module, run_pipeline
from tapestry.tools._pipelines import require_loom, with_metakernels


def explain_file(program: Path, pipeline: str, metakernels: Path | None = None) -> None:
    """Print what `tapestry.explaining` finds in the program that the pipeline makes."""
    module = load_module(program)
    pipeline = with_metakernels(pipeline, metakernels)
    run_pipeline(module, pipeline)
    require_loom(module)
    for line in explain(module):
        typer.echo(line)
