"""StableHLO text or bytes to a module: arguments, the walk, the results."""

from __future__ import annotations

import re
from typing import Any

from xdsl.dialects.builtin import ModuleOp, NameLoc

from tapestry.diagnostics import Location
from tapestry.frontend import verify_module
from tapestry.importers.stablehlo import (
    bit_generators,
    bits,
    complexes,
    contractions,
    control,
    elementwise,
    indexing,
    movement,
    normalizations,
    reductions,
    scattering,
    sorting,
    updating,
    windows,
)
from tapestry.importers.stablehlo.bindings import MlirOperation, StableHloError, blocks_of, parse
from tapestry.importers.stablehlo.constants import resources_of
from tapestry.importers.stablehlo.locations import Locations
from tapestry.importers.stablehlo.program import Program, Source, Translation
from tapestry.importers.stablehlo.values import Value

TRANSLATIONS: dict[str, Translation] = {
    name: translation
    for table in (
        bit_generators, bits, complexes, contractions, control, elementwise, indexing, movement,
        normalizations, reductions, scattering, sorting, updating, windows,
    )
    for name, translation in table.TRANSLATIONS.items()
}  # fmt: skip
"""What every operation becomes that can be imported."""

ENTRY = "main"


def import_text(source: str | bytes, name: str) -> ModuleOp:
    """The verified weft module of a StableHLO program; `name` stands for its file in messages."""
    parsed = parse(source, name)
    functions: dict[str, MlirOperation] = {}
    for function in parsed.body.operations:
        operation = function.operation
        if operation.name == "func.func":
            functions[str(operation.attributes["sym_name"]).strip('"')] = operation
    locations = Locations(name)
    program = Program(Source(functions, resources_of(source), locations), TRANSLATIONS)
    main = functions.get(ENTRY)
    if main is None:
        have = ", ".join(f"@{one}" for one in functions) or "no function"
        raise StableHloError(
            f"there is no func.func @{ENTRY}; the module has {have}", location=Location(name, 1, 1)
        )
    arguments = list(blocks_of(main)[0].arguments)
    places = [locations.convert(argument.location) for argument in arguments]
    values: list[Value] = []
    for argument, called, place in zip(arguments, _names(places), places, strict=True):
        program.place = place
        spec = program.spec(argument.type)
        values.append(program.value(program.build.argument(called, spec.shape, spec.dtype, place)))
    outputs = program.run_function(ENTRY, values)
    module = program.build.finish([program.tensor(value) for value in outputs])
    verify_module(module)
    return module


def _names(places: list[Any]) -> list[str]:
    """What arguments are called: as JAX names them, if all have names of their own."""
    names = [
        re.sub(r"[^A-Za-z0-9_]+", "_", place.desc.data).strip("_")
        if isinstance(place, NameLoc)
        else ""
        for place in places
    ]
    usable = all(re.fullmatch(r"[A-Za-z_]\w*", name) for name in names)
    if usable and len(set(names)) == len(names):
        return names
    return [f"arg{position}" for position in range(len(places))]
