"""A graph that was compiled before is not traced again, and gives what it gave, bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from tapestry.environment import find_current  # noqa: E402
from tapestry.importers.torch import recording  # noqa: E402
from tapestry.importers.torch.descriptions import described  # noqa: E402
from tests.importers.torch.models import GPT2  # noqa: E402


def _run(function, *args, seed=0, **options):
    """What a function gives that is compiled as in a new process."""
    torch._dynamo.reset()
    torch.manual_seed(seed)
    return torch.compile(function, backend="tapestry", options=options)(*args)


def _entries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "graphs").glob("*.json"))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm = nn.Embedding(50, 16), nn.LayerNorm(16)
        self.parts, self.out = nn.Linear(16, 48), nn.Linear(16, 50, bias=False)

    def forward(self, tokens):
        x = self.words(tokens) + torch.arange(tokens.shape[1])[None, :, None] / 10
        q, k, v = self.parts(self.norm(x)).chunk(3, -1)
        return self.out(functional.scaled_dot_product_attention(q, k, v, is_causal=True)), x.sum()


def test_a_hit_is_a_miss_bit_for_bit(traced):
    torch.manual_seed(0)
    model, tokens = Layer().eval(), torch.randint(50, (2, 8))
    with torch.no_grad():
        first, again = (_run(model, tokens) for _ in range(2))
        assert len(traced) == 1
        for one, other, want in zip(first, again, model(tokens), strict=True):
            assert torch.equal(one, other)
            torch.testing.assert_close(one, want, rtol=1e-4, atol=1e-5)
        other = Layer().eval()  # weights are arguments
        torch.testing.assert_close(_run(other, tokens), other(tokens), rtol=1e-4, atol=1e-5)
    assert len(traced) == 1


@pytest.mark.usefixtures("traced")
def test_gpt2_is_kept_as_it_was_prepared(tmp_path):
    """For inference, and for both halves of a step, whose gradients are joined: without IR."""
    torch.manual_seed(0)
    model, words = GPT2().eval(), torch.randint(17, (2, 6))
    with torch.no_grad():
        _run(model, words)
    _run(model, words).sum().backward()
    store = find_current("graphs")
    kept = [store.read(entry.stem)["parts"] for entry in _entries(tmp_path)]
    assert sorted(len(parts) for parts in kept) == [1, 2]
    assert all("prepared" in part for parts in kept for part in parts)


def test_views_by_attributes_are_described(traced):
    def turned(x):
        return x.T @ x.mT.mT + x.H @ x + x.mH

    x = torch.randn(3, 3)
    first, again = (_run(turned, x) for _ in range(2))
    assert len(traced) == 1
    assert torch.equal(first, again)
    torch.testing.assert_close(first, turned(x))


def test_later_calls_are_as_those_of_later_processes(traced):
    """Without the function that AOT autograd has around programs."""
    torch.manual_seed(0)
    layer, x = nn.Linear(8, 4), torch.randn(5, 8)

    def step(run):
        layer.zero_grad()
        loss = run(x).square().sum()
        by = loss.grad_fn.next_functions[0][0].next_functions[0][0].name()
        loss.backward()
        return by, loss.detach(), layer.weight.grad.clone(), layer.bias.grad.clone()

    torch._dynamo.reset()
    run = torch.compile(layer, backend="tapestry")
    (first, *made), (second, *again), (third, *_) = (step(run) for _ in range(3))
    assert len(traced) == 1
    assert (first, second, third) == ("CompiledFunctionBackward", *2 * ("CompiledBackward",))
    assert all(torch.equal(one, other) for one, other in zip(made, again, strict=True))
    for one, want in zip(again, step(layer)[1:], strict=True):
        torch.testing.assert_close(one, want)


def test_random_numbers_follow_the_seed(traced):
    def noisy(x):
        return functional.dropout(x, 0.5, training=True) + torch.rand(4, 5)

    x = torch.ones(4, 5)
    first, again, other = (_run(noisy, x, seed=seed) for seed in (1, 1, 2))
    assert len(traced) == 1
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_what_changes_a_program_is_traced(traced, monkeypatch):
    def scaled(x, factor):
        return torch.relu(x) * factor

    x = torch.randn(4, 6)
    for given, factor, options in (
        (x, 2.0, {}),
        (x, 3.0, {}),
        (x[:3], 2.0, {}),
        (x.double(), 2.0, {}),
        (torch.randn(6, 4).T, 2.0, {}),
        (x, 2.0, {"on": "reference"}),
        (x, 2.0, {"pipeline": "weft-apply"}),
    ):
        for _ in range(2):
            got = _run(scaled, given, factor, **options)
            torch.testing.assert_close(got, scaled(given, factor))
    assert len(traced) == 7
    monkeypatch.setattr("tapestry.importers.torch.shortcuts.environment", lambda: {"other": "1"})
    _run(scaled, x, 2.0)
    assert len(traced) == 8


def _returns_a_view(x):
    return x[1:], x + 1


def _writes(x):
    x.add_(1)
    return x * 2


@pytest.mark.parametrize("function", [_returns_a_view, _writes])
def test_memory_that_is_shared_is_traced(traced, tmp_path, function):
    for number in range(1, 3):
        mine, theirs = torch.arange(6.0).view(2, 3), torch.arange(6.0).view(2, 3)
        torch.testing.assert_close(_run(function, mine), function(theirs))
        torch.testing.assert_close(mine, theirs)
        assert len(traced) == number
    assert _entries(tmp_path) == []


@pytest.mark.usefixtures("traced")
def test_inputs_that_are_returned():
    x = torch.ones(3)
    for _ in range(2):
        given, made = _run(lambda x: (x, x + 1), x)
        assert given is x
        assert torch.equal(made, torch.full((3,), 2.0))


@pytest.mark.usefixtures("traced")
def test_open_sizes_are_traced(tmp_path):
    torch._dynamo.reset()
    call = torch.compile(lambda x: x.sum(0), backend="tapestry", dynamic=True)
    for rows in (3, 4):
        assert torch.equal(call(torch.ones(rows, 2)), torch.full((2,), float(rows)))
    assert _entries(tmp_path) == []


def test_damage_is_noticed(traced, tmp_path):
    x = torch.randn(5)
    first = _run(torch.sigmoid, x)
    (entry,) = _entries(tmp_path)
    whole = entry.read_bytes()
    for damaged in (whole[:-1], b"", whole.replace(b"rows", b"wors"), whole[:65]):
        entry.write_bytes(damaged)
        assert torch.equal(_run(torch.sigmoid, x), first)
        assert entry.read_bytes() == whole
    assert len(traced) == 5


def test_data_that_is_no_graph_is_traced(traced, monkeypatch):
    x = torch.randn(5)
    first = _run(torch.sigmoid, x)
    ends = {"outputs": [], "arguments": [0], "seeds": 0, "device": "cpu"}
    hostile = {"rows": [["named", "os", "system"]], "value": ["row", 0]}
    parts = ({}, {"outputs": 3}, ends | {"module": {}}, ends | {"prepared": hostile})
    for entry in ({}, *({"parts": [part], "results": 1, "gradients": []} for part in parts)):
        monkeypatch.setattr("tapestry.store.Store.read", lambda *_, entry=entry: dict(entry))
        assert torch.equal(_run(torch.sigmoid, x), first)
    assert len(traced) == 6


def test_what_is_to_be_seen_is_traced(traced, tmp_path):
    x = torch.randn(5)
    for _ in range(2):
        _run(torch.sigmoid, x)
    for _ in range(2):
        with recording() as report:
            _run(torch.sigmoid, x)
        assert [use.operator for use in report.uses] == ["aten.sigmoid.default"]
    _run(torch.sigmoid, x, dump=str(tmp_path / "out"))
    assert list((tmp_path / "out").iterdir())
    assert len(traced) == 4


def test_what_pytorch_runs_is_traced(traced, tmp_path):
    for _ in range(2):
        torch.testing.assert_close(_run(torch.special.i0, torch.ones(3)), torch.ones(3).i0())
    assert len(traced) == 2
    assert _entries(tmp_path) == []


def _graph(function, *args):
    """The graph that Dynamo makes, and its description."""
    found: list[object] = []

    def backend(graph, inputs):
        found.append(described(graph, inputs))
        return graph

    torch._dynamo.reset()
    torch.compile(function, backend=backend, dynamic=False)(*args)
    return found[0]


class _Double(torch.autograd.Function):
    @staticmethod
    def forward(_, x):
        return x * 2

    @staticmethod
    def backward(_, grad):
        return grad * 2


def test_descriptions_say_what_a_graph_is():
    x = torch.randn(4)
    softmax = _graph(lambda x: x.softmax(-1), x)
    assert softmax == _graph(lambda x: x.softmax(-1), x)[:2] + softmax[2:]
    assert _graph(lambda x: x + 1, x) != _graph(lambda x: x + 1.0, x)
    assert _graph(lambda x: x[1:], x) != _graph(lambda x: x[1:3], x)
    with torch.autocast("cpu"):
        assert _graph(lambda x: x + 1, x) is None
    assert _graph(_Double.apply, x.clone().requires_grad_()) is None
    with torch.inference_mode():
        assert _graph(lambda x: x + 1, x) is not None


def test_another_function_under_the_name_has_no_description(monkeypatch):
    x = torch.randn(4)
    graph = torch.fx.symbolic_trace(lambda x: torch.nn.functional.softplus(x))
    for node in graph.graph.nodes:
        node.meta["example_value"] = x
    assert described(graph, [x]) is not None

    def own(x):
        return x

    own.__module__, own.__qualname__, own.__name__ = "torch.nn.functional", "selu", "selu"
    for node in graph.graph.nodes:
        if node.op == "call_function":
            node.target = own
    assert described(graph, [x]) is None
    monkeypatch.setattr(torch.nn.functional, "selu", own)
    assert described(graph, [x]) is None


_HIT = """
import sys
import torch
import tapestry.importers.torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Embedding(50, 16), torch.nn.LayerNorm(16), torch.nn.GELU())
rows = torch.compile(model, backend="tapestry")(torch.arange(8).reshape(2, 4))
rows.square().mean().backward()
print(float(rows.sum()), float(model[0].weight.grad.sum()))
print("traced", "tapestry.importers.torch.tracing" in sys.modules)
print("IR", sorted(name for name in sys.modules if name.startswith(("xdsl.ir", "xdsl.dialects"))))
"""


def test_a_hit_in_another_process_imports_no_ir(tmp_path):
    environment = {**os.environ, "TAPESTRY_CACHE": "1", "TAPESTRY_CACHE_DIR": str(tmp_path)}

    def run() -> list[str]:
        command = [sys.executable, "-c", _HIT]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    first, again = run(), run()
    assert first[0] == again[0]
    assert first[1] == "traced True"
    assert again[1:] == ["traced False", "IR []"]
