"""Metakernels: operators as templates, which shapes, dtypes and parameters turn into index spaces.

    >>> from tapestry.metakernels import TensorSpec, expand, load_library
    >>> library = load_library()
    >>> total = expand(library.get("sum"), [TensorSpec((2, 3), "f16")], {"axis": -1}, library)
    >>> total.space.extents, str(total.reads[0]), total.outputs[0].spec.shape
    ((2, 3), '(d0, d1) -> (d0, d1)', (2,))

Templates are YAML files (`library/*.yaml`, and folders of a user's own); `docs/weft.md` is the
guide to their language. Plain Python: no IR is known here.
"""

from tapestry.metakernels.application import expand
from tapestry.metakernels.errors import WeftError
from tapestry.metakernels.evaluation import evaluate_expression
from tapestry.metakernels.expansion import Expansion, TensorSpec
from tapestry.metakernels.libraries import Library, load_library
from tapestry.metakernels.matching import Match, match_pattern
from tapestry.metakernels.parsing import parse_pattern
from tapestry.metakernels.reading import read_template
from tapestry.metakernels.templates import Template

__all__ = [
    "Expansion",
    "Library",
    "Match",
    "Template",
    "TensorSpec",
    "WeftError",
    "evaluate_expression",
    "expand",
    "load_library",
    "match_pattern",
    "parse_pattern",
    "read_template",
]
