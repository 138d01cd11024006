"""Graphs of Dynamo's as plain data: all that decides what they become.

    described(graph, inputs)     # lists, numbers and strings; None where that does not decide it

A description has the operators with their arguments, what is known of every tensor, the lines of
the user's, and PyTorch's own switches. It exists for graphs of operators of PyTorch's on plain
tensors of fixed sizes; what a user defined, constants, and what sets a switch have none.
"""

# ruff: noqa: SLF001 (PyTorch says some of it under private names alone)

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, cast

import torch
from torch import fx
from torch._functorch import config as functorch_config
from torch._ops import OpOverload
from torch.fx import node as fx_node

from tapestry.importers.torch.stacks import line_of_node

_pytorch: Any = torch
_nodes: Any = fx_node

_FUNCTIONS = re.compile(
    r"(torch\._C\._(nn|linalg|fft|special)|torch\.(nn\.)?functional|torch\.(linalg|fft|special)"
    r"|_operator|math)\.\w+"
)
"""Functions of tensors and numbers, which do nothing else; beside those of torch itself."""

_NAMESPACES = ("aten", "prims")

_OTHERS = frozenset(
    {"backward", "data_ptr", "item", "numpy", "register_hook", "requires_grad_", "resize_"}
    | {"resize_as_", "retain_grad", "set_", "share_memory_", "tolist"}
)
"""Methods of tensors that are about more than their cells."""


_VIEWS = frozenset({"T", "mT", "H", "mH", "real", "imag"})
"""Attributes of tensors that are views of them; PyTorch's own are no properties of Python's."""


class _UndescribedError(Exception):
    """Why a graph has no description."""


def described(graph: fx.GraphModule, inputs: Sequence[Any]) -> list[Any] | None:
    """The description of a graph that is called with such inputs, or None."""
    try:
        return [_switches(), [_tensor(one) for one in inputs], *map(_node, graph.graph.nodes)]
    except _UndescribedError:
        return None


def _switches() -> list[Any]:
    """The state of PyTorch that tracing asks for."""
    own = _pytorch._C
    if own._is_any_autocast_enabled() or own._len_torch_dispatch_stack():
        raise _UndescribedError("something changes what operators do")
    if own._autograd._top_saved_tensors_default_hooks(True) is not None:
        raise _UndescribedError("something changes what gradients keep")
    return [
        torch.__version__,
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        str(torch.get_default_dtype()),
        str(_pytorch.get_default_device()),
        cast(Any, functorch_config).get_hash().hex(),
    ]


def _node(node: fx.Node) -> list[Any]:
    known = _known(node.meta.get("example_value")) if node.op != "output" else None
    row = [node.op, node.name, line_of_node(node), known]
    match node.op:
        case "placeholder" | "output":
            target = ""
        case "call_function" if node.target is getattr:
            target = _attribute(node.args[1])
        case "call_function":
            target = _function(node.target)
        case "call_method":
            target = _method(str(node.target))
        case _:
            raise _UndescribedError(f"a node is a {node.op}")
    return [*row, target, _argument(node.args), _argument(node.kwargs)]


@cache
def _function(target: Any) -> str:
    """What a function is called, where that says what it does."""
    if isinstance(target, OpOverload):
        if target.namespace not in _NAMESPACES:
            raise _UndescribedError(f"{target} is a user's")
        return str(cast(object, target))
    try:
        name: str = _nodes._get_qualified_name(target)
    except RuntimeError:
        name = ""
    path, _, last = name.rpartition(".")
    functions = _pytorch._C._VariableFunctions
    own = path == "torch" and getattr(functions, last, None) is target
    if not own and not _FUNCTIONS.fullmatch(name):
        raise _UndescribedError(f"{target} is no function of tensors alone")
    if getattr(sys.modules.get(path), last, None) is not target or not _is_shipped(target):
        raise _UndescribedError(f"{name} is another function now")
    return name


def _attribute(name: Any) -> str:
    """An attribute of a tensor that is a view of it."""
    if name not in _VIEWS or isinstance(getattr(torch.Tensor, name), property):
        raise _UndescribedError(f"tensors are asked for {name}")
    return f"attribute {name}"


@cache
def _method(name: str) -> str:
    found = getattr(torch.Tensor, name, None)
    if name in _OTHERS or found is None or not _is_shipped(found):
        raise _UndescribedError(f"tensors do more than compute in {name}")
    return name


def _is_shipped(function: Any) -> bool:
    """Whether a function is PyTorch's, or Python's: compiled, or from its folder."""
    if not isinstance(function, FunctionType):
        return True
    return Path(function.__code__.co_filename).is_relative_to(Path(torch.__file__).parent)


def _argument(value: Any) -> Any:
    """An argument of a node; each kind is told from the others."""
    match value:
        case fx.Node():
            return ["node", value.name]
        case bool() | str() | None:
            return value
        case int() | float() | complex():
            return [type(value).__name__, repr(value)]
        case torch.dtype() | torch.device() | torch.layout() | torch.memory_format():
            return [type(value).__name__, str(value)]
        case slice():
            cut = cast(Any, value)
            return ["slice", *map(_argument, (cut.start, cut.stop, cut.step))]
        case list() | tuple():
            items = cast("Sequence[Any]", value)
            return ["list" if isinstance(value, list) else "tuple", *map(_argument, items)]
        case dict():
            pairs = cast("Mapping[str, Any]", value).items()
            return ["dict", *([name, _argument(item)] for name, item in pairs)]
        case _ if value is Ellipsis:
            return ["..."]
        case _:
            raise _UndescribedError(f"{value!r} is an argument")


def _known(value: Any) -> Any:
    """What Dynamo knows of a result: a tensor, or some of them."""
    if isinstance(value, list | tuple):
        return [_known(item) for item in cast("Sequence[Any]", value)]
    return _tensor(value)


def _tensor(value: Any) -> list[Any]:
    """All that is known of a tensor but its cells."""
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        raise _UndescribedError("a value is no plain tensor")
    if type(value) not in _kinds():
        raise _UndescribedError(f"a tensor is a {type(value).__name__}")
    sizes = [*value.shape, *value.stride(), value.storage_offset()]
    if any(type(size) is not int for size in sizes):
        raise _UndescribedError("a size is open")
    return [
        str(value.dtype),
        str(value.device),
        len(value.shape),
        sizes,
        value.requires_grad,
        value.is_conj(),
        value.is_neg(),
    ]


@cache
def _kinds() -> tuple[type, ...]:
    from torch._subclasses.fake_tensor import FakeTensor

    return torch.Tensor, torch.nn.Parameter, FakeTensor
