"""Figures of a device from a stopwatch that is made up: what is measured is what is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tapestry.devices import DeviceError, DeviceSpec, find_spec, read_spec
from tapestry.tools import tapestry
from tapestry.tuning.calibration import Probe, calibrate, write_spec

A100, H200 = find_spec("a100"), find_spec("h200")


def stopwatch_of(spec: DeviceSpec, *, overhead: float = 5e-6) -> object:
    """What probes take on a device that is as its file says; a launch costs more on top."""

    def seconds(probe: Probe) -> float:
        match probe.kind:
            case "copy":
                inside = probe.size <= spec.memory.l2_bytes // 4
                rate = spec.memory.l2_bandwidth if inside else spec.memory.bandwidth
                return overhead + 2 * probe.size / rate
            case "product":
                reached = 0.8 if probe.dtype in ("f16", "bf16", "tf32") else 1.0
                return 2 * probe.size**3 / (reached * float(getattr(spec.rates, probe.dtype)))
            case "exponentials":
                return overhead + 32 * probe.size / spec.rates.special
            case "nothing":
                return spec.coefficients.launch

    return seconds


def test_a_device_is_found_again_from_another_one() -> None:
    found, measured = calibrate(A100, stopwatch_of(H200))  # type: ignore[arg-type]
    assert found.memory.bandwidth == pytest.approx(H200.memory.bandwidth)
    assert found.memory.l2_bandwidth == pytest.approx(H200.memory.l2_bandwidth)
    for name in ("f16", "bf16", "tf32", "f32", "f64", "special"):
        assert getattr(found.rates, name) == pytest.approx(getattr(H200.rates, name))
    assert found.coefficients.launch == H200.coefficients.launch
    assert len(measured) == 9
    # What no probe measures stays.
    assert found.limits == A100.limits
    assert found.memory.latency == A100.memory.latency


def test_an_l2_whose_rate_does_not_show_is_left() -> None:
    """Copies of some megabytes take what a launch takes, or as long per byte as large ones."""
    usual = stopwatch_of(H200)
    for little in (0.0, 2 / H200.memory.bandwidth):

        def seconds(probe: Probe, little: float = little) -> float:
            inside = probe.kind == "copy" and probe.size < 1 << 25
            return 5e-6 + little * probe.size if inside else usual(probe)  # type: ignore[operator]

        found, measured = calibrate(A100, seconds)
        assert "memory.l2_bandwidth" not in measured
        assert found.memory.l2_bandwidth == A100.memory.l2_bandwidth
        assert found.memory.bandwidth == pytest.approx(H200.memory.bandwidth)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    found, measured = calibrate(H200, stopwatch_of(A100))  # type: ignore[arg-type]
    path = tmp_path / "mine.yaml"
    write_spec(path, found, measured, "h200")
    again = read_spec(path)
    assert again.rates.f16 == pytest.approx(A100.rates.f16, rel=1e-3)
    assert again.limits == H200.limits
    text = path.read_text()
    assert text.count("# measured") == len(measured)
    assert find_spec(str(path)) == again


def test_times_that_do_not_grow_measure_nothing() -> None:
    with pytest.raises(DeviceError, match="copy of 4294967296 takes no longer"):
        calibrate(H200, lambda _: 1e-3)


def test_without_a_gpu_the_command_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with pytest.raises(SystemExit) as exit_:
        tapestry.main(["calibrate", "-o", str(tmp_path / "mine.yaml")])
    assert exit_.value.code == 2
    assert "there is no GPU to measure on" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
