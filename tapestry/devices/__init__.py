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

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from tapestry.diagnostics import TapestryError, UsageError
from tapestry.metakernels.documents import Entries, Leaf, read_file

# Bounds are far from what any GPU has: beyond them, a figure is a slip, and estimates overflow.
Count = Annotated[int, Field(gt=0, le=1 << 20)]
Bytes = Annotated[int, Field(gt=0, le=1 << 40)]
Speed = Annotated[float, Field(ge=1e8, le=1e20, allow_inf_nan=False)]
"""Bytes or operations per second."""
Seconds = Annotated[float, Field(ge=1e-12, le=1, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Reached = Annotated[float, Field(ge=1e-3, le=1)]
"""A share of a rate, which nothing would be done at if it were 0."""

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
    shared: Bytes
    """Bytes of a multiprocessor, of which each program takes `shared_reserved` besides its own."""
    shared_per_program: Bytes
    shared_reserved: int = Field(ge=0)

    @field_validator("shared_per_program")
    @classmethod
    def _fits_whole(cls, value: int, info: ValidationInfo) -> int:
        whole: int | None = info.data.get("shared")
        if whole is not None and value > whole:
            raise PydanticCustomError(
                "shared",
                "a program has at most what a multiprocessor has, shared = {whole}",
                {"whole": whole},
            )
        return value

    @field_validator("shared_reserved")
    @classmethod
    def _fits_beside(cls, value: int, info: ValidationInfo) -> int:
        whole, own = info.data.get("shared"), info.data.get("shared_per_program")
        if whole is not None and own is not None and own + value > whole:
            raise PydanticCustomError(
                "shared",
                "with shared_per_program = {own} that is more than shared = {whole}",
                {"own": own, "whole": whole},
            )
        return value


class Memory(_Model):
    """Bytes per second, seconds and bytes of the levels of memory."""

    bandwidth: Speed
    latency: Seconds
    requests: Count
    """How many loads and stores of a warp a multiprocessor waits for at once, of 128 bytes."""
    l2_bytes: Bytes
    l2_bandwidth: Speed
    shared_bandwidth: Speed
    """Of all multiprocessors together."""


class Rates(_Model):
    """Operations per second; a product is two. `special` are exponentials, roots, quotients."""

    i8: Speed | None = None
    f8: Speed | None = None
    f16: Speed
    bf16: Speed
    tf32: Speed
    f32: Speed
    f64: Speed
    special: Speed


class Coefficients(_Model):
    """What the model takes from measurements rather than from the hardware's description."""

    launch: Seconds
    """Seconds from one kernel to the next in a stream."""
    step: Seconds
    """Seconds that a step of a loop waits for its barriers, apart from memory."""
    copied_row: Seconds
    """Seconds that products wait for a row that their warps copy besides others."""
    descriptor: Seconds
    """Seconds that a program takes to describe a tensor to the hardware that moves its blocks."""
    warp_products: Reached
    """Of the rate of tensor cores, what products by warps reach beside those by warpgroups."""
    scalar_products: Reached
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
    capability: int
    multiprocessors: Count
    limits: Limits
    memory: Memory
    rates: Rates
    coefficients: Coefficients

    @field_validator("capability")
    @classmethod
    def _is_compiled_for(cls, value: int) -> int:
        if typical(value) is None:
            raise PydanticCustomError(
                "capability",
                "there are kernels for {known}, and for what is newer of these generations",
                {"known": ", ".join(map(str, sorted(TYPICAL)))},
            )
        return value

    @property
    def has_bfloat16(self) -> bool:
        """Whether tensor cores multiply bfloat16."""
        return self.capability >= 80

    @property
    def has_float64(self) -> bool:
        """Whether tensor cores multiply float64: those of data centers do."""
        return self.capability in (80, 90, 100)

    @property
    def has_warpgroups(self) -> bool:
        """Whether matrices are multiplied by warpgroups, from shared memory."""
        return self.capability // 10 in (9, 10)


def read_spec(path: Path) -> DeviceSpec:
    """The device that a file describes; DeviceError where it does not, at the wrong place."""
    try:
        document = read_file(path, "a device file is a mapping from names to figures")
    except TapestryError as error:
        raise DeviceError(error.message, location=error.location, hint=error.hint) from None
    return spec_of(document)


def spec_of(document: Entries) -> DeviceSpec:
    """The device that a document describes."""
    try:
        return DeviceSpec.model_validate(document.plain())
    except ValidationError as error:
        raise _problem(document, error.errors()[0]) from None


_SHOWN: Final = 40
"""How many characters of a wrong figure are shown."""


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
        case "model_type":
            message = f"{name} is no mapping from names to figures"
            return DeviceError(message, location=node.location)
        case _:
            given = node.text if isinstance(node, Leaf) else str(problem["input"])
            if len(given) > _SHOWN:
                given = f"{given[:_SHOWN]}..."
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
