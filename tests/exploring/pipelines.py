"""Random pipelines over random graphs, compared after each pass as `--equal-each` compares."""

from __future__ import annotations

from random import Random

from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.proving.equality import compare_programs
from tapestry.proving.pair import Options
from tapestry.proving.report import describe
from tapestry.runtime.executor import NoWatch, find_executor
from tests.passes import pipelines
from tests.passes.random_graphs import random_graph
from tests.passes.test_random_pipelines import agree


def check(seed: int) -> str:
    """The weakest answer of all steps; raises where a step changes the function."""
    random = Random(seed)
    graph = random_graph(random)
    steps = pipelines.steps(random)
    done: list[str] = []
    answers = {"same"}
    try:
        module = parse_text(graph.text)
        verify_module(module)
        naive = module.clone()
        run_pipeline(naive, "weft-apply")
        want = find_executor("reference").run(naive, graph.inputs, NoWatch()).outputs
        before = module.clone()
        for step in steps:
            done.append(pipelines.apply(module, step, random))
            verdict = compare_programs(before, module, Options(seeds=1, shrinking=0))
            if verdict.answer == "differs":
                raise AssertionError("\n".join(describe(verdict)))
            if verdict.answer == "undecided":
                answers.add(f"undecided: {verdict.reason[:90]}")
            else:
                answers.add(verdict.answer)
            before = module.clone()
        run_pipeline(module, "loom-inline")
        got = find_executor("numpy").run(module, graph.inputs, NoWatch()).outputs
        for value, a, b in zip(graph.outputs, got, want, strict=True):
            agree(value, a, b, "numpy")
    except Exception as error:
        error.add_note(f"after {', '.join(done)} of {steps}:\n{graph.text}")
        raise
    return max(answers, key=lambda answer: ("same", "cert", "nume", "unde").index(answer[:4]))
