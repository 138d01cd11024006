"""A device's figures by measurement: `tapestry calibrate -o mine.yaml --base h200`, on a GPU.

    measured = calibrate(find_spec("h200"), stopwatch)      # a DeviceSpec
    write_spec(Path("mine.yaml"), *measured)

A *probe* is work of known size; a stopwatch says how long it takes. Rates follow from two sizes, so
that what every launch costs does not count. What no probe measures stays as it is in the base.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from pydantic import BaseModel

from tapestry.devices import DeviceError, DeviceSpec
from tapestry.files import whole_file

GIB: Final = 1 << 30
_REACHED: Final = 0.8
"""Of the rate of tensor cores, what large products of cuBLAS reach: they read shared memory, too.

So much of the datasheet's is measured on an H100 and an H200; the cost model counts both.
"""
_CHAIN: Final = 32
"""Exponentials one after another, of each cell of a probe."""


@dataclass(frozen=True)
class Probe:
    """Work of known size.

    `copy` moves `size` bytes within memory, again and again the same ones; `product` multiplies
    square matrices of a `dtype` of that side; `exponentials` applies 32 of them to each of `size`
    cells; `nothing` is a launch.
    """

    kind: Literal["copy", "product", "exponentials", "nothing"]
    size: int = 1
    dtype: str = "f32"


class Stopwatch(Protocol):
    """Says what a probe takes, in seconds, among others like it."""

    def __call__(self, probe: Probe) -> float: ...


def calibrate(base: DeviceSpec, stopwatch: Stopwatch) -> tuple[DeviceSpec, frozenset[str]]:
    """The device with what a stopwatch measures, and which figures those are."""
    copied = _slope(stopwatch, Probe("copy", 4 * GIB), Probe("copy", 2 * GIB), 2 * 2 * GIB)
    resident = base.memory.l2_bytes // 8
    inside = 0.0
    # Megabytes are copied in little more than what a launch takes, which may hide the difference.
    with suppress(DeviceError):
        inside = _slope(stopwatch, Probe("copy", resident), Probe("copy", resident // 2), resident)
    rates = {
        name: 2 * side**3 / stopwatch(Probe("product", side, name)) / reached
        for name, side, reached in (
            ("f16", 8192, _REACHED),
            ("bf16", 8192, _REACHED),
            ("tf32", 8192, _REACHED),
            ("f32", 4096, 1.0),
            ("f64", 4096, 1.0),
        )
    }
    cells = 1 << 24
    special = _slope(
        stopwatch,
        Probe("exponentials", 2 * cells),
        Probe("exponentials", cells),
        _CHAIN * cells,
    )
    found: dict[str, dict[str, float]] = {
        "memory": {"bandwidth": copied} | ({"l2_bandwidth": inside} if inside > copied else {}),
        "rates": {**rates, "special": special},
        "coefficients": {"launch": stopwatch(Probe("nothing"))},
    }
    parts: dict[str, BaseModel] = {
        "memory": base.memory.model_copy(update=found["memory"]),
        "rates": base.rates.model_copy(update=found["rates"]),
        "coefficients": base.coefficients.model_copy(update=found["coefficients"]),
    }
    names = {f"{part}.{name}" for part, values in found.items() for name in values}
    return base.model_copy(update=parts), frozenset(names)


def _slope(stopwatch: Stopwatch, more: Probe, less: Probe, amount: float) -> float:
    """What is done per second: of the difference of two probes."""
    seconds = stopwatch(more) - stopwatch(less)
    if seconds <= 0:
        raise DeviceError(
            f"{more.kind} of {more.size} takes no longer than of {less.size}: nothing is measured",
            hint="is something else running on this GPU?",
        )
    return amount / seconds


def write_spec(
    path: Path,
    spec: DeviceSpec,
    measured: frozenset[str],
    base: str,
    fitted: frozenset[str] = frozenset(),
) -> None:
    """Write a device's file: each figure says whether it was measured, fitted or is the base's."""
    lines = [f"# {spec.title}, calibrated by Tapestry; other figures are those of {base}."]
    sources = dict.fromkeys(measured, "measured") | dict.fromkeys(fitted, "fitted")
    lines += _lines(spec, "", sources, base)
    with whole_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n")


def _lines(model: BaseModel, above: str, sources: Mapping[str, str], base: str) -> list[str]:
    found: list[str] = []
    indent = "  " if above else ""
    for name in type(model).model_fields:
        value: object = getattr(model, name)
        if isinstance(value, BaseModel):
            found += [f"{name}:", *_lines(value, f"{name}.", sources, base)]
        elif value is not None:
            # YAML takes a number without a point, or an exponent without a sign, for text.
            shown = f"{value:.4e}" if isinstance(value, float) else str(value)
            source = sources.get(f"{above}{name}", base)
            found.append(f"{indent}{name}: {shown:<28}# {source}")
    return found


@dataclass(frozen=True)
class CudaStopwatch:
    """Probes on the GPU that PyTorch uses."""

    torch: Any

    def __call__(self, probe: Probe) -> float:
        """The seconds of a probe where many follow each other."""
        from tapestry.tuning.cuda import sustained_seconds

        torch = self.torch
        match probe.kind:
            case "copy":
                source = torch.empty(probe.size, dtype=torch.uint8, device="cuda")
                target = torch.empty_like(source)
                return sustained_seconds(torch, [lambda: target.copy_(source)])
            case "product":
                return self._product(probe)
            case "exponentials":
                return self._exponentials(probe)
            case "nothing":
                one = torch.zeros(1, device="cuda")
                return sustained_seconds(torch, [lambda: one.add_(1)])

    def _product(self, probe: Probe) -> float:
        from tapestry.tuning.cuda import sustained_seconds

        torch = self.torch
        kinds: Mapping[str, Any] = {
            "f16": torch.float16,
            "bf16": torch.bfloat16,
            "f64": torch.float64,
        }
        kind = kinds.get(probe.dtype, torch.float32)
        a, b = (
            torch.randn(probe.size, probe.size, device="cuda", dtype=torch.float32).to(kind)
            for _ in range(2)
        )
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = probe.dtype == "tf32"
        try:
            return sustained_seconds(torch, [lambda: a @ b])
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before

    def _exponentials(self, probe: Probe) -> float:
        import tapestry
        from tapestry.passes.triton.loom_to_triton import LoomToTriton
        from tapestry.tuning.cuda import CudaBench

        x = tapestry.input("x", (probe.size,), "float32")
        for _ in range(_CHAIN):
            x = tapestry.exp(-x)
        module = tapestry.compile(x, on="triton").lowered
        return CudaBench(self.torch, LoomToTriton()).build(module).seconds()
