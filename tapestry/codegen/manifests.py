"""What the folder of a compiled program says of itself: read whole, or refused in one sentence.

    manifest = read_manifest(Path("out"))       # LoadError where something is damaged or missing

Everything that is read later is there and of the right type, and no launch leaves its buffers. This
file needs nothing of Tapestry: it is part of what `tapestry compile` writes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, TypeAlias, cast

from tapestry.codegen.driver import LoadError

FORM = 2
"""The form of the folders that are read here."""

_BYTES = {
    **dict.fromkeys(("bool", "int8", "uint8", "float8_e4m3fn", "float8_e5m2"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}
"""Bytes of a cell, by the name of its type."""

_Form: TypeAlias = "type | Mapping[str, _Form] | tuple[_Form]"
"""A type, entries by name, or what all items of a list are."""

_TENSOR: _Form = {"dtype": str, "shape": (int,)}

_KERNEL: _Form = {
    **dict.fromkeys(("name", "symbol", "cubin", "sha256"), str),
    **dict.fromkeys(("target", "parameters", "num_warps", "shared"), int),
    "arguments": (str,),
}

_PLAN: _Form = {
    "arena": int,
    "buffers": ({"dtype": str, "shape": (int,), "kind": str, "bytes": int},),
    "steps": ({},),
    "returned": ({"buffer": int, "shape": (int,)},),
}

_MANIFEST: _Form = {
    "targets": (int,),
    "inputs": ({"name": str, "dtype": str, "shape": (int,)},),
    "outputs": (_TENSOR,),
    "files": {},
    "kernels": (_KERNEL,),
    "plan": _PLAN,
}

_LAUNCH: _Form = {
    "kernel": str,
    "operation": str,
    "programs": int,
    "buffers": (int,),
    "numbers": (int,),
}

_FILL: _Form = {"fill": int, "cell": str}

_HIDDEN = 8
"""More than the parameters that Triton adds to those of a kernel."""

_NAMES = {int: "a number", str: "a text"}


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a folder says of itself, whole and in the form that is read here."""
    try:
        manifest: Any = json.loads((folder / "manifest.json").read_text("utf-8"))
        version = manifest["version"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise LoadError(f"{folder} holds no compiled program: {error}") from None
    if version != FORM:
        raise LoadError(
            f"{folder} was compiled in form {version}; this loader reads form {FORM}. "
            "Compile the program again, or use the load.py of its folder"
        )
    digest = manifest.pop("sha256", None)
    if digest != digest_of(manifest):
        raise LoadError(f"{folder / 'manifest.json'} is damaged; compile the program again")
    try:
        _check_form(manifest, _MANIFEST, "the manifest")
        _check_form(manifest["files"], dict.fromkeys(manifest["files"], str), "files")
        _check_buffers(manifest)
        _check_steps(manifest)
    except ValueError as error:
        raise LoadError(f"{folder / 'manifest.json'} says what cannot be: {error}") from None
    return manifest


def digest_of(manifest: Mapping[str, Any]) -> str:
    """What a manifest's own digest must be."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _check_form(value: Any, form: _Form, where: str) -> None:
    """Raise ValueError, which names the place, where a value is not of a form."""
    if isinstance(form, Mapping):
        if not isinstance(value, dict):
            raise ValueError(f"{where} is no table of entries")
        for name, inner in form.items():
            if name not in value:
                raise ValueError(f"{where} has no {name!r}")
            _check_form(value[name], inner, f"{where}.{name}")
    elif isinstance(form, tuple):
        if not isinstance(value, list):
            raise ValueError(f"{where} is no list")
        for place, item in enumerate(cast("list[Any]", value)):
            _check_form(item, form[0], f"{where}[{place}]")
    elif type(value) is not form:
        raise ValueError(f"{where} is not {_NAMES[form]}")
    elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{where} does not fit 64 bits")


def _check_buffers(manifest: Mapping[str, Any]) -> None:
    """Raise ValueError where sizes of tensors and buffers do not agree."""
    plan = manifest["plan"]
    sizes: dict[str, list[int]] = {"input": [], "constant": [], "temporary": [], "output": []}
    for place, buffer in enumerate(plan["buffers"]):
        size, kind = _bytes_of(buffer, f"buffer {place}"), buffer["kind"]
        if size != buffer["bytes"] or kind not in sizes:
            raise ValueError(f"buffer {place} is {kind} of {buffer['bytes']} bytes, of {size}")
        sizes[kind].append(size)
        if kind == "temporary":
            _check_form(buffer, {"offset": int}, f"buffer {place}")
            offset = buffer["offset"]
            outside = offset < 0 or (size and offset + size > plan["arena"])
            if offset % 16 or outside:
                raise ValueError(f"buffer {place} is a temporary outside the arena")
        if kind == "constant":
            held = {"hex": str} if "hex" in buffer else {"file": str, "entry": str}
            _check_form(buffer, held, f"buffer {place}")
    if sizes["input"] != [_bytes_of(one, one["name"]) for one in manifest["inputs"]]:
        raise ValueError("inputs are not of the bytes of their buffers")
    if len(plan["returned"]) != len(manifest["outputs"]):
        raise ValueError(f"{len(plan['returned'])} results, of {len(manifest['outputs'])}")
    results = zip(plan["returned"], manifest["outputs"], strict=True)
    for place, (one, output) in enumerate(results):
        if not 0 <= one["buffer"] < len(plan["buffers"]):
            raise ValueError(f"result {place} is no buffer")
        held = plan["buffers"][one["buffer"]]
        shaped = _bytes_of({**held, "shape": one["shape"]}, f"result {place}")
        if not shaped == _bytes_of(output, f"result {place}") == held["bytes"]:
            raise ValueError(f"result {place} is not of the bytes of its buffer")


def _bytes_of(tensor: Mapping[str, Any], what: str) -> int:
    """The bytes of a tensor that is described."""
    if tensor["dtype"] not in _BYTES:
        raise ValueError(f"{what} has cells of {tensor['dtype']!r}")
    if any(extent < 0 for extent in tensor["shape"]):
        raise ValueError(f"{what} is of negative size")
    return prod(tensor["shape"]) * _BYTES[tensor["dtype"]]


def _check_steps(manifest: Mapping[str, Any]) -> None:
    """Raise ValueError where a step is of no buffer, or of no kernel that takes what it gives."""
    plan = manifest["plan"]
    takes = {entry["name"]: entry for entry in manifest["kernels"]}
    for place, step in enumerate(plan["steps"]):
        _check_form(step, _LAUNCH if "kernel" in step else _FILL, f"step {place}")
        touched = list(step["buffers"]) if "kernel" in step else [step["fill"]]
        if "scratch" in step:
            _check_form(step, {"scratch": int}, f"step {place}")
            touched.append(step["scratch"])
        if not all(0 <= buffer < len(plan["buffers"]) for buffer in touched):
            raise ValueError(f"step {place} is on a buffer that there is not")
        if "kernel" in step:
            if step["kernel"] not in takes:
                raise ValueError(f"step {place} runs no kernel of the manifest's")
            _check_launch(step, takes[step["kernel"]])
        elif len(bytes.fromhex(step["cell"])) not in (1, 2, 4, 8):
            raise ValueError(f"step {place} fills with a cell of no type")


def _check_launch(step: Mapping[str, Any], entry: Mapping[str, Any]) -> None:
    """Raise ValueError where a kernel cannot be launched so."""
    given = len(step["buffers"]) + len(step["numbers"])
    hidden = entry["parameters"] - given - ("scratch" in step)
    if given != len(entry["arguments"]) or not 0 <= hidden <= _HIDDEN:
        raise ValueError(f"{step['kernel']} takes {len(entry['arguments'])} arguments")
    if not 0 < step["programs"] < 1 << 31:
        raise ValueError(f"{step['kernel']} runs {step['programs']} programs")
    if not 0 < entry["num_warps"] <= 32 or entry["shared"] < 0:
        raise ValueError(f"{step['kernel']} has {entry['num_warps']} warps")
