"""Registers that a product still reads when they are written again, in PTX: a race.

    overwritten(ptx)                    # (): none; ("%r164", ...) are registers of the first one

A warpgroup multiplies while its threads go on (`wgmma`). A left factor that was computed is in
registers, which must stay until a `wgmma.wait_group` says that the product is done. Triton before
3.8 lets products of a step be under way while the next step computes its factors: whether these go
to the same registers before the wait depends on how instructions are ordered in the end, so it is
looked for there. On an H200 such a kernel gave other numbers at each call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_PRODUCT = re.compile(r"\bwgmma\.mma_async\S*\s+\{[^}]*\},\s*\{([^}]*)\}")
"""One whose left factor is in registers; those of the right one are in shared memory."""

_WAIT = re.compile(r"\bwgmma\.wait_group\S*\s+(\d+)")
_COMMIT = re.compile(r"\bwgmma\.commit_group\b")
_LABEL = re.compile(r"\s*(\$\w+):")
_BRANCH = re.compile(r"\bbra(?:\.uni)?\s+(\$\w+)")
_WRITE = re.compile(r"\s*(?:@!?%p\d+\s+)?([a-z][\w.:]*)\s+(\{[^}]*\}|%\w+(?:\|%\w+)?)\s*,")
_REGISTER = re.compile(r"%\w+")

_READING = ("st.", "red.", "wgmma.", "cp.", "mbarrier.", "prefetch")
"""What begins the names of instructions whose first operand is no register that they write."""


def overwritten(ptx: str) -> tuple[str, ...]:
    """The registers of a product in a loop that are written while it may read them.

    Those of the first product that is found; none where every product is done before.
    """
    lines = ptx.splitlines()
    for body in _loops(lines):
        for place, line in enumerate(body):
            if (product := _PRODUCT.search(line)) is not None:
                registers = _REGISTER.findall(product[1])
                if not _is_done(body, place, registers):
                    return tuple(registers)
    return ()


def _loops(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    """The lines between a label and each branch back to it, of loops with such products."""
    labels = {found[1]: place for place, line in enumerate(lines) if (found := _LABEL.match(line))}
    for place, line in enumerate(lines):
        branch = _BRANCH.search(line)
        start = None if branch is None else labels.get(branch[1])
        if start is not None and start < place:
            body = lines[start : place + 1]
            if any(map(_PRODUCT.search, body)):
                yield body


def _is_done(body: Sequence[str], place: int, registers: Sequence[str]) -> bool:
    """Whether the product of a line is waited for before its registers are written again.

    Groups are done in order: a wait for all but `n` has those that `n` others came after.
    """
    groups = 0
    for line in (*body[place + 1 :], *body):
        if _COMMIT.search(line) is not None:
            groups += 1
        elif (wait := _WAIT.search(line)) is not None:
            if groups > int(wait[1]):
                return True
        elif not set(registers).isdisjoint(_written(line)):
            return False
    return True  # They are written before the loop.


def _written(line: str) -> Sequence[str]:
    """The registers that an instruction writes."""
    found = _WRITE.match(line)
    if found is None or found[1].startswith(_READING):
        return ()
    return _REGISTER.findall(found[2])
