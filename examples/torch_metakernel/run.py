"""An operator of one's own in a PyTorch model: trained compiled, and compared with eager mode.

    pip install tapestry[torch]
    python run.py

`operators.yaml` says what the operator and its gradient compute. In the compiled model it is an
application like any other: it joins the linear before it.
"""

import sys
from argparse import ArgumentParser, RawTextHelpFormatter
from pathlib import Path

import torch
from torch import nn

from tapestry.importers.torch import metakernels, recording

own = metakernels(Path(__file__).with_name("operators.yaml"), {"soft_clip": "soft_clip_gradient"})
TOLERANCE = 1e-4


class Model(nn.Module):
    """Two linears with the operator between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(own.soft_clip(self.first(x), bound=2.0))


def train(model: nn.Module, parameters: list[nn.Parameter]) -> list[float]:
    """The losses of a few steps towards the product of two columns."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(256, 16, generator=generator)
    wanted = (x[:, 0] * x[:, 1]).unsqueeze(1)
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = (model(x) - wanted).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> int:
    ArgumentParser(description=__doc__, formatter_class=RawTextHelpFormatter).parse_args()
    torch.manual_seed(0)
    eager, compiled = Model(), Model()
    compiled.load_state_dict(eager.state_dict())
    expected = train(eager, list(eager.parameters()))
    with recording() as coverage:
        fast = torch.compile(compiled, backend="tapestry", fullgraph=True)
        losses = train(fast, list(compiled.parameters()))
    print(coverage)
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}")
    far = max(abs(one - other) for one, other in zip(losses, expected, strict=True))
    print(f"at most {far:.1e} from eager mode")
    return 0 if far < TOLERANCE and losses[-1] < losses[0] else 1


if __name__ == "__main__":
    sys.exit(main())
