"""JAX programs in: StableHLO, parsed by the MLIR that comes with `jaxlib`, as weft.

    exported = jax.export.export(jax.jit(f))(x, w)
    module = tapestry.importers.stablehlo.load(exported.mlir_module())

`load` takes a path, text, or the bytes of a portable artifact (`mlir_module_serialized`). Every
operation becomes an application of a metakernel, a view, or an operation of loom; calls are
inlined, and loops with a known trip count unrolled. Needs the extra `jax`.
"""

from __future__ import annotations

from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from tapestry.frontend import read_bytes
from tapestry.importers.stablehlo.bindings import StableHloError, is_stablehlo

__all__ = ["StableHloError", "is_stablehlo", "load"]


def load(source: str | bytes | Path, name: str | None = None) -> ModuleOp:
    """The verified weft module of a StableHLO program.

    `source` is a path, a program's text, or the bytes of a portable artifact; a line without `{` is
    a path. `name` stands for the file in messages. Raises StableHloError, which has the place, for
    what cannot be imported, and UsageError where jaxlib is not installed.
    """
    if isinstance(source, str) and source and "\n" not in source and "{" not in source:
        source = Path(source)
    if isinstance(source, Path):
        source, name = read_bytes(source), name or str(source)
    return _import(source, name or "<stablehlo>")


def _import(source: str | bytes, name: str) -> ModuleOp:
    """The module of a program, which may have been imported before."""
    from tapestry.caching import imported

    def make() -> ModuleOp:
        from tapestry.importers.stablehlo.loading import import_text

        return import_text(source, name)

    raw = source.encode() if isinstance(source, str) else source
    return imported(raw, name, "jaxlib", make)
