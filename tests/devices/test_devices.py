"""Files that describe devices: those that come with Tapestry, and what is said of wrong ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tapestry.devices import FOLDER, DeviceError, DeviceSpec, find_spec, known_specs, read_spec
from tapestry.diagnostics import UsageError
from tapestry.frontend import parse_text, run_pipeline
from tapestry.passes.triton.cost.predicting import predictions

H200 = (FOLDER / "h200.yaml").read_text()

SOFTMAX = """
!a = !loom.tensor<[0, 0] : [100, 70], f32>
!b = !loom.tensor<[0, 0] : [70, 50], f32>
!y = !loom.tensor<[0, 0] : [100, 50], f32>
func.func @main(%a: !a, %b: !b) -> !y {
  %y = weft.apply @matmul(%a, %b) : (!a, !b) -> !y
  %z = weft.apply @softmax(%y) {axis = 1 : i64} : (!y) -> !y
  func.return %z : !y
}
"""


def _read(tmp_path: Path, text: str) -> None:
    file = tmp_path / "gpu.yaml"
    file.write_text(text)
    read_spec(file)


@pytest.mark.parametrize("name", known_specs())
def test_device_that_comes_with_tapestry_is_sound(name: str) -> None:
    spec = find_spec(name)
    assert spec.name == name
    assert spec.limits.shared_per_program <= spec.limits.shared
    assert spec.memory.bandwidth < spec.memory.l2_bandwidth < spec.memory.shared_bandwidth
    assert spec.rates.special < spec.rates.f32 < spec.rates.tf32 < spec.rates.f16
    assert spec.limits.registers_per_thread * 32 <= spec.limits.registers


def test_every_figure_says_where_it_is_from() -> None:
    for name in known_specs():
        lines = (FOLDER / f"{name}.yaml").read_text().splitlines()
        figures = [line for line in lines if line[:1] == " " and line.split("#")[0].strip()]
        assert len(figures) >= 20
        for line in figures:
            source = line.partition("#")[2].split()[0].strip(":,")
            assert source in ("datasheet", "guide", "measured", "fitted", "estimated", "scaled"), (
                line
            )


def test_capability_has_a_typical_device() -> None:
    assert find_spec("sm_80").capability == 80
    assert find_spec("sm_90").capability == 90


def test_device_can_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(H200.replace("name: h200", "name: mine"))
    assert find_spec(str(file)).name == "mine"


def test_unknown_device_lists_those_that_are_known() -> None:
    with pytest.raises(UsageError, match="there is no device 'h300'") as error:
        find_spec("h300")
    assert error.value.hint is not None
    assert "a100, b200, h100, h200" in error.value.hint
    assert "sm_80, sm_86" in error.value.hint


def test_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="cannot read"):
        read_spec(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("was", "becomes", "message"),
    [
        (
            "multiprocessors: 132 ",
            "multiprocessors: 0 ",
            r"gpu.yaml:11:18: error: multiprocessors = 0: input should be greater than 0",
        ),
        ("multiprocessors: 132 ", "multiprocessor: 132 ", r"multiprocessors is missing"),
        ("  f16: ", "  fp16: ", r"rates.f16 is missing"),
        (
            "  latency: 1.0e-6 ",
            "  latency: fast ",
            r"memory.latency = fast: input should be a valid number",
        ),
        (
            "  overlap: 0.15 ",
            "  overlap: 1.5 ",
            r"coefficients.overlap = 1.5: input should be less than or equal to 1",
        ),
        ("name: h200", "name: h200\ncolour: green", r"gpu.yaml:9:1: error: a device has no colour"),
        ("name: h200", "name: [", r"gpu.yaml:\d+:\d+: error: this is not YAML"),
        ("name: h200", "name: 2020-01-01", r"error: `2020-01-01` is no string.*\n  hint: quote it"),
        ("  f32: 6.0e+13 ", "  f32: 5e-324 ", r"gpu.yaml:\d+:8: error: rates.f32 = 5e-324: input"),
        (
            "multiprocessors: 132 ",
            f"multiprocessors: 1{'0' * 400} ",
            r"multiprocessors = 10{39}\.\.\.: input should be less than or equal to 1048576",
        ),
        ("multiprocessors: 132 ", f"multiprocessors: 0x{'f' * 6000} ", r"= 0xf{38}\.\.\.: input"),
        (
            "  bandwidth: 4.3e+12 ",
            "  bandwidth: 1e-300 ",
            r"memory.bandwidth = 1e-300: input should be greater than or equal to 10{8}$",
        ),
        (
            "capability: 90",
            "capability: 75",
            r"gpu.yaml:10:13: error: capability = 75: there are kernels for 80, 86, 89, 90, 100",
        ),
        ("capability: 90", "capability: 999", r"capability = 999: there are kernels for 80"),
        (
            "  shared_reserved: 1024 ",
            "  shared_reserved: 233473 ",
            r"20:20: error: limits.shared_reserved = 233473: with .* more than shared = 233472",
        ),
        (
            "  shared_per_program: 232448 ",
            "  shared_per_program: 233473 ",
            r"19:23: error: limits.shared_per_program = 233473: .* multiprocessor has, shared = 2",
        ),
        ("  warp_products: 0.6 ", "  warp_products: 0 ", r"coefficients.warp_products = 0: input"),
        ("memory:", "memory: 3\nmore:", r"memory is no mapping from names to figures"),
    ],
)
def test_wrong_file_is_refused_at_its_place(
    tmp_path: Path, was: str, becomes: str, message: str
) -> None:
    assert was in H200
    with pytest.raises(DeviceError, match=message):
        _read(tmp_path, H200.replace(was, becomes))


def test_a_list_is_no_device(tmp_path: Path) -> None:
    said = r"gpu.yaml:1:1: error: a device file is a mapping from names to figures"
    with pytest.raises(DeviceError, match=said):
        _read(tmp_path, "- h200")


ENDS = (0, 5e-324, 1e-300, 1e-12, 1e-3, 1, 1e8, 1 << 20, 1 << 40, 1e20, 10**300)


def _changed(figures: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The figures of a device, each in turn far smaller and larger than it is."""
    for name, value in figures.items():
        if isinstance(value, dict):
            yield from ({**figures, name: inner} for inner in _changed(value))
        elif not isinstance(value, str):
            yield from ({**figures, name: end} for end in ENDS)


def test_what_is_a_device_has_predictions() -> None:
    module = parse_text(SOFTMAX)
    run_pipeline(module, "default,loom-to-triton")
    count = 0
    for figures in _changed(find_spec("h200").model_dump()):
        try:
            spec = DeviceSpec.model_validate(figures)
        except ValidationError:
            continue
        assert all(0 < one.estimate.seconds < 1e6 for one in predictions(module, spec))
        count += 1
    assert count > 50
