"""What Triton's own launcher asks of the driver, for printed modules: a list of launches, as JSON.

    python -m tests.pretending.launching FOLDER kernels_1.py kernels_2.py ...

The driver is the pretended one in FOLDER and runs nothing; tensors are of the CPU, as the printed
`launch` allocates them here. Kernels are compiled by Triton in this process, as `kernel[grid](...)`
does, so nothing of Tapestry's is between a kernel and the driver.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from tests.pretending.driver import PretendDriver


def main(folder: Path, *modules: str) -> None:
    """Launch each module on tensors of ones, as many and of the shapes that its `GIVEN` says."""
    driver = PretendDriver.built(folder)
    driver.reads_only = True
    driver.make_current(0)
    ctypes.CDLL(str(driver.path), ctypes.RTLD_GLOBAL)  # what is opened as libcuda.so.1 from now on
    os.environ["TRITON_LIBCUDA_PATH"] = str(folder)
    sys.setdlopenflags(os.RTLD_LAZY)  # functions that a launch does not call are not there
    cuda: Any = torch.cuda
    own: Any = torch._C
    cuda.is_available, cuda.current_device = lambda: True, lambda: 0
    cuda.get_device_capability = lambda _=None: (9, 0)
    own._cuda_getCurrentRawStream = lambda _: 0
    for path in modules:
        spec = importlib.util.spec_from_file_location(Path(path).stem, path)
        assert spec is not None
        assert spec.loader is not None
        module: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        given = json.loads(Path(path).with_suffix(".json").read_text())
        tensors = [torch.ones(shape, dtype=getattr(torch, dtype)) for shape, dtype in given]
        module.reserve = lambda size, _alignment, _stream: torch.empty(size, dtype=torch.int8)
        module.launch(*tensors, allocate=allocated)
    assert driver.problems == [], driver.problems
    print(json.dumps([asdict(one) for one in driver.launches]))


def allocated(shape: tuple[int, ...], dtype: str, fill: float | None = None) -> torch.Tensor:
    """A tensor of the CPU."""
    made = torch.empty(shape, dtype=getattr(torch, dtype))
    return made if fill is None else made.fill_(fill)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
