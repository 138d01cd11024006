"""The correct programs that `mutations.py` makes mistakes in, in weft and loom."""


def tensor(*shape: int) -> str:
    return f"!loom.tensor<{[0] * len(shape)} : {list(shape)}, f64>"


def program(
    inputs: dict[str, tuple[int, ...]], *lines: tuple[str, str, str, tuple[int, ...]]
) -> str:
    """A weft program: lines are (kernel, operands, parameters, shape), named v0, v1, ..."""
    shapes = dict(inputs)
    text: list[str] = []
    for number, (kernel, operands, parameters, shape) in enumerate(lines):
        names = operands.split()
        types = ", ".join(tensor(*shapes[name]) for name in names)
        values = ", ".join(f"%{name}" for name in names)
        applied = f"weft.apply @{kernel}({values}) {parameters}"
        text.append(f"%v{number} = {applied} : ({types}) -> {tensor(*shape)}")
        shapes[f"v{number}"] = shape
    taken = ", ".join(f"%{name}: {tensor(*shape)}" for name, shape in inputs.items())
    last, kind = f"%v{len(lines) - 1}", tensor(*lines[-1][3])
    body = "\n  ".join(text)
    return f"func.func @main({taken}) -> {kind} {{\n  {body}\n  func.return {last} : {kind}\n}}"


PROGRAMS = {
    "mlp": program(
        {"x": (24, 20), "w": (20, 40), "b": (40,), "u": (40, 20), "c": (20,)},
        ("linear", "x w b", "", (24, 40)),
        ("gelu", "v0", "", (24, 40)),
        ("linear", "v1 u c", "", (24, 20)),
        ("add", "x v2", "", (24, 20)),
    ),
    "softmax": program(
        {"x": (24, 36), "y": (36,)},
        ("mul", "x y", "", (24, 36)),
        ("softmax", "v0", "{axis = 1 : i64}", (24, 36)),
    ),
    "norm": program(
        {"x": (20, 32), "g": (32,), "b": (32,)},
        ("mean", "x", "{axis = 1 : i64, keepdim = true}", (20, 1)),
        ("sub", "x v0", "", (20, 32)),
        ("mul", "v1 v1", "", (20, 32)),
        ("mean", "v2", "{axis = 1 : i64, keepdim = true}", (20, 1)),
        ("sqrt", "v3", "", (20, 1)),
        ("div", "v1 v4", "", (20, 32)),
        ("mul", "v5 g", "", (20, 32)),
        ("add", "v6 b", "", (20, 32)),
    ),
    "attention": program(
        {"q": (24, 48), "k": (28, 48), "v": (28, 48)},
        ("reshape", "q", "{shape = [24, 4, 12]}", (24, 4, 12)),
        ("transpose", "v0", "{perm = [1, 0, 2]}", (4, 24, 12)),
        ("reshape", "k", "{shape = [28, 4, 12]}", (28, 4, 12)),
        ("transpose", "v2", "{perm = [1, 2, 0]}", (4, 12, 28)),
        ("matmul", "v1 v3", "", (4, 24, 28)),
        ("softmax", "v4", "{axis = 2 : i64}", (4, 24, 28)),
        ("reshape", "v", "{shape = [28, 4, 12]}", (28, 4, 12)),
        ("transpose", "v6", "{perm = [1, 0, 2]}", (4, 28, 12)),
        ("matmul", "v5 v7", "", (4, 24, 12)),
        ("transpose", "v8", "{perm = [1, 0, 2]}", (24, 4, 12)),
        ("reshape", "v9", "{shape = [24, 48]}", (24, 48)),
    ),
    "relu max": program(
        {"x": (30, 26), "y": (30, 26)},
        ("sub", "x y", "", (30, 26)),
        ("relu", "v0", "", (30, 26)),
        ("max", "v1", "{axis = 0 : i64, keepdim = false}", (26,)),
        ("sub", "y v2", "", (30, 26)),
        ("sum", "v3", "{axis = 1 : i64, keepdim = false}", (30,)),
    ),
}
