"""What a rule and its metakernels say, as one digest: what was checked of it is kept by that.

Documentation and examples do not count, and metakernels that steps apply do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256

from tapestry.metakernels import Library, Template
from tapestry.rewriting.rules import Rule

_SILENT = ("doc", "formula", "source", "examples")


def digest_of(rule: Rule, library: Library, edition: str) -> str:
    """The digest of `rule`; `edition` is that of what checks it."""
    templates: dict[str, object] = {}
    for application in (*rule.matched, *rule.produced):
        _collect(application.template, library, templates)
    text = json.dumps([edition, _said(rule.document.plain()), templates], sort_keys=False)
    return sha256(text.encode()).hexdigest()


def _collect(template: Template, library: Library, found: dict[str, object]) -> None:
    if template.name in found:
        return
    found[template.name] = _said(template.document.plain())
    for step in template.steps:
        _collect(library.get(step.op), library, found)


def _said(document: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in document.items() if key not in _SILENT}
