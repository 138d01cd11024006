"""The process that `aot.py` compiles in: reads requests from stdin, writes answers to stdout.

Both are lines of JSON; `Job.asked` says what is in a request, `answer_of` what in an answer.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import linecache
import math
import os
import re
import resource
import select
import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from tapestry.codegen.aot_processes import MARK, PATIENCE
from tapestry.codegen.overwriting import overwritten


def main() -> None:
    """Compile what stdin asks for, a line each, until it ends or has nothing to ask for long."""
    # What compilers write to stdout, also those in C, would mix with the answers.
    answering = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _import_compiler()
    # What is asked waits for its answer before more is asked: no line waits in a buffer unseen.
    while select.select([sys.stdin], [], [], PATIENCE)[0]:
        line = sys.stdin.readline()
        if not line:
            break
        request: Mapping[str, Any] = json.loads(line)
        path, kernel = request["path"], request["kernel"]
        function = vars(_loaded(path, Path(path).read_text()))[kernel["name"]]
        answer = _limited(request["seconds"], function, kernel, request["target"])
        # What was said before may be no line.
        answering.write(f"\n{MARK}{json.dumps(answer)}\n")
        answering.flush()


def _import_compiler() -> None:
    """Import what compiling takes, as nothing is asked yet; what is not there is said when it is.

    Triton's key for its own cache is of all its files, which takes as long to read as a kernel
    to compile. Nothing is ever found there: the folder is this process's own.
    """
    with contextlib.suppress(ImportError):
        for name in ("triton", "triton.compiler.code_generator", "triton.backends.compiler"):
            import_module(name)
        cache: Any = import_module("triton.runtime.cache")
        cache.triton_key = lambda: "this process"


@lru_cache(maxsize=1)
def _loaded(path: str, source: str) -> ModuleType:
    """The module in a file that holds `source`."""
    del source
    linecache.checkcache(path)  # Triton reads functions there
    spec = spec_from_file_location("kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["kernels"] = module
    spec.loader.exec_module(module)
    return module


def _limited(
    seconds: float, function: Any, kernel: Mapping[str, Any], target: int
) -> dict[str, Any]:
    """The answer for a kernel; the process ends where it works for longer, and the assembler too.

    Of what they wait for nothing is said: a machine may be busy.
    """
    spent = resource.getrusage(resource.RUSAGE_SELF)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    wanted = math.ceil(spent.ru_utime + spent.ru_stime + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (wanted if most < 0 else min(wanted, most), most))
    return answer_of(function, kernel, target)


def answer_of(function: Any, kernel: Mapping[str, Any], target: int) -> dict[str, Any]:
    """What became of a kernel on a target, or why Triton refuses it."""
    answer: dict[str, Any] = {"name": kernel["name"], "target": target}
    log = io.StringIO()
    try:
        # The assembler's messages, and Triton's own, would mix with the answer.
        with contextlib.redirect_stdout(log):
            compiled = _compile(function, kernel, target)
    except OSError:  # a disk that is full: the machine's fault, not the kernel's
        raise
    except Exception as error:  # noqa: BLE001 - whatever else Triton raises is the answer
        answer["error"] = _said(str(error)) or type(error).__name__
        return answer
    said = log.getvalue()
    return answer | {
        "overwritten": overwritten(compiled.asm["ptx"]),
        "ptx": compiled.asm["ptx"],
        "cubin": base64.b64encode(compiled.asm["cubin"]).decode(),
        "scratch": int(getattr(compiled.metadata, "global_scratch_size", 0) or 0),
        "shared": compiled.metadata.shared,
        "registers": max(_numbers(r"Used (\d+) registers", said), default=0),
        "spills": max(_numbers(r"(\d+) bytes spill stores", said), default=0),
        "warnings": [line for line in said.splitlines() if "warning" in line.lower()],
    }


def _said(text: str) -> str:
    """The line of an error that says what is wrong: the assembler's first, else the last one.

    Below a line of source there may be a mark that points into it.
    """
    lines = [line.strip() for line in text.splitlines() if any(map(str.isalpha, line))]
    assembler = next((n for n, line in enumerate(lines) if line.endswith("stderr:")), None)
    if assembler is not None and assembler + 1 < len(lines):
        said = lines[assembler + 1]
        # One that was ended says nothing: then it is how it ended.
        return lines[0] if said.startswith("Repro command") else said
    wrong = next((line for line in lines if "error:" in line), None)
    return wrong or (lines[-1] if lines else "")


def _compile(function: Any, kernel: Mapping[str, Any], target: int) -> Any:
    triton: Any = import_module("triton")
    compiler: Any = import_module("triton.compiler")
    backend: Any = import_module("triton.backends.compiler")
    signature = dict(kernel["signature"])
    blocks = dict(kernel["blocks"])
    # Allocators align buffers, and some numbers are known to be multiples; Triton specializes on it
    # when it launches, so it does here.
    aligned = set(kernel["aligned"])
    attributes = {
        (place,): [["tt.divisibility", 16]]
        for place, (name, kind) in enumerate(signature.items())
        if kind.startswith("*") or name in aligned
    }
    source = compiler.ASTSource(
        function, signature | dict.fromkeys(blocks, "constexpr"), blocks, attributes
    )
    options = {
        "num_warps": kernel["num_warps"],
        "num_stages": kernel["num_stages"],
        "enable_fp_fusion": False,
    }
    if kernel["asserts"]:
        # Integers wrap: of what Triton can check, only the program's own assertions are wanted.
        options |= {"debug": True, "sanitize_overflow": False}
    return triton.compile(source, target=backend.GPUTarget("cuda", target, 32), options=options)


def _numbers(pattern: str, text: str) -> list[int]:
    return [int(found) for found in re.findall(pattern, text)]


if __name__ == "__main__":
    main()
