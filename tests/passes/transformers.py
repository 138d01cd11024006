"""A small transformer in weft, of any number of equal layers: what passes do as programs grow."""

from __future__ import annotations


def _tensor(*shape: int) -> str:
    return f"!loom.tensor<{[0] * len(shape)} : {list(shape)}, f32>"


def transformer(layers: int, tokens: int = 8, width: int = 8, heads: int = 2) -> str:
    """Attention with a causal mask and a perceptron per layer, with norms and residuals."""
    state, vector, square = _tensor(tokens, width), _tensor(width), _tensor(width, width)
    wide, across = _tensor(tokens, 2 * width), _tensor(width, 2 * width)
    split, back = _tensor(heads, tokens, width // heads), _tensor(2 * width, width)
    weights = {"g": vector, "q": square, "k": square, "v": square, "o": square, "c": vector}
    weights |= {"h": vector, "u": across, "b": _tensor(2 * width), "d": back}
    arguments = [f"%x: {state}"]
    lines: list[str] = []
    x = "%x"

    def apply(name: str, call: str, ins: tuple[str, ...], out: str, more: str = "") -> str:
        lines.append(f"%{name} = weft.apply @{call} {more} : ({', '.join(ins)}) -> {out}")
        return f"%{name}"

    for n in range(layers):
        arguments += [f"%{w}{n}: {kind}" for w, kind in weights.items()]
        norm = apply(f"n{n}", f"layer_norm({x}, %g{n})", (state, vector), state)
        parts: list[str] = []
        for part in "qkv":
            made = apply(f"{part}p{n}", f"matmul({norm}, %{part}{n})", (state, square), state)
            more = f"{{heads = {heads}}}"
            parts.append(apply(f"{part}h{n}", f"split_heads({made})", (state,), split, more))
        call = f"scaled_dot_product_attention({', '.join(parts)})"
        mixed = apply(f"a{n}", call, (split,) * 3, split, "{causal = true}")
        joined = apply(f"m{n}", f"merge_heads({mixed})", (split,), state)
        given = (state, square, vector)
        joined = apply(f"p{n}", f"linear({joined}, %o{n}, %c{n})", given, state)
        x = apply(f"r{n}", f"add({x}, {joined})", (state, state), state)
        norm = apply(f"w{n}", f"rms_norm({x}, %h{n})", (state, vector), state)
        given = (state, across, _tensor(2 * width))
        hidden = apply(f"l{n}", f"linear({norm}, %u{n}, %b{n})", given, wide)
        hidden = apply(f"t{n}", f"gelu({hidden})", (wide,), wide)
        hidden = apply(f"e{n}", f"matmul({hidden}, %d{n})", (wide, back), state)
        x = apply(f"y{n}", f"add({x}, {hidden})", (state, state), state)
    body = "\n  ".join(lines)
    return (
        f"func.func @main({', '.join(arguments)}) -> {state} {{\n  {body}\n"
        f"  func.return {x} : {state}\n}}"
    )
