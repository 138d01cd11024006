"""How `lit lit_tests` runs the textual tests: `RUN: tapestry-opt %s -p PASS | filecheck %s`.

`tapestry-opt`, `tapestry` and `filecheck` are those of the environment that `lit` itself runs in:
it need not be activated. They are imported once (`tests/forked.py`). `.mlir` files are the tests.
Cases of one pass share a file, parted by `// -----` and run with `--split-input-file`: one start of
the tool for all of them.
"""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import lit.formats
import lit.TestRunner

config.name = "tapestry"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = str(Path(__file__).parent)

_scripts = str(Path(sys.executable).parent)
config.environment["PATH"] = os.pathsep.join((_scripts, os.environ.get("PATH", "")))
for _name in ("TRITON_CACHE_DIR", "TMPDIR", "HOME", "PYTHONPATH"):
    if _name in os.environ:
        config.environment[_name] = os.environ[_name]

sys.path.insert(0, str(Path(__file__).parents[1]))
lit.TestRunner.subprocess = importlib.import_module("tests.forked").loaded(subprocess)
