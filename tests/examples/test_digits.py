"""The digits example: real images, every executor, several shardings, one answer."""

import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tapestry.frontend import load_module, run_pipeline
from tapestry.runtime.executor import NoWatch, find_executor

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
FUSED = "weft-apply,loom-simplify,loom-fuse"


@pytest.fixture(scope="module")
def inputs() -> dict[str, np.ndarray]:
    with np.load(DIGITS / "digits.npz") as digits, np.load(DIGITS / "weights.npz") as weights:
        images = digits["images"][digits["held_out"]].astype(np.float32) / 16
        return {"x": images, **weights}


@pytest.fixture(scope="module")
def training() -> ModuleType:
    spec = spec_from_file_location("digits_train", DIGITS / "train.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outputs(on: str, pipeline: str, inputs: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    module = load_module(DIGITS / "model.mlir")
    run_pipeline(module, pipeline)
    return find_executor(on).run(module, inputs, NoWatch()).outputs


@pytest.fixture(scope="module")
def reference(inputs: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    return outputs("reference", "weft-apply", inputs)


def test_the_data_is_what_it_is_said_to_be():
    with np.load(DIGITS / "digits.npz") as digits:
        assert digits["images"].shape == (1797, 64)
        assert digits["images"].dtype == np.uint8
        assert digits["images"].max() == 16
        assert sorted(set(digits["labels"].tolist())) == list(range(10))
        assert digits["held_out"].sum() == 450


def test_the_reference_computes_what_was_trained(inputs, reference, training):
    weights = {name: inputs[name].astype(np.float64) for name in ("w1", "b1", "w2", "b2")}
    expected = training.probabilities(inputs["x"].astype(np.float64), weights)
    probabilities, classes = reference
    np.testing.assert_allclose(probabilities, expected, rtol=1e-4, atol=1e-7)
    np.testing.assert_array_equal(classes, probabilities.argmax(axis=1))


@pytest.mark.parametrize("on", ["numpy", "triton"])
@pytest.mark.parametrize(
    "pipeline",
    [
        "weft-apply",
        FUSED,
        f"{FUSED},loom-shard{{shards=4}}",
        f"{FUSED},loom-shard{{shards=7}}",
        f"{FUSED},loom-shard{{op=logits grid=3,2,5}}",
    ],
    ids=["whole", "fused", "4 shards", "7 shards", "split fold"],
)
def test_every_schedule_agrees(on, pipeline, inputs, reference):
    probabilities, classes = outputs(on, pipeline, inputs)
    np.testing.assert_allclose(probabilities, reference[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(classes, reference[1])


@pytest.mark.parametrize("on", ["reference", "numpy", "triton"])
def test_the_runner_prints_the_accuracy(on: str, tmp_path: Path):
    done = subprocess.run(
        [sys.executable, DIGITS / "run.py", "--on", on, "--shards", "4"],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = re.search(r"accuracy (\d+\.\d+)%", done.stdout)
    assert found is not None
    assert float(found[1]) > 95
    assert not list(tmp_path.iterdir())


def test_training_is_seeded_and_reaches_the_accuracy(training):
    with np.load(DIGITS / "digits.npz") as digits:
        images, labels = digits["images"] / 16.0, digits["labels"]
        held_out = digits["held_out"]
    weights = training.train(images[~held_out], labels[~held_out])
    assert training.accuracy(images[held_out], labels[held_out], weights) > 0.97
    with np.load(DIGITS / "weights.npz") as kept:
        for name, value in weights.items():
            np.testing.assert_allclose(kept[name], value, atol=1e-2)


@pytest.mark.parametrize("script", ["train", "fetch", "expressions", "run"])
def test_a_script_says_what_it_does_and_does_nothing_else(script: str, tmp_path: Path):
    before = {path: path.stat().st_mtime_ns for path in DIGITS.iterdir()}
    command = [sys.executable, str(DIGITS / f"{script}.py"), "--help"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stdout.startswith("usage: ")
    assert {path: path.stat().st_mtime_ns for path in DIGITS.iterdir()} == before
