"""Named pipelines, wherever a pipeline is given."""

from __future__ import annotations

import pytest

from tapestry.diagnostics import UsageError
from tapestry.frontend import parse_passes
from tapestry.pipelines import DEFAULT_PIPELINE, pass_specs
from tapestry.tools._pipelines import with_metakernels


def names(pipeline: str) -> list[str]:
    return [one.name for one in parse_passes(pipeline)]


def test_default_stands_for_its_passes_among_others():
    assert names("default") == names(DEFAULT_PIPELINE)
    assert names("default,loom-shard{shards=4},default") == [
        *names(DEFAULT_PIPELINE),
        "loom-shard",
        *names(DEFAULT_PIPELINE),
    ]


def test_options_reach_the_passes_of_a_named_pipeline(tmp_path):
    spelled = with_metakernels("default", tmp_path)
    assert spelled.startswith(f'weft-apply{{metakernels="{tmp_path}"}},loom-simplify,')
    assert with_metakernels("default", None) == ",".join(map(str, pass_specs(DEFAULT_PIPELINE)))


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("default{grid=1}", "the pipeline 'default' takes no options"),
        ("default}", "is not well formed"),
        ("default{", "is not well formed"),
    ],
)
def test_what_is_no_pipeline_is_bad_usage(pipeline: str, message: str):
    with pytest.raises(UsageError, match=message):
        pass_specs(pipeline)
