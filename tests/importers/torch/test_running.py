"""Where programs run: one device, lowered once, on its own tensors."""

import pytest

torch = pytest.importorskip("torch")

from torch import fx, nn  # noqa: E402

from tapestry.frontend import run_pipeline  # noqa: E402
from tapestry.importers.torch import ImportingError, running  # noqa: E402
from tapestry.importers.torch.dtypes import as_array, as_tensor  # noqa: E402
from tapestry.importers.torch.exporting import exported_program  # noqa: E402
from tapestry.runtime.prepared.kernels import PreparedKernels  # noqa: E402
from tapestry.runtime.triton import compiled as compiled_module  # noqa: E402
from tapestry.runtime.triton.compiled import compiled_launches  # noqa: E402
from tapestry.runtime.triton.executor import TritonExecutor  # noqa: E402
from tests.codegen.standing import Gpu, Standing, compiled_at_once  # noqa: E402
from tests.importers.torch.compare import compiled  # noqa: E402


class CpuMemory(Standing):
    """A device that stands in for a GPU, with PyTorch's memory on the CPU."""

    def dtype(self, name):
        return getattr(torch, name)

    def empty(self, shape, dtype):
        made = torch.empty(shape, dtype=dtype)
        made.view(-1).view(torch.uint8).fill_(0xA5) if made.numel() else None
        return made

    def upload(self, data, shape, dtype):
        cells = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        return cells.view(getattr(torch, dtype)).reshape(shape).clone()


class TorchGpu(Gpu):
    """What the executor asks of a GPU, on that."""

    target = "torch"

    def put(self, array):
        return as_tensor(array).clone()

    def get(self, tensor):
        return as_array(tensor)

    def prepared(self, program, calls):
        signatures = {one.name: [kind for _, kind in one.signature] for one in program.kernels}
        options = {one.name: one.options for one in program.kernels}
        device = CpuMemory(program.path, signatures, options)
        self.devices.append(device)
        return compiled_launches(program.path, program.kernels, program.plan, device, calls)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_module, "compile_kernels", compiled_at_once)


def on_tensors(model, *args):
    program = exported_program(model, args, weights="arguments")
    run_pipeline(program.module, "default")
    kernels = PreparedKernels(program.module, TritonExecutor(device=TorchGpu()))
    return running.on_tensors(program, kernels, torch.device("cpu"))


def test_tensors_of_the_device() -> None:
    model, x = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3)).eval(), torch.randn(5, 4)
    run = on_tensors(model, x)
    for given in (x, torch.randn(4, 5).T):
        (got,) = run([*model.state_dict().values(), given])
        torch.testing.assert_close(got, model(given).detach())


def test_results_do_not_share_memory() -> None:
    class Model(nn.Module):
        def forward(self, x):
            return x.clone(), x.view(6), torch.special.i0(x)

    x = torch.randn(2, 3)
    copy, view, bessel = on_tensors(Model(), x)([x])
    assert copy.data_ptr() != x.data_ptr()
    torch.testing.assert_close(view, x.view(6))
    torch.testing.assert_close(bessel, torch.special.i0(x))


class Pair(nn.Module):
    def forward(self, x, y):
        return (x * 2 + y).sum(-1), x - y


def case_of(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = torch.randn(6, 8), torch.randn(6, 8)
    return {
        "strided": lambda: (torch.randn(8, 6).T, y),
        "expanded": lambda: (x[:1].expand(6, 8), y),
        "sliced": lambda: (torch.randn(6, 17)[:, 1::2], y),
        "offset": lambda: (torch.randn(49)[1:].view(6, 8), y),
        "negated": lambda: (torch.complex(x, y).conj().imag, y),
        "grad": lambda: (x.clone().requires_grad_(), y),
        "same": lambda: (x, x),
        "overlapping": lambda: (torch.randn(13).as_strided((6, 8), (1, 1)), y),
    }[name]()


@pytest.mark.parametrize(
    "name",
    ["strided", "expanded", "sliced", "offset", "negated", "grad", "same", "overlapping"],
)
def test_inputs_of_every_layout(name: str) -> None:
    x, y = case_of(name)
    run = on_tensors(Pair(), torch.randn(6, 8), torch.randn(6, 8))
    for got, want in zip(run([x, y]), Pair()(x, y), strict=True):
        torch.testing.assert_close(got, want.detach())
        assert not got.requires_grad


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int64])
def test_inputs_of_every_dtype(dtype: torch.dtype) -> None:
    x, y = (torch.randint(-9, 9, (6, 8)).to(dtype) for _ in range(2))
    for got, want in zip(on_tensors(Pair(), x, y)([x, y]), Pair()(x, y), strict=True):
        assert got.dtype == want.dtype
        torch.testing.assert_close(got, want)


def test_complex_numbers_are_pairs() -> None:
    x = torch.randn(6, 8, dtype=torch.complex64)
    for given in (x, x.conj(), x.T, x.T.conj()):
        made = running._ready(given, torch.device("cpu"))
        assert made.is_contiguous()
        torch.testing.assert_close(torch.view_as_complex(made), given.resolve_conj())


def test_tensors_without_cells() -> None:
    x, y = torch.randn(0, 8), torch.randn(0, 8)
    total, difference = on_tensors(Pair(), x, y)([x, y])
    assert (total.shape, difference.shape) == ((0,), (0, 8))


def test_a_scalar_that_is_elsewhere_is_brought() -> None:
    """PyTorch lets tensors without dimensions stay on the CPU beside a GPU's."""
    moved = running._ready(torch.tensor(2.0), torch.device("meta"))
    assert moved.device == torch.device("meta")


def test_a_program_is_on_the_device_of_its_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not on PyTorch's current one."""
    asked: list[object] = []

    class Asked(TorchGpu):
        def __init__(self, torch: object, index: int | None) -> None:
            del torch
            super().__init__()
            asked.append(index)

    monkeypatch.setattr("tapestry.runtime.triton.devices.Gpu", Asked)
    program = exported_program(Pair(), (torch.randn(2, 3), torch.randn(2, 3)))
    run_pipeline(program.module, "default")
    running.runner(program, torch.device("cuda:1"), "triton", None)
    assert asked == [1]


def test_kernels_are_lowered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    printed = TritonExecutor.printed
    monkeypatch.setattr(
        TritonExecutor, "printed", lambda *args: calls.append(args) or printed(*args)
    )
    fast = compiled(lambda x: (x * 2).sum(-1), on="triton")
    for _ in range(3):
        x = torch.randn(3, 4)
        torch.testing.assert_close(fast(x), (x * 2).sum(-1))
    assert len(calls) == 1


def graph_on(*devices: str) -> fx.GraphModule:
    graph = fx.Graph()
    for number, device in enumerate(devices):
        graph.placeholder(f"x{number}").meta["val"] = _Fake(device)
    graph.output(())
    return fx.GraphModule(nn.Module(), graph)


class _Fake(torch.Tensor):
    """A tensor that says it is on a device."""

    def __new__(cls, device: str):
        made = torch.Tensor._make_subclass(cls, torch.empty(0))
        made.place = torch.device(device)
        return made

    @property
    def device(self):
        return self.place


def test_one_device() -> None:
    assert running.device_of(graph_on("cpu")) == torch.device("cpu")
    assert running.device_of(graph_on("cpu", "cuda:1")) == torch.device("cuda:1")
    with pytest.raises(ImportingError, match="tensors are on cuda:0 and cuda:1"):
        running.device_of(graph_on("cuda:0", "cuda:1"))
    with pytest.raises(ImportingError, match="there are no programs on meta"):
        running.device_of(graph_on("meta"))
