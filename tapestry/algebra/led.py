"""Parts of a state that go with the largest of a part, or the least, seen in merges.

    merge (%p: i64, %a: f32, %q: i64, %b: f32) {      # the position p leads, and a goes with it
      %most  = arith.maxsi %p, %q : i64
      %later = arith.cmpi sge, %q, %p : i64
      %value = arith.select %later, %b, %a : f32
      loom.yield %most, %value : i64, f32
    }

So of many states the folded one is that of one of them: it need only be found which.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from tapestry.algebra.monoids import Monoid

_TAKEN: dict[int, tuple[bool, bool, bool]] = {
    2: (True, False, False),  # slt
    3: (True, True, False),  # sle
    4: (False, False, True),  # sgt
    5: (False, True, True),  # sge
}
"""By predicate of `arith.cmpi`: whether it holds of what is less, equal, and greater."""


@dataclass(frozen=True)
class Led:
    """Some parts of the folded state are those of the state whose `part` is largest, or least.

    Of several such it is the last if it is `later`, else the first. `part` is one of `parts`.
    """

    part: int
    parts: tuple[int, ...]
    largest: bool
    later: bool


@lru_cache(maxsize=256)
def find_led(monoid: Monoid) -> tuple[Led, ...]:
    """What leads the parts of a monoid; nothing unless each part leads others, or is led."""
    count = len(monoid.state)
    found: list[Led] = []
    for part, value in enumerate(monoid.merged if count > 1 else ()):
        pair = (monoid.merge.args[part], monoid.merge.args[count + part])
        owner = value.owner
        single = isinstance(owner, arith.MaxSIOp | arith.MinSIOp) and set(owner.operands) == {*pair}
        if not single or monoid.state[part] == i1:
            continue
        largest = isinstance(owner, arith.MaxSIOp)
        taken = {other: _takes_second(monoid, other, pair) for other in range(count)}
        for later in (False, True):
            wanted = (not largest, later, largest)
            led = [other for other in range(count) if taken[other] == wanted]
            if led:
                found.append(Led(part, tuple(sorted([part, *led])), largest, later))
    every = sorted(part for led in found for part in led.parts)
    return tuple(found) if every == list(range(count)) else ()


def _takes_second(
    monoid: Monoid, part: int, leaders: tuple[SSAValue, SSAValue]
) -> tuple[bool, bool, bool] | None:
    """Whether a part is the second state's where its leader is less, equal, and greater."""
    first, second = monoid.merge.args[part], monoid.merge.args[len(monoid.state) + part]
    owner = monoid.merged[part].owner
    if not isinstance(owner, arith.SelectOp) or {owner.lhs, owner.rhs} != {first, second}:
        return None
    compared = owner.cond.owner
    if not isinstance(compared, arith.CmpiOp):
        return None
    taken = _TAKEN.get(compared.predicate.value.data)
    if taken is None or {compared.lhs, compared.rhs} != {*leaders}:
        return None
    less, equal, greater = taken if compared.lhs is leaders[1] else taken[::-1]
    if owner.lhs is second:
        return less, equal, greater
    return not less, not equal, not greater
