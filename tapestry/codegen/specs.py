"""What it takes to compile a printed kernel: its arguments' types, block sizes and options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute

from tapestry.dialects import triton

_NAMES = {
    "f16": "fp16",
    "bf16": "bf16",
    "f32": "fp32",
    "f64": "fp64",
    "f8E4M3FN": "fp8e4nv",
    "f8E5M2": "fp8e5",
    "ui8": "u8",
    "ui16": "u16",
    "ui32": "u32",
    "ui64": "u64",
}


ALIGNMENT = 16
"""What Triton tells numbers apart by: those that are multiples of it, and others."""


@dataclass(frozen=True)
class KernelSpec:
    """A kernel as Triton compiles it.

    `signature` has Triton's name of each argument's type (`*fp32`, `i32`), `blocks` the
    compile-time arguments; `asserts` says that it is compiled with assertions. The numbers that are
    multiples of 16 in every launch are `aligned`: what starts there is moved 16 bytes at a time.
    """

    name: str
    signature: tuple[tuple[str, str], ...]
    blocks: tuple[tuple[str, int], ...]
    num_warps: int
    num_stages: int
    asserts: bool = False
    aligned: tuple[str, ...] = ()

    @property
    def options(self) -> dict[str, int | bool]:
        """What a launch in Triton's interpreter is given beside its operands."""
        how = {"num_warps": self.num_warps, "num_stages": self.num_stages}
        debugs = {"debug": True, "sanitize_overflow": False} if self.asserts else {}
        return {**dict(self.blocks), **how, **debugs, "enable_fp_fusion": False}


def spec_of(
    kernel: triton.KernelOp,
    name: str,
    arguments: Sequence[str],
    launches: Sequence[triton.LaunchOp] = (),
) -> KernelSpec:
    """The spec of a kernel that was printed under some name, with some names of its arguments.

    `launches` are all there are of it.
    """
    values = kernel.body.block.args
    kinds = [_type_name(value.type) for value in values]
    return KernelSpec(
        name,
        tuple(zip(arguments, kinds, strict=True)),
        tuple(kernel.constants.items()),
        kernel.warps,
        kernel.stages,
        kernel.asserts,
        tuple(_aligned(arguments, launches)),
    )


def _aligned(arguments: Sequence[str], launches: Sequence[triton.LaunchOp]) -> Iterator[str]:
    """The last arguments, numbers, that are multiples of what memory is aligned to."""
    rows = [row for launch in launches for row in launch.rows]
    for place in range(len(rows[0]) if rows else 0):
        if all(row[place] % ALIGNMENT == 0 for row in rows):
            yield arguments[place - len(rows[0])]


def _type_name(kind: Attribute) -> str:
    if isinstance(kind, triton.PointerType):
        return f"*{_type_name(kind.element_type)}"
    name = str(kind)
    return _NAMES.get(name, name)
