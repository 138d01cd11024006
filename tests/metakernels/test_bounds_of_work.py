"""No template makes reading or applying it run away: each ends in an error, and soon."""

from __future__ import annotations

from itertools import pairwise
from time import process_time

import pytest

from tapestry.metakernels import TensorSpec, WeftError, expand, load_library
from tapestry.metakernels.documents import MAX_BYTES

SECONDS = 10.0


def composites(levels: int, width: int) -> str:
    """Templates of `width` steps each, one in the other."""
    lines: list[str] = []
    for level in range(levels):
        name = "t" if level == levels - 1 else f"l{level}"
        op = "exp" if level == 0 else f"l{level - 1}"
        steps = ["x", *(f"s{n}" for n in range(width))]
        inner = ", ".join(f"{b}: {{op: {op}, x: {a}}}" for a, b in pairwise(steps))
        lines.append(f'{name}: {{inputs: {{x: {{shape: "[$d...]"}}}}, steps: {{{inner}}}}}')
    return "\n".join(lines) + "\n"


def template(body: str, inputs: str = 'x: {shape: "[$n]"}') -> str:
    return f"t:\n  inputs: {{{inputs}}}\n" + "".join(f"  {line}\n" for line in body.split("\n"))


BOMB = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}' if n else 'x'] * 9)}]\n" for n in range(12))

EACH_OTHER = """\
t: {inputs: {x: {shape: "[$n]"}}, steps: {a: {op: u, x: x}, b: {op: u, x: a}}}
u: {inputs: {x: {shape: "[$n]"}}, steps: {a: {op: t, x: x}, b: {op: t, x: a}}}
"""

CASES = {
    "an alias bomb": (BOMB, "invalid_template"),
    "deep lists": ("t: " + "[" * 100_000, "limit"),
    "deep mappings": ("t: " + "{a: " * 20_000 + "1" + "}" * 20_000, "limit"),
    "lists as deep as some libyaml reads": ("t: " + "[" * 2000 + "]" * 2000, "limit"),
    "deep sequences": ("t: \n  " + "- " * 50_000 + "1", "limit"),
    "deep but well formed": ("t: " + "[" * 60 + "]" * 60, "limit"),
    "a large file": ("#" * (MAX_BYTES + 1), "limit"),
    "a long list": (template('index: "[$n, 1...{10 ^ 9}]"\nwrap: "x"'), "limit"),
    "a long iota": (template('let: {m: "sum(iota(10 ^ 9))"}\nindex: "[$n]"\nwrap: "x"'), "limit"),
    "a large power": (template('let: {m: "9 ^ 9 ^ 9"}\nindex: "[$n]"\nwrap: "x"'), "limit"),
    "a tall power": (template('let: {m: "2 ^ (2 ^ 60)"}\nindex: "[$n]"\nwrap: "x"'), "limit"),
    "many dimensions": (template('index: "[$n, 1...{4000}]"\nwrap: "x"'), "limit"),
    "a deep expression": (template(f'index: "[$n]"\nwrap: "{"-(" * 600}x{")" * 600}"'), "limit"),
    "a deep size": (template(f'index: "[{"(" * 900}$n{")" * 900}]"\nwrap: "y"'), "unknown_name"),
    "a long expression": (template(f'index: "[$n]"\nwrap: "x{" + x" * 5000}"'), "limit"),
    "a family of 10^9": (
        template('for: "$k in 10 ^ 9"\nindex: "[$n]"\nwrap: "x"'),
        "limit",
    ),
    "a list of 10^9 outputs": (
        template('index: "[$n]"\nwrap: "x"\noutputs: {r: {each: $i, count: "10 ^ 9"}}'),
        "limit",
    ),
    "itself": (template("steps: {a: {op: t, x: x}, b: {op: t, x: a}}"), "limit"),
    "each other": (EACH_OTHER, "limit"),
    "steps of steps of steps": (composites(12, 8), "limit"),
    "a tower of composites": (composites(18, 1), "limit"),
}


@pytest.mark.parametrize("name", CASES)
def test_it_ends_soon(name: str, tmp_path_factory: pytest.TempPathFactory):
    text, kind = CASES[name]
    load_library().get("exp")
    start = process_time()
    with pytest.raises(WeftError) as caught:
        if len(text) > MAX_BYTES:
            folder = tmp_path_factory.mktemp("large")
            (folder / "t.yaml").write_text(text)
            load_library([folder])
        library = load_library().with_text(text, "t.yaml")
        expand(library.get("t"), [TensorSpec((4,), "f32")], {}, library)
    assert caught.value.kind == kind, caught.value
    assert process_time() - start < SECONDS


def test_what_is_within_the_bounds_is_applied():
    library = load_library().with_text(composites(4, 8))
    found = expand(library.get("t"), [TensorSpec((4,), "f32")], {}, library)
    assert found.outputs[0].spec.shape == (4,)
