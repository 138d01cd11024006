"""What a cubin says of its kernels, read off the ELF file that it is.

The section `.nv.info.NAME` is a list of attributes of the kernel NAME: a byte for the form, one for
the attribute, two for the size of what follows. `cuobjdump --dump-elf` prints the same.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

_SIZED, _PARAMETER, _THREADS = 4, 0x17, 0x10
"""The form with a size; EIATTR_KPARAM_INFO and EIATTR_REQNTID."""


@dataclass
class Told:
    """A kernel in its cubin: bytes of each parameter, in order, and the threads of a block."""

    parameters: list[int] = field(default_factory=list)
    threads: int = 0


def told(cubin: bytes, kernel: str) -> Told:
    """What a cubin says of one of its kernels."""
    info = _sections(cubin)[f".nv.info.{kernel}"]
    made, sizes, at = Told(), dict[int, int](), 0
    while at < len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        body = info[at + 4 : at + 4 + size] if form == _SIZED else b""
        at += 4 + len(body)
        if attribute == _PARAMETER:
            _, ordinal, _, packed = struct.unpack("<IHHI", body)
            sizes[ordinal] = packed >> 18
        elif attribute == _THREADS:
            x, y, z = struct.unpack("<III", body)
            made.threads = x * y * z
    made.parameters = [size for _, size in sorted(sizes.items())]
    return made


def _sections(elf: bytes) -> dict[str, bytes]:
    (start,) = struct.unpack_from("<Q", elf, 0x28)
    each, count, named = struct.unpack_from("<HHH", elf, 0x3A)
    # Where the name is, the type, where the section starts, its size.
    heads = [struct.unpack_from("<II16xQQ", elf, start + each * n) for n in range(count)]
    names = heads[named][2]
    found: dict[str, bytes] = {}
    for name, _, offset, size in heads:
        end = elf.index(b"\0", names + name)
        found[elf[names + name : end].decode()] = elf[offset : offset + size]
    return found
