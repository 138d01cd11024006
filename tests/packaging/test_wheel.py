"""What a wheel holds: real files of every package, the data they read, and nothing else."""

import email
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest

import tapestry

ROOT = Path(__file__).parents[2]
SOURCES = ("tapestry", "dialects", "passes", "tools")
DATA = (".py", ".yaml", ".lark", ".typed", "_tables.json")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy so that nothing is left in the checkout."""
    source = tmp_path_factory.mktemp("source")
    ignore = shutil.ignore_patterns("__pycache__")
    for folder in SOURCES:
        shutil.copytree(ROOT / folder, source / folder, symlinks=True, ignore=ignore)
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, source / file)
    built = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    subprocess.run([*command, built, source], check=True, timeout=300)
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as file:
        assert not any(info.external_attr >> 16 & 0o170000 == 0o120000 for info in file.filelist)
        return file.namelist()


def test_adds_only_tapestry_to_site_packages(names: list[str]):
    tops = {PurePosixPath(name).parts[0] for name in names}
    (info,) = (top for top in tops if top.endswith(".dist-info"))
    assert tops == {"tapestry", info}


def test_holds_every_file_the_package_reads(names: list[str]):
    expected: set[str] = set()
    for folder, _, files in os.walk(ROOT / "tapestry", followlinks=True):
        inside = Path(folder).relative_to(ROOT)
        expected |= {str(inside / file) for file in files if file.endswith(DATA)}
    held = {name for name in names if name.startswith("tapestry/")}
    assert held == expected
    for module in ("dialects/loom.py", "passes/weft/apply.py", "tools/opt.py", "py.typed"):
        assert f"tapestry/{module}" in held


def test_says_what_it_offers(wheel: Path, names: list[str]):
    (points,) = (name for name in names if name.endswith("entry_points.txt"))
    with zipfile.ZipFile(wheel) as file:
        text = file.read(points).decode()
    for line in (
        "tapestry = tapestry.tools.tapestry:main",
        "tapestry-opt = tapestry.tools.opt:main",
        "[xdsl.universe]\ntapestry = tapestry.universe:TAPESTRY_UNIVERSE",
    ):
        assert line in text
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_has_the_version_and_the_extras_of_the_project(wheel: Path, names: list[str]):
    (said,) = (name for name in names if name.endswith("METADATA"))
    with zipfile.ZipFile(wheel) as file:
        metadata = email.message_from_bytes(file.read(said))
    assert metadata["Version"] == tapestry.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert set(metadata.get_all("Provides-Extra")) == {"torch", "jax", "test", "all"}
    for extra in ("torch", "jax"):
        needed = [one for one in metadata.get_all("Requires-Dist") if one.startswith(extra)]
        assert len(needed) == 1, extra
        assert f"extra == '{extra}'" in needed[0].replace('"', "'")
