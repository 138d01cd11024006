r"""Writes documents as YAML that reads back as they are.

>>> from tapestry.metakernels.documents import read_yaml
>>> text = 'relu: {inputs: {x: {shape: "[$d...]"}}, index: "[$d...]", wrap: "max(x, 0)"}'
>>> print(yaml_text({"relu": read_yaml(text, "ops.yaml").at("relu")}), end="")
relu:
  inputs:
    x: {shape: '[$d...]'}
  index: '[$d...]'
  wrap: max(x, 0)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

from tapestry.metakernels.documents import Node

_WIDTH: Final = 100


class _Dumper(yaml.SafeDumper):
    """A dumper without aliases, which files of templates may not have."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML asks for each value
        """Write every value out."""
        return True


def yaml_text(documents: Mapping[str, Node]) -> str:
    """Templates (or other documents) by name as the text of a YAML file."""
    return yaml_of({name: node.plain() for name, node in documents.items()})


def yaml_of(data: Mapping[str, Any]) -> str:
    """Plain values (strings, numbers, lists, mappings) as YAML."""
    untyped: Any = yaml  # the stubs of some versions leave parts of `dump` without a type
    return untyped.dump(
        dict(data),
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=None,
        allow_unicode=True,
        width=_WIDTH,
    )
