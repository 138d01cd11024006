"""How many programs of a kernel fit a multiprocessor: registers, shared memory and warps.

    shared_bytes(work, h200), registers_of(work, h200)      98304, 107
    occupancy_of(work, 98304, h200)                         2
    problems_of(work, h200)                                 ()

These are what the compiler is likely to take: shared memory nearly to the byte, registers within a
third.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from tapestry.devices import DeviceSpec
from tapestry.passes.triton.cost.work import WARP_ROWS, Product, Work

WARPGROUP_ROWS: Final = 64
"""The rows that a warpgroup multiplies at least."""

TENSOR_KINDS: Final = ("i8", "f8E4M3FN", "f8E5M2", "f16", "bf16")
"""What tensor cores multiply as it is."""

GROUPED_KINDS: Final = (*TENSOR_KINDS, "tf32", "bf16x6")
"""What warpgroups multiply, where a device has them."""

_THREADED = 64
"""Registers of a thread that hold what it multiplies itself of float64."""

_GRANULE = 8
"""Registers are given to threads by so many."""

_ENDING = 8
"""What a thread needs when its loop has ended besides what that leaves, where registers are few.

A compiler then loads piece by piece what is read there: of 137 that are guessed for a linear layer,
112 with these, it takes 94. Of 169 to 187 for convolutions and for parts of a product that are
scaled, it takes 174 to 254, and none of these fits three times.
"""


def shared_bytes(work: Work, spec: DeviceSpec) -> int:
    """Bytes of shared memory that a program takes.

    Tiles that warps multiply, or that threads read, leave shared memory before the next ones come:
    one stage less.
    """
    grouped = any(by_warpgroups(p, work, spec) and not p.is_split for p in work.products)
    early = work.passing if grouped else work.staged
    staged = work.staged * work.stages - early * min(1, work.stages - 1)
    return max(staged + work.held, work.exchanged)


def registers_of(work: Work, spec: DeviceSpec) -> int:
    """Registers that a thread is likely to need."""
    return work.registers + _fragments(work, spec)


def _fragments(work: Work, spec: DeviceSpec) -> int:
    """Of these, what holds factors of products and their parts.

    Warps multiply tiles from their registers, warpgroups from shared memory. What a thread holds of
    a step's tiles at once is about half of it.
    """
    fragments = 0
    for product in work.products:
        by_warps = not by_warpgroups(product, work, spec)
        across = warps_across(work)
        if product.is_split:
            # The product of a step, and three parts of half a register of each cell. Warps hold
            # what those beside them hold as well; what warpgroups need is off by 10 at most.
            sides = max(product.m, WARP_ROWS * work.warps) + product.n
            if by_warps:
                sides = product.m * across + product.n * (work.warps // across)
            cells = product.m * product.n + 3 * product.k * sides // 2
            fragments = max(fragments, cells // work.threads)
        elif not by_matrix_units(product, spec):
            fragments = max(fragments, _THREADED if product.kind == "f64" else 0)
        elif product.kind in (*TENSOR_KINDS, "f64") and by_warps:
            # Of float64, which is multiplied in shorter steps, it is a quarter.
            there = 4 if product.kind == "f64" else 2
            cells = product.m * across + product.n * (work.warps // across)
            size = cells * product.k * cell_bytes(product) // (there * 4 * work.threads)
            fragments = max(fragments, size)
    return fragments


def by_matrix_units(product: Product, spec: DeviceSpec) -> bool:
    """Whether tensor cores do a product."""
    return product.kind in GROUPED_KINDS or (product.kind == "f64" and spec.has_float64)


def thread_registers(work: Work, spec: DeviceSpec) -> int:
    """Registers that a thread may have where a program's threads share a multiprocessor's.

    Where these are few a compiler makes do with fewer than it would like: tiles have to fit.
    """
    limits = spec.limits
    return min(limits.registers_per_thread, limits.registers // work.threads)


def warps_across(work: Work) -> int:
    """How many warps lie side by side on the tile of a product: as squarely as they can."""
    return 1 << ((work.warps.bit_length() - 1) // 2)


def cell_bytes(product: Product) -> int:
    """Bytes of a cell of a product's factors."""
    if product.kind == "f64":
        return 8
    narrow = product.kind == "i8" or product.kind.startswith("f8")
    return 1 if narrow else 2 if product.kind in TENSOR_KINDS else 4


def spilled_of(work: Work, spec: DeviceSpec) -> int:
    """Registers that a thread needs and has not."""
    return max(0, registers_of(work, spec) - spec.limits.registers_per_thread)


def fits(work: Work, spec: DeviceSpec) -> bool:
    """Whether a kernel can be launched at all, be it with registers that spill."""
    shared = shared_bytes(work, spec) <= spec.limits.shared_per_program
    return shared and work.warps <= spec.limits.warps


def problems_of(work: Work, spec: DeviceSpec) -> tuple[str, ...]:
    """Why a kernel does not fit a device, or spills there."""
    found: list[str] = []
    shared, most = shared_bytes(work, spec), spec.limits.shared_per_program
    if shared > most:
        found.append(f"{shared} bytes of shared memory, of {most}")
    registers = registers_of(work, spec)
    if registers > spec.limits.registers_per_thread:
        found.append(f"{registers} registers, of {spec.limits.registers_per_thread}")
    elif work.tile_registers > (given := thread_registers(work, spec)):
        found.append(f"{work.tile_registers} registers for tiles, of {given}")
    if work.warps > spec.limits.warps:
        found.append(f"{work.warps} warps, of {spec.limits.warps}")
    return tuple(found)


def occupancy_of(work: Work, shared: int, spec: DeviceSpec) -> int:
    """Programs that run on a multiprocessor at once; 1 at least."""
    limits = spec.limits
    registers = min(registers_of(work, spec), limits.registers_per_thread)
    if len(work.products) == 1 and not work.products[0].is_split:
        least = work.walking_registers + _fragments(work, spec)
        registers = min(registers, least + _ENDING * bool(work.late))
    given = ceil(registers / _GRANULE) * _GRANULE * work.threads
    return max(
        1,
        min(
            limits.programs,
            limits.warps // work.warps,
            limits.registers // given,
            limits.shared // max(1, shared + limits.shared_reserved),
        ),
    )


def by_warpgroups(product: Product, work: Work, spec: DeviceSpec) -> bool:
    """Whether warpgroups multiply, which take rows by 64."""
    fits = product.m >= WARPGROUP_ROWS and work.warps >= 4
    return spec.has_warpgroups and fits and product.kind in GROUPED_KINDS
