"""docs/architecture.md says what is so: who imports whom, and that no pass knows an operator."""

from __future__ import annotations

import ast
import re
from itertools import chain

from tapestry.metakernels import load_library
from tests.packaging import floors

_WITHOUT_IR = ("zspace", "metakernels", "devices")
_WITHOUT_NAMES = (
    *("algebra", "dialects", "graph", "movement", "passes"),
    *("codegen", "runtime", "explaining", "tuning", "proving"),
)


def test_every_module_is_on_a_floor():
    order = floors.floors()
    assert len(order) == 11
    known = set(floors.modules()) - {""}
    assert [name for name in known if floors.floor_of(name, order) is None] == []
    for prefix in chain.from_iterable(order):
        assert any(
            name == prefix or name.startswith((f"{prefix}.", f"{prefix}_")) for name in known
        )


def test_modules_import_from_their_floor_and_below():
    order, known, allowed = floors.floors(), floors.modules(), floors.exceptions()
    upwards: set[tuple[str, str]] = set()
    for module, path in known.items():
        if not module:  # what a user imports, from every floor
            continue
        here = floors.floor_of(module, order)
        for one in floors.imports(module, path, known):
            there = floors.floor_of(one.imported, order)
            if here is not None and there is not None and there > here:
                assert one.late, f"{module} imports {one.imported}, {there - here} floors above"
                upwards.add((module, one.imported))
    assert upwards == set(allowed)


def test_geometry_and_templates_know_no_ir():
    for module, path in floors.modules().items():
        if module.split(".")[0] in _WITHOUT_IR:
            assert not re.search(r"^\s*(from|import) xdsl", path.read_text(), re.MULTILINE), module


def test_no_pass_executor_or_printer_knows_an_operator_by_name():
    """Neither in text nor in the name of a function; words that mean more are left out."""
    names = {name for name in load_library().names if "_" in name or name in _TELLING}
    assert len(names) > 150
    named = re.compile("|".join(rf"(^|_){re.escape(name)}(_|$)" for name in _TELLING))
    for module, path in floors.modules().items():
        if not module.startswith(_WITHOUT_NAMES):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Constant(value=str(text)):
                    assert text not in names - _SCALAR, f"{module}:{node.lineno} names {text}"
                case ast.FunctionDef(name=text) | ast.ClassDef(name=text):
                    assert not named.search(text), f"{module}:{node.lineno} is named {text}"
                case _:
                    pass


_TELLING = frozenset(
    {
        *("softmax", "matmul", "bmm", "einsum", "conv1d", "conv2d", "conv3d", "embedding"),
        *("gelu", "relu", "silu", "dropout", "attention", "cumsum", "topk"),
    }
)
"""Names of operators that mean nothing else."""

_SCALAR = frozenset({"shift_left", "shift_right"})
"""Operations of bodies, which happen to be operators as well."""
