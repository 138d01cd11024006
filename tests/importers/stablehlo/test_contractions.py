"""Products of matrices and convolutions, their gradients too, against JAX."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax


def numbers(*shape: int) -> Any:
    return np.random.default_rng(len(shape) + sum(shape)).normal(size=shape).astype(np.float32)


A, B = numbers(4, 6), numbers(4, 6)[::-1].copy()
IMAGES, KERNEL = numbers(2, 8, 8, 3), numbers(3, 3, 3, 4)
LAYOUT = ("NHWC", "HWIO", "NHWC")


def convolved(x: Any, w: Any, stride: Any = (1, 1), pad: Any = "SAME", **options: Any) -> Any:
    return lax.conv_general_dilated(x, w, stride, pad, dimension_numbers=LAYOUT, **options)


def test_products(agrees: Any) -> None:
    agrees(lambda a, b: (a @ b.T, jnp.einsum("ij,ij->i", a, b), jnp.tensordot(a, b, 2)), A, B)
    agrees(lambda a, b: (jnp.outer(a[0], b[0]), jnp.vdot(a, b), jnp.dot(a[0], b[0])), A, B)
    agrees(
        lambda a, b: jnp.einsum("bhqd,bhkd->bhqk", a, b), numbers(2, 3, 4, 5), numbers(2, 3, 6, 5)
    )
    agrees(lambda a, b: jnp.einsum("abc,cad->dba", a, b), numbers(2, 3, 4), numbers(4, 2, 5))
    agrees(lambda a, b: a @ b.T, A.astype(np.int32), B.astype(np.int32))
    agrees(lambda a, b: jnp.convolve(a[0], b[0]), A, B)


def test_products_of_halves(agrees: Any) -> None:
    a, b = A.astype(ml_dtypes.bfloat16), B.T.astype(ml_dtypes.bfloat16)
    agrees(lambda a, b: a @ b, a, b, rtol=2e-2, atol=2e-2)
    agrees(lambda a, b: lax.dot(a, b, preferred_element_type=jnp.float32), a, b)


WAYS: list[dict[str, Any]] = [
    {}, {"stride": (2, 2)}, {"pad": "VALID"}, {"rhs_dilation": (2, 1)}, {"pad": ((2, 0), (-1, 3))},
    {"lhs_dilation": (2, 2), "pad": ((1, 2), (2, 1))},
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way) or "plain")
def test_convolutions_and_their_gradients(agrees: Any, way: dict[str, Any]) -> None:
    agrees(lambda x, w: convolved(x, w, **way), IMAGES, KERNEL)
    loss = lambda x, w: (convolved(x, w, **way) ** 2).sum()  # noqa: E731
    agrees(jax.grad(loss, argnums=(0, 1)), IMAGES, KERNEL, rtol=1e-4, atol=1e-4)


def test_other_convolutions(agrees: Any) -> None:
    loss = lambda x, w: (convolved(x, w, feature_group_count=3) ** 2).sum()  # noqa: E731
    agrees(jax.grad(loss, argnums=(0, 1)), IMAGES, numbers(3, 3, 1, 6), rtol=1e-4, atol=1e-4)
    way = {"dimension_numbers": LAYOUT}
    agrees(lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", **way), IMAGES, KERNEL)
    agrees(lambda x, w: lax.conv(x, w, (1,), "SAME"), numbers(2, 3, 9), numbers(4, 3, 3))
    agrees(
        lambda x, w: lax.conv(x, w, (1, 1, 1), "SAME"),
        numbers(1, 2, 4, 4, 4),
        numbers(3, 2, 3, 3, 3),
    )
    groups = {"batch_group_count": 2, "dimension_numbers": LAYOUT}
    agrees(lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", **groups), IMAGES, KERNEL)


def test_resizing(agrees: Any) -> None:
    agrees(lambda x: jax.image.resize(x, (2, 16, 16, 3), "nearest"), IMAGES)
    agrees(lambda x: jax.image.resize(x, (2, 5, 16, 3), "bilinear"), IMAGES)
