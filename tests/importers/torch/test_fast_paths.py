"""What PyTorch makes one operator when it only evaluates a layer is taken apart again."""

# pyright: basic
# PyTorch has no types to speak of.

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tapestry.importers.torch.fast_paths import attention, encoder_layer  # noqa: E402


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


MASKS = [
    (None, None),
    (torch.ones(4, 4).triu(1).bool(), 0),
    (torch.tensor([[0, 0, 0, 1], [0, 0, 1, 1]]).bool(), 1),
    (torch.ones(4, 4).triu(1).bool().expand(2, 2, 4, 4).clone(), 2),
]


@torch.no_grad()
@pytest.mark.parametrize(("mask", "kind"), MASKS)
@pytest.mark.parametrize("average", [True, False])
def test_attention_is_the_operator(mask, kind, average):
    layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(2, 4, 8)
    weights = (
        *(layer.in_proj_weight, torch.randn(24)),
        *(layer.out_proj.weight, torch.randn(8)),
    )
    given = (x, x, x, 8, 2, *weights, mask, True, average, kind)
    torch.testing.assert_close(attention(*given), torch._native_multi_head_attention(*given))


@torch.no_grad()
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_an_encoder_layer_is_the_operator(first, activation):
    layer = nn.TransformerEncoderLayer(
        8, 2, 16, batch_first=True, norm_first=first, activation=activation
    ).eval()
    attend = layer.self_attn
    given = (
        *(torch.randn(2, 4, 8), 8, 2, attend.in_proj_weight, attend.in_proj_bias),
        *(attend.out_proj.weight, attend.out_proj.bias, activation == "gelu", first, 1e-5),
        *(layer.norm1.weight, layer.norm1.bias, layer.norm2.weight, layer.norm2.bias),
        *(layer.linear1.weight, layer.linear1.bias, layer.linear2.weight, layer.linear2.bias),
    )
    want = torch._transformer_encoder_layer_fwd(*given)
    torch.testing.assert_close(encoder_layer(*given), want)
