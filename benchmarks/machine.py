"""The machine and the versions that a measurement belongs to, for `results/*.json`."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
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
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("tapestry", "xdsl", "numpy")},
    }
