"""Where programs run: one device, lowered once, on its own tensors."""

import pytest

torch = pytest.importorskip("torch")

from torch import fx, nn  # noqa: E402

from tapestry.frontend import run_pipeline  # noqa: E402
from tapestry.importers.torch import ImportingError, running  # noqa: E402
from tapestry.importers.torch.exporting import exported_program  # noqa: E402
from tapestry.runtime.prepared.kernels import PreparedKernels  # noqa: E402
from tapestry.runtime.triton_executor import Cpu, TritonExecutor  # noqa: E402
from tests.importers.torch.compare import compiled  # noqa: E402


class CpuTensors(Cpu):
    """The interpreter on PyTorch's tensors: what a GPU's are, without one."""

    target = "torch"

    def put(self, array):
        return torch.from_numpy(array)

    def functions(self):
        def allocate(shape, dtype, fill=None):
            made = torch.empty(shape, dtype=getattr(torch, dtype))
            return made if fill is None else made.fill_(fill)

        def upload(data, shape, dtype):
            made = torch.frombuffer(bytearray(data), dtype=getattr(torch, dtype))
            return made.reshape(shape)

        return {"allocate": allocate, "upload": upload}


def on_tensors(model, *args):
    program = exported_program(model, args, weights="arguments")
    run_pipeline(program.module, "default")
    kernels = PreparedKernels(program.module, TritonExecutor(device=CpuTensors()))
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
