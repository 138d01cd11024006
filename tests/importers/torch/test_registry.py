"""What lowerings are given: promotion as PyTorch does it, scalars, and names that exist."""

import itertools

import pytest

torch = pytest.importorskip("torch")

from tapestry.importers.building import ProgramBuilder  # noqa: E402
from tapestry.importers.torch.dtypes import name_of  # noqa: E402
from tapestry.importers.torch.registry import Context, lowered_operators  # noqa: E402


@pytest.mark.parametrize("operator", lowered_operators())
def test_operators_exist(operator: str) -> None:
    namespace, name, overload = operator.split(".")
    assert str(getattr(getattr(getattr(torch.ops, namespace), name), overload)) == operator


def test_promotion_is_that_of_pytorch() -> None:
    dtypes = [torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float64]
    tensors = [torch.ones(shape, dtype=dtype) for shape in ((), (2,)) for dtype in dtypes]
    for pair in itertools.product([*tensors, True, 3, 0.5], tensors):
        build = ProgramBuilder()
        values = [
            build.argument(f"x{i}", tuple(value.shape), name_of(value.dtype))
            if isinstance(value, torch.Tensor)
            else value
            for i, value in enumerate(pair)
        ]
        got = Context(build, "aten.add.Tensor", ()).promoted(*values)
        assert got == name_of(torch.result_type(*pair)), pair
