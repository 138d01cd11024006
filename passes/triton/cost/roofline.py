"""How long a kernel takes on a device, without running it: a roofline of its programs.

    estimate = estimate_of(work, find_spec("h200"))
    estimate.seconds, estimate.bound            0.0000312, 'memory'

The model, per launch:

* **occupancy**: how many programs run on a multiprocessor at once: what registers, shared memory
  and warps allow. All that run at once are a *wave*.
* **memory**: bytes from and to memory. Programs of a wave that touch the same cells read them once;
  what fits the L2 is read once altogether. Of what a program reads again, that is there which what
  the others moved meanwhile has left in the L2: fewer programs at once leave more. A multiprocessor
  waits for so many requests at once, of a warp's neighbouring cells each: where lanes move few
  bytes, requests are small, and where programs are few that copy nothing ahead, they are few.
* **l2**: all bytes that programs ask for, in whole sectors.
* **tensor cores, shared memory; arithmetic, functions**: work of the multiprocessor with the most
  programs, so the last, partial wave costs as much as it does, and programs that are longer than
  others cost more if they come last. Tensor cores read from shared memory while they multiply, in
  part: the root of the squares of both counts. Of the other pair the longer one does.
  Where programs share a multiprocessor, one's products hide behind another's arithmetic.
* **waiting**: a program waits for its first loads, then per step of its loop for what is not yet
  there. Bytes are on their way for as many steps as there are stages but one, so that two stages
  cannot hide a load that takes longer than a step; other programs hide it, and share what a
  multiprocessor gets. What cannot be copied ahead is waited for in every step.

The time is that of the largest of memory, L2 and multiprocessors, a share of the others (what does
not overlap), and the launch. A program without a loop loads, computes and stores in turn: of n that
a multiprocessor gets, what the first one loads and the last one stores has nothing beside it.
More bytes or operations never make it less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapreplace
from math import ceil, exp, hypot
from typing import TypeAlias

from tapestry.devices import DeviceSpec
from tapestry.passes.triton.cost.fitting import (
    GROUPED_KINDS,
    WARPGROUP_ROWS,
    by_matrix_units,
    by_warpgroups,
    cell_bytes,
    fits,
    occupancy_of,
    problems_of,
    registers_of,
    shared_bytes,
    spilled_of,
    warps_across,
)
from tapestry.passes.triton.cost.work import Product, Stream, Work

_WARPS_TO_FILL = 8
"""How many warps a multiprocessor needs to do arithmetic at its full rate."""

_KEPT_SHARE = 4
"""A buffer of a quarter of the L2 stays there while others pass."""

_REGISTER = 4
"""Bytes of a register."""

Moved: TypeAlias = "tuple[float, Sequence[Stream]]"
"""Bytes from or to memory, and the loads and stores that ask for them."""

_LANES = 32
_REQUEST = 128
"""The lanes of a warp, and the most bytes that they ask for at once."""

_PIECE = 4
"""Bytes of a lane that the L1, which has what shared memory has, moves as fast as fewer."""


@dataclass(frozen=True)
class Estimate:
    """What a launch takes. `parts` are seconds, of which `bound` names the largest.

    `problems` say why the kernel cannot run there, or will not run well.
    """

    seconds: float
    parts: Mapping[str, float]
    occupancy: int
    waves: float
    registers: int
    shared: int
    bytes: float
    flops: float
    problems: tuple[str, ...] = ()
    exact: bool = False
    """Whether registers are counted rather than guessed."""
    fits: bool = True
    """Whether it can be launched: registers may spill, which takes time."""
    by_warps: bool = False
    """Whether warps multiply where the device has warpgroups for it."""

    @property
    def bound(self) -> str:
        """What takes longest."""
        return max(self.parts, key=self.parts.__getitem__)


def estimate_of(work: Work, spec: DeviceSpec) -> Estimate:
    """What a launch takes on a device."""
    shared = shared_bytes(work, spec)
    occupancy = occupancy_of(work, shared, spec)
    at_once = occupancy * spec.multiprocessors
    rounds = _rounds(work, spec)
    together = min(occupancy, ceil(work.programs / spec.multiprocessors))
    works = _works(work, together, spec)
    alone = spec.coefficients.overlap
    hiding = alone + (1 - alone) * (1 - 1 / together)
    computing = rounds * _busy(work, together, spec, hiding)
    waiting = _waiting(work, occupancy, spec)
    moved = list(_moved(work, min(work.programs, at_once), spec))
    parts = {
        "memory": _memory_seconds(work, moved, spec),
        "l2": work.programs * sum(s.moved for s in work.streams) / spec.memory.l2_bandwidth,
        **{name: rounds * seconds for name, seconds in works.items()},
        "waiting": max(0.0, waiting - computing),
    }
    sides = (parts["memory"], parts["l2"], max(computing, waiting))
    return Estimate(
        seconds=spec.coefficients.launch + _overlapped(sides, _hidden(work, spec)),
        parts={name: seconds for name, seconds in parts.items() if seconds},
        occupancy=occupancy,
        waves=work.programs / at_once,
        registers=registers_of(work, spec),
        shared=shared,
        bytes=sum(count for count, _ in moved),
        flops=work.flops,
        problems=problems_of(work, spec),
        exact=any(product.is_split for product in work.products),
        fits=fits(work, spec),
        by_warps=any(_is_by_warps(product, work, spec) for product in work.products),
    )


def _rounds(work: Work, spec: DeviceSpec) -> float:
    """How many programs of mean length the multiprocessor has that is ready last.

    Where some are longer than others, as those of rows that see more columns, each goes to the
    multiprocessor that is ready first: the last ones in order say how long the others wait.
    """
    count = spec.multiprocessors
    if not work.walks:
        return ceil(work.programs / count)
    ready = [0.0] * min(count, work.programs)
    for walk in work.walks:
        heapreplace(ready, ready[0] + walk)
    before = max(0.0, work.programs - sum(work.walks))
    return before / count + max(ready)


def _waiting(work: Work, occupancy: int, spec: DeviceSpec) -> float:
    """Seconds of programs one after another, of those that a multiprocessor runs at once.

    Those of a last wave that is not full share what it gets with fewer.
    """
    each = ceil(work.programs / spec.multiprocessors)
    waves, rest = divmod(each, occupancy)
    computing = _busy(work, 1, spec, spec.coefficients.overlap)
    full = _alone(work, occupancy, computing, spec) if waves else 0.0
    return waves * full + (_alone(work, rest, computing, spec) if rest else 0.0)


def least_seconds(work: Work, spec: DeviceSpec) -> float:
    """What no schedule of the same work can be faster than: its buffers once, its products."""
    cells = sum(min(size, _asked(work, buffer)) for buffer, size in enumerate(work.buffers))
    products = work.programs * sum(p.flops / peak(p, spec) for p in work.products)
    return spec.coefficients.launch + max(cells / spec.memory.bandwidth, products)


def _asked(work: Work, buffer: int) -> float:
    """The bytes of a buffer that programs ask for or write."""
    return work.programs * sum(s.bytes for s in work.streams if s.buffer == buffer)


def _busy(work: Work, together: int, spec: DeviceSpec, hiding: float) -> float:
    """Seconds of a multiprocessor for one program, of some that it runs together.

    A unit that runs beside another works at the same time as that, and one that feeds it in part:
    by products of an H100 and an H200 the root of squares is nearest. What needs products waits for
    them; what it hides behind are those of other programs.
    """
    works = _works(work, together, spec)
    matrices = hypot(works["tensor cores"], works["shared memory"])
    scalars = max(works["arithmetic"], works["functions"], works["loads"])
    waiting = work.waiting_lanes / _lane_rate(work, together, spec)
    return max(scalars, _overlapped((max(matrices, scalars - waiting), waiting), hiding))


def _hidden(work: Work, spec: DeviceSpec) -> float:
    """The share of other work that is hidden behind what takes longest.

    On an H200 rows of 768 took 8.4 us in tiles of 4, and 11 in tiles of 16, of which a
    multiprocessor gets four (`results/schedules_h200.json`).
    """
    hidden = spec.coefficients.hidden
    if work.steps > 1:
        return hidden
    return hidden * (1 - 1 / max(1.0, work.programs / spec.multiprocessors))


def _overlapped(seconds: Sequence[float], hidden: float) -> float:
    """Seconds of works at the same time, of which all but the largest are partly hidden."""
    return max(seconds) + (sum(seconds) - max(seconds)) * (1 - hidden)


def peak(product: Product, spec: DeviceSpec) -> float:
    """Operations per second at which a device does a product at best."""
    rates = spec.rates
    match product.kind:
        case "f16":
            return rates.f16
        case "bf16":
            return rates.bf16
        case "i8":
            return rates.i8 or rates.f16
        case "f8E4M3FN" | "f8E5M2":
            return rates.f8 or rates.f16
        case "tf32":
            return rates.tf32
        case "bf16x6":
            return rates.bf16 / 6
        case "f64":
            return rates.f64
        case _:
            return rates.f32


def _is_by_warps(product: Product, work: Work, spec: DeviceSpec) -> bool:
    """Whether warps multiply what warpgroups would, had tiles more rows."""
    could = spec.has_warpgroups and product.kind in GROUPED_KINDS
    return could and not by_warpgroups(product, work, spec)


def _rate(product: Product, work: Work, spec: DeviceSpec) -> float:
    """Operations per second at which a device does a product of these tiles."""
    own = spec.coefficients
    if not by_matrix_units(product, spec):
        return peak(product, spec) * own.scalar_products
    slow = product.kind in GROUPED_KINDS and not by_warpgroups(product, work, spec)
    share = own.warp_products if slow else 1.0
    return peak(product, spec) * share


def _ready(work: Work, together: int) -> float:
    """The share of the rate of arithmetic that the warps of some programs reach."""
    return min(1.0, work.warps * together / _WARPS_TO_FILL)


def _lane_rate(work: Work, together: int, spec: DeviceSpec) -> float:
    """Operations of lanes per second of a multiprocessor; a product is one, not two."""
    return spec.rates.f32 / 2 / spec.multiprocessors * _ready(work, together)


def _works(work: Work, together: int, spec: DeviceSpec) -> dict[str, float]:
    """Seconds that each unit of a multiprocessor is busy for one program."""
    count = spec.multiprocessors
    products = sum(p.flops * count / _rate(p, work, spec) for p in work.products)
    matrices = all(by_matrix_units(p, spec) for p in work.products)
    arithmetic = work.lanes / _lane_rate(work, together, spec)
    return {
        "tensor cores": products if matrices else 0.0,
        "arithmetic": arithmetic if matrices else arithmetic + products,
        "functions": work.specials * count / spec.rates.special / _ready(work, together),
        "shared memory": _exchanged(work, spec) * count / spec.memory.shared_bandwidth,
        "loads": work.requests * _PIECE * count / spec.memory.shared_bandwidth,
    }


def _exchanged(work: Work, spec: DeviceSpec) -> float:
    """Bytes that a program writes to shared memory, and that its products read there.

    What threads have no registers for goes the same way, out and back in each step.
    """
    # Threads read themselves what no product reads.
    read = work.passing if work.products else work.staged
    found = (work.staged + read) * work.steps + work.held
    found += 2 * _REGISTER * spilled_of(work, spec) * work.threads * max(1.0, work.steps)
    for product in work.products:
        if product.is_split:
            # The left factor is in registers; of the right one, parts of half its size are written.
            reads = 6 * max(1, product.m // WARPGROUP_ROWS)
            halves = 2 * product.m + product.n * (2 + 3 + reads)
            found += halves * product.k * cell_bytes(product) / 2 * product.count
            continue
        rows, columns = WARPGROUP_ROWS, product.n
        if not by_warpgroups(product, work, spec):
            across = warps_across(work)
            rows, columns = product.m * across // work.warps or 1, product.n // across or 1
        reads = product.m / rows * product.n / columns * (rows + columns)
        found += reads * product.k * cell_bytes(product) * product.count
    return found


def _alone(work: Work, together: int, computing: float, spec: DeviceSpec) -> float:
    """Seconds of one of some programs that start together, if it never waited for another's work.

    Its loads are on their way for `stages - 1` steps (Little's law): a step takes no less than its
    share of the time in which its bytes come, nor than they take alone. What is not staged it waits
    for as a whole; where nothing is, it computes with cells when they are there, and asks for the
    next ones then. So it does for what it asks for when its steps are done.
    """
    latency, steps = spec.memory.latency, work.steps
    ahead = max(1, work.stages - 1) if work.staged else 1
    rate = spec.memory.l2_bandwidth / spec.multiprocessors / together
    own_time = work.staged / rate
    coming = max(0.0, steps - ahead) * max(own_time, (latency + own_time) / ahead)
    waiting = latency + work.direct / rate if work.direct else 0.0
    own = spec.coefficients
    copying = steps * work.rows * own.copied_row
    first = latency + work.descriptors * own.descriptor
    ending = latency + work.late / rate if work.late else 0.0
    if not work.staged:
        return first + computing + coming + steps * waiting + ending
    return first + max(computing + copying, coming) + steps * (waiting + own.step) + ending


def memory_bytes(work: Work, at_once: int, spec: DeviceSpec) -> float:
    """Bytes from and to memory, where some programs run at once."""
    return sum(count for count, _ in _moved(work, at_once, spec))


def _memory_seconds(work: Work, every: Sequence[Moved], spec: DeviceSpec) -> float:
    """Seconds in which memory is busy, or multiprocessors have all the requests that they can.

    `every` are the bytes that are moved, by the loads and stores that ask for them.
    Only those for cells that are not in the L2 take long.
    """
    memory, seconds = spec.memory, 0.0
    busy = spec.multiprocessors if work.staged else min(spec.multiprocessors, work.programs)
    for moved, streams in every:
        waiting = 0.0
        for stream in streams:
            request = min(_REQUEST, _LANES * stream.vector)
            rate = busy * memory.requests * request / memory.latency
            waiting = max(waiting, min(moved, work.programs * stream.bytes) / rate)
        seconds += max(moved / memory.bandwidth, waiting)
    return seconds


def _moved(work: Work, at_once: int, spec: DeviceSpec) -> Iterator[Moved]:
    """Bytes from and to memory, by the loads and stores that ask for them."""
    reads: dict[int, list[Stream]] = {}
    for stream in work.streams:
        if stream.writes:
            yield work.programs * stream.bytes, [stream]
        else:
            reads.setdefault(stream.buffer, []).append(stream)
    l2 = spec.memory.l2_bytes
    sizes = {buffer: work.buffers[buffer] for buffer in reads}
    waves, all_fit = work.programs / at_once, sum(sizes.values()) <= l2
    for buffer, streams in reads.items():
        asked = work.programs * sum(stream.bytes for stream in streams)
        once = min(asked, sizes[buffer])
        if all_fit or sizes[buffer] * _KEPT_SHARE <= l2:
            yield once, streams
        else:
            union, every = _wave_bytes(streams, at_once)
            # What leaves first takes the place of nothing that is kept.
            staying = [stream for stream in work.streams if stream.leaves != "first"]
            passing = sum(stream.bytes * stream.apart(at_once) for stream in staying)
            backward = any(stream.backward for stream in streams)
            again = (every - union) * _gone(passing * union / every, l2, backward=backward)
            yield min(asked, max(once, waves * (union + again))), streams


def _gone(passed: float, l2: float, *, backward: bool) -> float:
    """The share of what was read that is not in the L2 any more when so many bytes have passed.

    That is how many on the mean: as many for each cell, or, where the walk goes `backward`, from
    none for the first one to twice as many for the last.

    Each line that comes takes the place of one at random: of n, after m came, exp(-m / n) are left.
    So rows that are read again by their programs are best read by few programs at once. On an H100
    (`results/schedules_h100.json`) a second walk finds more where less passes, and less of much.
    """
    share = passed / l2
    if backward and share:
        return 1 - (1 - exp(-2 * share)) / (2 * share)
    return 1 - exp(-share)


def _wave_bytes(streams: Sequence[Stream], at_once: int) -> tuple[float, float]:
    """Bytes that programs of a wave read of a buffer: each cell once, and once per load."""
    sizes = [stream.apart(at_once) * stream.bytes for stream in streams]
    union: dict[int, float] = {}
    for stream, size in zip(streams, sizes, strict=True):
        start = int(stream.starts[0])
        union[start] = max(union.get(start, 0.0), size)
    return sum(union.values()), sum(sizes)
