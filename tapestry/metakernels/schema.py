"""A JSON schema of template files, for editors: made from the models that check the files.

>>> schema = file_schema()
>>> sorted(schema["$defs"]["TemplateModel"]["required"])
['inputs']
>>> schema["$defs"]["FoldModel"]["properties"]["extent"]["type"]
['string', 'number', 'boolean']

An editor then completes keys, explains them, and marks those that do not exist. What stands inside
an expression is checked by `tapestry metakernel check`.
"""

from __future__ import annotations

from typing import Any, Final

from tapestry.metakernels.models import TemplateModel

_MEANING: Final = {
    "doc": "What it is, in words.",
    "formula": "What it computes, as a formula.",
    "source": "Where the definition comes from.",
    "params": "Typed parameters, by name; an application gives them in {}.",
    "inputs": "The tensors it reads, by name, in the order of operands.",
    "let": "Names for computed values: $name in every expression.",
    "require": "Conditions that must hold, such as $n > 0.",
    "index": "The mapped dimensions of the index space: [$batch..., $row, $col].",
    "fold": "Dimensions that are folded, by label.",
    "scan": "The dimension along which the states of a fold are kept.",
    "domain": "Conditions on coordinates: only points that satisfy them are folded.",
    "wrap": "What a point computes; with a fold, what is folded.",
    "unwrap": "What is made of the folded value, called fold.",
    "outputs": "The tensors it writes, by name; one called result unless given.",
    "steps": "Applications of other metakernels, in order, that this one is made of.",
    "view": "reshape: the same cells in row-major order under another shape.",
    "examples": "Applications with values, which `tapestry metakernel check` runs.",
    "shape": "What the shape looks like: [$batch..., $n]; of an output, its sizes.",
    "ipf": "The index projection function: which cell a point reads or writes.",
    "dtype": "A dtype, a class of them, or a name for one: $t: float.",
    "bounds": "What is read where the tensor has no cell.",
    "clip": "The value outside the tensor.",
    "extent": "How many points the dimension has.",
    "monoid": "What the dimension is folded by.",
    "op": "The metakernel that is applied.",
    "type": "int, int[], int[2], float, bool, enum or dtype.",
    "default": "The value of a parameter that is not given.",
    "axis_of": "The input whose axis it is: negatives count from the end.",
    "values": "The words that an enum may be.",
    "dtypes": "The dtypes of inputs; f32 unless given.",
}
"""What editors show for a key."""


def file_schema() -> dict[str, Any]:
    """The schema of a file of templates: a mapping from names to templates."""
    schema: dict[str, Any] = TemplateModel.model_json_schema(ref_template="#/$defs/{model}")
    definitions: dict[str, Any] = schema.pop("$defs")
    definitions["TemplateModel"] = schema
    for model in definitions.values():
        for key, entry in model.get("properties", {}).items():
            if key in _MEANING:
                entry["description"] = _MEANING[key]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Metakernel templates of Tapestry",
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/TemplateModel"},
        "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
        "$defs": definitions,
    }
