"""Which passes `tapestry run` applies."""

from pathlib import Path

import pytest

from tapestry.diagnostics import UsageError
from tapestry.tools._run import Job


def passes(**options):
    return Job(Path("m.mlir"), **{"on": "numpy", **options}).passes()


def test_every_executor_has_its_own():
    assert passes(on="reference") == "weft-apply"
    assert passes(on="numpy") == passes(on="triton") == "weft-apply,loom-simplify,loom-fuse"


def test_shards_come_last():
    assert passes(shards=4) == "weft-apply,loom-simplify,loom-fuse,loom-shard{shards=4}"
    assert passes(shards=4, on="reference") == "weft-apply,loom-shard{shards=4}"
    assert passes(shards=4, pipeline="") == "loom-shard{shards=4}"


def test_a_pipeline_that_shards_is_left_alone():
    given = 'weft-apply,loom-shard{partition="grid [[0, 3, 8]]" op="y"},loom-fuse'
    assert passes(shards=4, pipeline=given) == given


def test_metakernels_go_to_weft_apply():
    found = passes(metakernels=Path("my kernels"), pipeline="weft-apply,loom-fuse")
    assert found == 'weft-apply{metakernels="my kernels"},loom-fuse'
    given = 'weft-apply{metakernels="others"}'
    assert passes(metakernels=Path("mine"), pipeline=given) == given


def test_metakernels_with_nothing_to_apply_them():
    with pytest.raises(UsageError, match="--metakernels needs a pipeline with weft-apply"):
        passes(metakernels=Path("mine"), pipeline="loom-fuse")


@pytest.mark.parametrize("pipeline", ["weft-aply", "loom-shard{", "loom-fuse{limits=3}"])
def test_a_pipeline_that_is_wrong(pipeline):
    with pytest.raises(UsageError):
        passes(pipeline=pipeline, shards=4)
