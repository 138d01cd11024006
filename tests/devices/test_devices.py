"""Files that describe devices: those that come with Tapestry, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tapestry.devices import FOLDER, DeviceError, find_spec, known_specs, read_spec
from tapestry.diagnostics import UsageError

H200 = (FOLDER / "h200.yaml").read_text()


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
            "  latency: 8.8e-7 ",
            "  latency: fast ",
            r"memory.latency = fast: input should be a valid number",
        ),
        (
            "  overlap: 0.0 ",
            "  overlap: 1.5 ",
            r"coefficients.overlap = 1.5: input should be less than or equal to 1",
        ),
        ("name: h200", "name: h200\ncolour: green", r"gpu.yaml:9:1: error: a device has no colour"),
        ("name: h200", "name: [", r"gpu.yaml:\d+:\d+: error: this is not YAML"),
    ],
)
def test_wrong_file_is_refused_at_its_place(
    tmp_path: Path, was: str, becomes: str, message: str
) -> None:
    assert was in H200
    with pytest.raises(DeviceError, match=message):
        _read(tmp_path, H200.replace(was, becomes))
