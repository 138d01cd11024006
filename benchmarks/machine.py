"""The machine and the versions that a measurement belongs to, for `results/*.json`.

`load` is how many processes wanted a core, on average over the last minute, when it was taken down:
where that is more than there are cores, seconds of wall-clock say little, and those of processors
are longer than they would be.
"""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def machine() -> dict[str, object]:
    """The date, processor, system and versions of this run."""
    cpuinfo = Path("/proc/cpuinfo")
    names = [
        line.split(":", 1)[1].strip()
        for line in (cpuinfo.read_text().splitlines() if cpuinfo.exists() else [])
        if line.startswith("model name")
    ]
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: installed(name) for name in ("tapestry", "xdsl", "numpy")},
    }


def installed(name: str) -> str:
    """The version of a package; Tapestry may run from its folder without being installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
