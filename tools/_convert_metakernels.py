"""`tapestry metakernel to-ir` and `to-yaml`: templates as YAML, and as operations of a module.

relu:                              weft.metakernel @relu {
  wrap: max(x, 0)          <->       wrap = "max(x, 0)", ...
"""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects import weft
from tapestry.dialects._weft_documents import attribute_of, document_of
from tapestry.frontend import load_module, verify_module
from tapestry.locations import location_of
from tapestry.metakernels.documents import Entries, read_file
from tapestry.metakernels.errors import TemplateError
from tapestry.metakernels.writing import yaml_text


def templates_to_ir(paths: Iterable[Path]) -> str:
    """The templates of YAML files as a module of `weft.metakernel`s; each must be right."""
    operations: list[weft.MetakernelOp] = []
    for path in paths:
        for key, node in read_file(path).entries:
            if not isinstance(node, Entries):
                raise TemplateError(
                    f"template {key.value} must be a mapping", location=node.location
                )
            operations.append(weft.MetakernelOp(str(key.value), attribute_of(node)))
    module = ModuleOp(list(operations))
    verify_module(module)
    stream = StringIO()
    Printer(stream).print_op(module)
    return stream.getvalue()


def templates_to_yaml(path: Path) -> str:
    """The `weft.metakernel`s of a program as the text of a YAML file."""
    definitions = [
        op for op in load_module(path).body.block.ops if isinstance(op, weft.MetakernelOp)
    ]
    if not definitions:
        raise InvalidProgramError(f"{path} defines no weft.metakernel")
    return yaml_text(
        {op.sym_name.data: document_of(op.template, location_of(op)) for op in definitions}
    )
