"""What a GPU can do: the figures that the cost model of kernels is made of, a YAML file per device.

    >>> h200 = find_spec("h200")
    >>> h200.multiprocessors, h200.limits.shared_per_program // 1024
    (132, 227)
    >>> find_spec("sm_90").name
    'h100'

Each figure's source stands beside it in the file. `tapestry.codegen.calibration` measures some of
them on a GPU and writes a new file, whose path is as good a name as `h200`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tapestry.diagnostics import TapestryError, UsageError
from tapestry.metakernels.documents import Entries, read_file

Count = Annotated[int, Field(gt=0)]
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]

FOLDER: Final = Path(__file__).parent


class DeviceError(TapestryError):
    """A file that does not describe a device."""

    kind = "device"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Limits(_Model):
    """What fits on a multiprocessor, and in a program."""

    warps: Count
    programs: Count
    registers: Count
    registers_per_thread: Count
    shared: Count
    """Bytes of a multiprocessor, of which each program takes `shared_reserved` besides its own."""
    shared_per_program: Count
    shared_reserved: int = Field(ge=0)


class Memory(_Model):
    """Bytes per second, seconds and bytes of the levels of memory."""

    bandwidth: Amount
    latency: Amount
    requests: Count
    """How many loads and stores of a warp a multiprocessor waits for at once, of 128 bytes."""
    l2_bytes: Count
    l2_bandwidth: Amount
    shared_bandwidth: Amount
    """Of all multiprocessors together."""


class Rates(_Model):
    """Operations per second; a product is two. `special` are exponentials, roots, quotients."""

    f8: Amount | None = None
    f16: Amount
    bf16: Amount
    tf32: Amount
    f32: Amount
    f64: Amount
    special: Amount


class Coefficients(_Model):
    """What the model takes from measurements rather than from the hardware's description."""

    launch: Amount
    """Seconds from one kernel to the next in a stream."""
    step: Amount
    """Seconds that a step of a loop waits for its barriers, apart from memory."""
    copied_row: Amount
    """Seconds that products wait for a row that their warps copy besides others."""
    descriptor: Amount
    """Seconds that a program takes to describe a tensor to the hardware that moves its blocks."""
    warp_products: Share
    """Of the rate of tensor cores, what products by warps reach beside those by warpgroups."""
    scalar_products: Share
    """Of the rate of arithmetic, what products without tensor cores reach."""
    overlap: Share
    """How much of the lesser works of a multiprocessor hides behind its largest, where one program
    runs on it alone."""
    hidden: Share
    """How much of the lesser of memory and multiprocessors hides behind the other."""


class DeviceSpec(_Model):
    """A device. `capability` is 90 for sm_90."""

    name: Annotated[str, Field(min_length=1)]
    title: str
    capability: Count
    multiprocessors: Count
    limits: Limits
    memory: Memory
    rates: Rates
    coefficients: Coefficients

    @property
    def has_bfloat16(self) -> bool:
        """Whether tensor cores multiply bfloat16."""
        return self.capability >= 80

    @property
    def has_warpgroups(self) -> bool:
        """Whether matrices are multiplied by warpgroups, from shared memory."""
        return self.capability // 10 in (9, 10)


def read_spec(path: Path) -> DeviceSpec:
    """The device that a file describes; DeviceError where it does not, at the wrong place."""
    try:
        document = read_file(path)
    except TapestryError as error:
        raise DeviceError(error.message, location=error.location) from None
    return spec_of(document)


def spec_of(document: Entries) -> DeviceSpec:
    """The device that a document describes."""
    try:
        return DeviceSpec.model_validate(document.plain())
    except ValidationError as error:
        raise _problem(document, error.errors()[0]) from None


def _problem(document: Entries, problem: Any) -> DeviceError:
    """The error at the place in the document that it is about."""
    path = tuple(problem["loc"])
    name, node = ".".join(map(str, path)), document.at(*path)
    match problem["type"]:
        case "missing":
            return DeviceError(f"{name} is missing", location=node.location)
        case "extra_forbidden":
            parent = document.at(*path[:-1])
            key = parent.key(str(path[-1])) if isinstance(parent, Entries) else None
            place = (key or node).location
            return DeviceError(f"a device has no {name}", location=place)
        case _:
            given = problem["input"]
            message = f"{name} = {given}: {problem['msg'][:1].lower()}{problem['msg'][1:]}"
            return DeviceError(message, location=node.location)


def known_specs() -> tuple[str, ...]:
    """The devices that come with Tapestry."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


TYPICAL: Final = {80: "a100", 86: "a10", 89: "l40s", 90: "h100", 100: "b200", 120: "rtx5090"}
"""The device that stands for a compute capability where only that is known."""


def typical(capability: int) -> str | None:
    """The device that stands for a compute capability, or for the next lower one of its generation.

    >>> typical(90), typical(87), typical(121), typical(75)
    ('h100', 'a10', 'rtx5090', None)
    """
    generation = [one for one in TYPICAL if one // 10 == capability // 10 and one <= capability]
    return TYPICAL[max(generation)] if generation else None


def name_of(title: str, capability: int) -> str | None:
    """The device that a driver gives a name and a compute capability; None where none is like it.

    >>> name_of("NVIDIA H200", 90), name_of("NVIDIA H800", 90), name_of("NVIDIA T4", 75)
    ('h200', 'h100', None)
    """
    words = title.lower().replace("-", " ").split()
    return next((one for one in known_specs() if one in words), typical(capability))


@lru_cache(maxsize=32)
def find_spec(name: str) -> DeviceSpec:
    """A device by its name, by `sm_90`, or by the path of a file."""
    if name.endswith((".yaml", ".yml")):
        return read_spec(Path(name))
    target = re.fullmatch(r"sm_(\d+)", name)
    stem = typical(int(target[1])) if target else name
    if stem not in known_specs():
        targets = [f"sm_{capability}" for capability in sorted(TYPICAL)]
        raise UsageError(
            f"there is no device {name!r}",
            hint=f"one of {', '.join((*known_specs(), *targets))}, or a YAML file",
        )
    return read_spec(FOLDER / f"{stem}.yaml")
