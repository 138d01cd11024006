"""Which passes `tapestry run` applies."""

from pathlib import Path

import pytest

from tapestry.diagnostics import UsageError
from tapestry.pipelines import DEFAULT_PIPELINE, pass_specs
from tapestry.tools._run import Job


def passes(
    on: str = "numpy",
    pipeline: str | None = None,
    shards: int | None = None,
    metakernels: Path | None = None,
) -> str:
    job = Job(Path("m.mlir"), on, pipeline=pipeline, shards=shards, metakernels=metakernels)
    return job.passes()


def test_every_executor_has_its_own():
    assert passes(on="reference") == "weft-apply"
    default = ",".join(map(str, pass_specs(DEFAULT_PIPELINE)))
    assert passes(on="numpy") == passes(on="triton") == default


def test_shards_come_last():
    default = ",".join(map(str, pass_specs(DEFAULT_PIPELINE)))
    assert passes(shards=4) == f"{default},loom-shard{{shards=4}}"
    assert passes(shards=4, on="reference") == "weft-apply,loom-shard{shards=4}"
    assert passes(shards=4, pipeline="") == "loom-shard{shards=4}"


def test_a_pipeline_that_shards_is_left_alone():
    given = 'weft-apply,loom-shard{partition="grid [[0, 3, 8]]" op="y"},loom-fuse'
    assert passes(shards=4, pipeline=given) == given


def test_metakernels_go_to_weft_apply(tmp_path: Path):
    folder = tmp_path / "my kernels"
    folder.mkdir()
    found = passes(metakernels=folder, pipeline="weft-apply,loom-fuse")
    assert found == f'weft-apply{{metakernels="{folder}"}},loom-fuse'
    given = 'weft-apply{metakernels="others"}'
    assert passes(metakernels=folder, pipeline=given) == given


def test_metakernels_with_nothing_to_apply_them(tmp_path: Path):
    with pytest.raises(UsageError, match="--metakernels needs a pipeline with weft-apply"):
        passes(metakernels=tmp_path, pipeline="loom-fuse")
    with pytest.raises(UsageError, match="--metakernels takes a folder"):
        passes(metakernels=tmp_path / "none")


@pytest.mark.parametrize("pipeline", ["weft-aply", "loom-shard{", "loom-fuse{limits=3}"])
def test_a_pipeline_that_is_wrong(pipeline: str):
    with pytest.raises(UsageError):
        passes(pipeline=pipeline, shards=4)
