"""Programs on tensors: those that are one call are told where these are, and give the same."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tapestry  # noqa: E402
from tapestry.importers.torch.calling import Ends, OnArrays  # noqa: E402
from tapestry.importers.torch.memory import Given, Made, Output  # noqa: E402
from tapestry.runtime.cpu import native  # noqa: E402
from tapestry.runtime.prepared import PreparedProgram  # noqa: E402

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

SHAPE = (64, 48)
CPU = torch.device("cpu")


def _softmax(x: Any) -> Any:
    return tapestry.softmax(x, axis=1)


def _call(
    function: Callable[..., Any] = _softmax,
    outputs: Sequence[Output] = (Made(0, contiguous=True, view=False, device=CPU),),
    dtype: str = "float32",
    shape: tuple[int, ...] = SHAPE,
) -> OnArrays:
    program = tapestry.compile(function(tapestry.input("x", shape, dtype))).lowered
    return OnArrays(Ends((0,), 0, tuple(outputs)), PreparedProgram(program))


def _numbers(shape: tuple[int, ...] = SHAPE, seed: int = 0) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _check(call: OnArrays, x: Any) -> Any:
    (made,) = call([x])
    torch.testing.assert_close(made, x.detach().softmax(1))
    return made


def test_a_linked_program_makes_tensors_of_its_own() -> None:
    call = _call()
    made = [_check(call, _numbers(seed=seed)) for seed in range(5)]
    assert call._direct is not None
    assert len({one.data_ptr() for one in made}) == len(made)
    assert not any(one.requires_grad for one in made)


@pytest.mark.parametrize(
    "other",
    [
        lambda x: x.T.contiguous().T,
        torch._neg_view,
        lambda x: torch.complex(x, x).conj().imag,
        lambda x: torch._efficientzerotensor(x.shape),
        lambda x: torch.nn.Parameter(x.clone()),
        lambda x: torch.cat([x, x], 1)[:, : x.shape[1]],
        lambda x: torch.cat([x, x], 0)[3 : 3 + x.shape[0]],
    ],
)
def test_tensors_that_lie_otherwise_are_read_as_they_lie(other: Callable[..., Any]) -> None:
    call = _call()
    for seed in range(3):
        _check(call, _numbers(seed=seed))
    assert call._direct is not None
    for seed in range(3):
        _check(call, other(_numbers(seed=seed)))
        _check(call, _numbers(seed=seed))


def test_what_is_copied_to_be_read_says_nothing_of_how_tensors_lie() -> None:
    """Every second cell of memory, negated, is an array of neighbours."""
    call = _call()
    for seed in range(4):
        x = _numbers(seed=seed)
        _check(call, torch.complex(x, x).conj().imag)
    for seed in range(3):
        _check(call, _numbers((SHAPE[0], 2 * SHAPE[1]), seed)[:, ::2])


def test_halves_are_tensors_of_halves() -> None:
    call = _call(dtype="bfloat16")
    for seed in range(4):
        x = _numbers(seed=seed).bfloat16()
        (made,) = call([x])
        assert made.dtype == torch.bfloat16
        torch.testing.assert_close(made, x.softmax(1), rtol=1e-2, atol=1e-2)
    assert call._direct is not None


def test_results_are_returned_in_the_order_of_the_graph() -> None:
    outputs = [Made(n, contiguous=True, view=False, device=CPU) for n in (1, 0)]
    call = _call(lambda x: (_softmax(x), tapestry.tanh(x) * 2), outputs)
    for seed in range(4):
        x = _numbers(seed=seed)
        second, first = call([x])
        torch.testing.assert_close(first, x.softmax(1))
        torch.testing.assert_close(second, 2 * x.tanh())
    assert call._direct is not None


@pytest.mark.parametrize(
    "outputs",
    [
        [Made(0, contiguous=True, view=False, device=CPU), Given(0)],
        [Made(0, contiguous=False, view=False, device=CPU, order=(1, 0))],
    ],
)
def test_more_than_new_tensors_are_returned_as_before(outputs: Sequence[Output]) -> None:
    call = _call(outputs=outputs)
    for seed in range(4):
        x = _numbers(seed=seed)
        made = call([x])
        torch.testing.assert_close(made[0], x.softmax(1))
        assert all(one is x for one in made[1:])
    assert call._direct is None


def test_large_results_are_on_memory_that_is_kept() -> None:
    call = _call(shape=(512, 256))
    for seed in range(4):
        _check(call, _numbers((512, 256), seed))
    assert call._direct is None
