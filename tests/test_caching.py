"""A program from the cache is the program that the passes make; what changes anything is a miss."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tapestry
from tapestry import caching
from tapestry.caching import digest_of, lowered
from tapestry.frontend import run_pipeline
from tapestry.logs import configure
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.triton.executor import TritonExecutor

TEMPLATE = """
shifted:
  doc: A cell and a number.
  formula: "result[i] = x[i] + NUMBER"
  inputs: {x: {shape: "[$d...]", dtype: float}}
  index: "[$d...]"
  wrap: "x + NUMBER"
"""

TEXT = """
!x = !loom.tensor<[0, 0] : [4, 6], f32>
func.func @main(%x: !x, %y: !x) -> !x {
  %s = weft.apply @add(%x, %y) : (!x, !x) -> !x
  %r = weft.apply @relu(%s) : (!x) -> !x
  func.return %r : !x
}
"""


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The pipelines that were run, with a cache of one's own."""
    monkeypatch.setenv("TAPESTRY_CACHE", "1")
    monkeypatch.setenv("TAPESTRY_CACHE_DIR", str(tmp_path / "cache"))
    seen: list[str] = []

    def run(module: ModuleOp, pipeline: str, **options: object) -> None:
        seen.append(pipeline)
        run_pipeline(module, pipeline, **options)

    monkeypatch.setattr(caching, "run_pipeline", run)
    return seen


def _entries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "lowered").glob("*.json"))


def _lowered(text: str = TEXT, pipeline: str = "default", name: str = "a.mlir") -> str:
    return str(lowered(tapestry.parse_module(text, name), pipeline))


def test_a_hit_is_what_the_passes_make(runs):
    first = _lowered()
    assert _lowered() == first
    assert runs == ["default"]


@pytest.mark.parametrize("on", ["numpy", "reference", "triton"])
def test_a_hit_runs_as_a_miss(runs, on):
    weights = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    x = tapestry.input("x", (8, 64))
    y = tapestry.softmax(tapestry.gelu(x @ weights), axis=-1)
    given = np.random.default_rng(1).normal(size=(8, 64)).astype(np.float32)
    first, again = (tapestry.compile(y, on=on)(given) for _ in range(2))
    assert len(runs) == 1
    np.testing.assert_array_equal(first, again)


def test_kernels_are_lowered_once(runs, monkeypatch):
    lowerings: list[object] = []
    lower = LoomToTriton.lower

    def follow(self, *arguments, **options):
        lowerings.append(self)
        return lower(self, *arguments, **options)

    monkeypatch.setattr(LoomToTriton, "lower", follow)
    module = lowered(tapestry.parse_module(TEXT, "a.mlir"), "default")
    ones = np.ones((4, 6), np.float32)
    for tile in (64, 64, 32):
        result = TritonExecutor(tile=tile).run(module, {"x": ones, "y": ones}, NoWatch())
        np.testing.assert_array_equal(result.outputs[0], ones + ones)
    assert [one.tile for one in lowerings] == [64, 32]
    assert runs == ["default"]


def test_other_cells_are_another_program(runs, tmp_path):
    x = tapestry.input("x", (2, 40, 40))
    found = [
        tapestry.compile(x + np.full((40, 40), fill, np.float32) * eye)(np.zeros((2, 40, 40), "f4"))
        for eye in (np.eye(40, dtype=np.float32),)
        for fill in (1, 2, 1)
    ]
    assert [array.max() for array in found] == [1, 2, 1]
    assert len(runs) == 2
    for entry in _entries(tmp_path):
        assert entry.stat().st_size < 40 * 40 * 4


def test_what_changes_a_program_is_a_miss(runs, monkeypatch):
    _lowered()
    _lowered(pipeline="default,loom-shard{shards=2}")
    _lowered(pipeline="default,loom-shard{shards=3}")
    _lowered(TEXT.replace("f32", "f64"))
    _lowered(TEXT.replace("%s", "%sum"))  # operations are labelled by it
    _lowered(name="b.mlir")  # messages name it
    assert len(runs) == 6
    monkeypatch.setattr(caching, "environment", lambda: {"sources": "changed"})
    _lowered()
    assert len(runs) == 7


def test_a_changed_template_is_a_miss(runs, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    applied = TEXT.replace("@relu", "@shifted")
    found = list[bool]()
    for number in (1, 2, 1):
        (folder / "mine.yaml").write_text(TEMPLATE.replace("NUMBER", str(number)))
        text = _lowered(applied, f'weft-apply{{metakernels="{folder}"}}')
        found.append(f"arith.constant {number}.0" in text)
    assert found == [True] * 3
    assert len(runs) == 2


def test_sources_are_told_apart(tmp_path):
    (tmp_path / "inner").mkdir()
    file = tmp_path / "inner" / "a.py"
    digests = set[str]()
    for content in ("1", "2"):
        file.write_text(content)
        digests.add(digest_of(tmp_path))
    file.rename(file.with_name("b.py"))
    digests.add(digest_of(tmp_path))
    assert len(digests) == 3
    (tmp_path / "inner" / "b.pyc").write_text("no source")
    assert digest_of(tmp_path) in digests


def test_stablehlo_is_imported_once(runs, tmp_path, monkeypatch):
    pytest.importorskip("jaxlib")
    from tapestry.importers.stablehlo import load, loading

    text = """
    func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
      %0 = stablehlo.tanh %x : tensor<4x6xf32>
      return %0 : tensor<4x6xf32>
    }"""
    imports: list[str] = []
    import_text = loading.import_text

    def follow(source, name):
        imports.append(name)
        return import_text(source, name)

    monkeypatch.setattr(loading, "import_text", follow)
    first, again = (load(text, "a.mlir") for _ in range(2))
    assert str(first) == str(again)
    assert str(load(text, "b.mlir")) == str(first)
    assert imports == ["a.mlir", "b.mlir"]
    assert len(_entries(tmp_path)) == 2
    assert runs == []
    for _ in range(2):
        with pytest.raises(tapestry.TapestryError, match="a.mlir"):
            load(text.replace("tanh", "tangent"), "a.mlir")
    assert len(imports) == 4


def test_sources_that_changed_meanwhile_keep_nothing(runs, tmp_path, monkeypatch):
    _lowered()
    monkeypatch.setattr("tapestry.started.STARTED", 0.0)
    for text in (TEXT, TEXT.replace("@add", "@mul")):
        _lowered(text)
    assert len(runs) == 3
    assert len(_entries(tmp_path)) == 1


def test_damage_is_noticed(runs, tmp_path):
    first = _lowered()
    (entry,) = _entries(tmp_path)
    whole = entry.read_bytes()
    for damaged in (whole[:-1], b"", whole.replace(b"f32", b"f64"), whole[:70] + b"{}"):
        entry.write_bytes(damaged)
        assert _lowered() == first
        assert entry.read_bytes() == whole
    assert len(runs) == 5


def test_another_program_under_the_name_is_noticed(runs, tmp_path):
    first, second = _lowered(), _lowered(TEXT.replace("@add", "@mul"))
    one, other = _entries(tmp_path)
    contents = one.read_bytes(), other.read_bytes()
    one.write_bytes(contents[1])
    other.write_bytes(contents[0])
    assert (_lowered(), _lowered(TEXT.replace("@add", "@mul"))) == (first, second)
    assert len(runs) == 4


def test_data_that_is_no_program_is_lowered_again(runs, monkeypatch):
    """What has the right digest, but is not what this version writes."""
    first = _lowered()
    monkeypatch.setattr(caching.Store, "read", lambda *_: {"names": []})
    assert _lowered() == first
    assert len(runs) == 2


def test_an_unwritable_folder_is_no_obstacle(runs, tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("TAPESTRY_CACHE_DIR", str(blocked))
    monkeypatch.setattr("tempfile.tempdir", str(blocked))
    assert _lowered() == _lowered()
    assert len(runs) == 2


def test_steps_that_are_to_be_seen_are_made(runs, tmp_path):
    _lowered()
    tapestry.Program(tapestry.parse_module(TEXT, "a.mlir"), dump=tmp_path / "out").lowered  # noqa: B018
    assert len(runs) == 2
    assert (tmp_path / "out" / "01-weft-apply.mlir").exists()
    configure("passes")
    try:
        _lowered()
    finally:
        configure("")
    assert len(runs) == 3


def test_what_is_wrong_is_not_kept(runs, tmp_path):
    for _ in range(2):
        with pytest.raises(tapestry.TapestryError, match=r"a\.mlir:4:3: .*@nothing"):
            _lowered(TEXT.replace("@add", "@nothing"))
    assert len(runs) == 2
    assert _entries(tmp_path) == []


def test_the_command_says_what_it_found(tmp_path):
    (tmp_path / "a.mlir").write_text(TEXT)
    np.savez(tmp_path / "in.npz", x=np.ones((4, 6), "f4"), y=np.ones((4, 6), "f4"))
    environment = os.environ | {
        "TAPESTRY_CACHE": "1",
        "TAPESTRY_CACHE_DIR": str(tmp_path / "cache"),
        "TAPESTRY_LOGS": "cache",
    }
    command = [sys.executable, "-m", "tapestry.tools.tapestry", "run", "a.mlir"]
    command += ["--inputs", "in.npz", "--on", "numpy", "--output"]
    said: list[str] = []
    for output in ("first.npz", "again.npz"):
        done = subprocess.run(
            [*command, output],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stderr)
    assert "not there" in said[0]
    assert ": found" in said[1]
    with np.load(tmp_path / "first.npz") as first, np.load(tmp_path / "again.npz") as again:
        np.testing.assert_array_equal(first["out0"], again["out0"])
