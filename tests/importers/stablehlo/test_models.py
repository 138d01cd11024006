"""Models and their gradients after the recommended pipeline, against JAX."""

from importlib.util import find_spec
from typing import Any

import pytest

from tests.importers.stablehlo import models as m

CLOSE = {"rtol": 1e-4, "atol": 1e-4}

FORWARD = {
    "mlp": (m.mlp, m.MLP, m.FEATURES),
    "cnn": (m.convolutional, m.CONVOLUTIONAL, m.IMAGES),
    "transformer": (m.transformer, m.TRANSFORMER, m.TOKENS),
    "llama": (m.llama, m.LLAMA, m.TOKENS),
    "lstm": (m.lstm, m.LSTM, m.SEQUENCE),
    "language": (m.language, m.LANGUAGE, m.IDS),
}


@pytest.mark.parametrize("name", FORWARD)
def test_models_agree_with_jax(agrees: Any, name: str) -> None:
    agrees(*FORWARD[name], pipeline="default", **CLOSE)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", FORWARD)
def test_gradients_agree_with_jax(agrees: Any, name: str) -> None:
    model, *arguments = FORWARD[name]
    agrees(m.jax.grad(m.squared(model)), *arguments, pipeline="default", **CLOSE)


def test_a_training_step_agrees_with_jax(agrees: Any) -> None:
    agrees(m.adam_step, m.MLP, m.MLP, m.FEATURES, m.LABELS, pipeline="default", **CLOSE)


def test_a_diffusion_step_agrees_with_jax(agrees: Any) -> None:
    agrees(m.diffusion, m.DENOISER, m.NOISE, m.KEY, pipeline="default", **CLOSE)


@pytest.mark.parametrize("name", ["mlp", "cnn", "language"])
def test_programs_as_imported_agree_with_jax(agrees: Any, name: str) -> None:
    agrees(*FORWARD[name], pipeline="weft-apply", on="reference", **CLOSE)


def test_kernels_agree_with_jax(agrees: Any) -> None:
    if find_spec("triton") is None:  # it is imported by what interprets its kernels
        pytest.skip("Triton is for Linux")
    agrees(*FORWARD["mlp"], pipeline="default", on="triton", **CLOSE)
    agrees(*FORWARD["lstm"], pipeline="default", on="triton", **CLOSE)
    agrees(m.attention, *[m.QUERIES] * 3, pipeline="default", on="triton", **CLOSE)


def test_shards_agree_with_jax(agrees: Any) -> None:
    agrees(*FORWARD["transformer"], pipeline="default,loom-shard{shards=3}", **CLOSE)
