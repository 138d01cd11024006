"""What PyTorch's programs may do besides computing: alias, write, draw, return anything."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch._dynamo.exc import BackendCompilerFailed  # noqa: E402
from torch.nn import functional  # noqa: E402

from tapestry.diagnostics import TapestryError  # noqa: E402
from tests.importers.torch.compare import check_forward, compiled  # noqa: E402


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def test_inputs_are_written() -> None:
    def step(x, total):
        total.add_(x.sum(0))
        x[:, 0] = 7
        return x * 2

    have = [torch.randn(3, 4), torch.zeros(4)]
    want = [tensor.clone() for tensor in have]
    torch.testing.assert_close(compiled(step)(*have), step(*want))
    torch.testing.assert_close(have, want)


def test_views_of_inputs_share_their_memory() -> None:
    x = torch.randn(3, 4)
    row, turned = compiled(lambda x: (x[1], x.T))(x)
    row.zero_()
    assert not x[1].any()
    assert turned.data_ptr() == x.data_ptr()


def test_results_are_on_memory_of_their_own() -> None:
    x = torch.randn(3, 4)
    before = x.clone()
    copies = compiled(lambda x: (x.clone(), x + 0.0, x * 1.0, (x + 1) - 0, torch.ones(3, 4)))(x)
    for copy in copies:
        copy.fill_(5)
    assert torch.equal(x, before)
    again = compiled(lambda x: (x * 2, x * 2, torch.ones(2), torch.ones(2)))
    first, second, one, other = again(x)
    first.zero_()
    one.zero_()
    torch.testing.assert_close(second, x * 2)
    torch.testing.assert_close(other, torch.ones(2))
    assert again(x)[2].all()


def test_contiguous_results_are_contiguous() -> None:
    linear = nn.Linear(4, 6)
    made = compiled(lambda x: linear(x).transpose(0, 1).contiguous())(torch.randn(5, 4))
    assert made.is_contiguous()
    assert compiled(lambda a, b: a.T @ b)(torch.randn(3, 4), torch.randn(3, 5)).is_contiguous()


@pytest.mark.parametrize("slopes", [False, True])
def test_results_lie_as_those_of_pytorch(slopes: bool) -> None:
    def turned(x):
        y = nn.functional.conv2d(x, weight).relu()
        return y, x.permute(0, 2, 3, 1) * 2, y.sum((2, 3)).T + 1

    weight = torch.randn(4, 3, 3, 3)
    x = torch.randn(2, 3, 6, 7).to(memory_format=torch.channels_last).requires_grad_(slopes)
    fast = compiled(turned)
    for _ in range(2):
        for have, want in zip(fast(x), turned(x), strict=True):
            torch.testing.assert_close(have, want, rtol=1e-5, atol=1e-5)
            assert have.stride() == want.stride()


def test_results_of_any_structure() -> None:
    def model(x, scale: int, *, more=None):
        both = {"sum": x.sum(), "pair": (x * scale, None)}
        return both, [x.shape[0], "text", more], x > 0, x.argmax(-1)

    x = torch.randn(3, 4)
    (both, plain, *others), want = compiled(model)(x, 3, more=2.5), model(x, 3, more=2.5)
    assert plain == want[1]
    assert both["pair"][1] is None
    torch.testing.assert_close((both["sum"], both["pair"][0], *others), _tensors(want))


def _tensors(want):
    return (want[0]["sum"], want[0]["pair"][0], *want[2:])


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_powers_that_are_roots_are_so_at_the_edges(kind: torch.dtype) -> None:
    edges = [-torch.inf, -0.0, 0.0, torch.inf, 4.0, -1.0]
    x = torch.tensor(edges if kind.is_floating_point else [4, 0, -1]).to(kind)
    for have, want in zip(compiled(lambda x: (x**0.5, x**-0.5))(x), (x**0.5, x**-0.5), strict=True):
        torch.testing.assert_close((have, 1 / have), (want, 1 / want), equal_nan=True)


@pytest.mark.parametrize(
    "x",
    [
        torch.randn(()),
        torch.randn(0, 3),
        torch.randn(4, 6).T,
        torch.randn(4, 6)[::2, 1::2],
        torch.randn(1, 3).expand(4, 3),
        torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        torch.arange(6).reshape(2, 3),
        torch.tensor([True, False]),
        torch.randn(3).half(),
        torch.randn(3).bfloat16(),
        torch.randn(3).double(),
        torch.arange(5, dtype=torch.uint8),
        torch.randn(3, dtype=torch.complex64),
    ],
    ids=lambda x: f"{x.dtype} {list(x.shape)} {list(x.stride())}",
)
def test_tensors_of_any_kind(x: torch.Tensor) -> None:
    check_forward(lambda x: (x + x, x * 3, (x != x.flatten()[:1]).sum() if x.numel() else x), x)


def test_numbers_of_python() -> None:
    fast = compiled(lambda x, n, f: x[:n] * f + n)
    x = torch.randn(6)
    for n, f in ((2, 0.5), (3, 1.5), (5, 2.5)):
        torch.testing.assert_close(fast(x, n, f), x[:n] * f + n)


def test_dynamic_shapes() -> None:
    model = nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 3))
    torch._dynamo.reset()
    fast = torch.compile(model, backend="tapestry", dynamic=True)
    for size in ((2, 4), (5, 4), (3, 2, 4)):
        x = torch.randn(size, requires_grad=True)
        fast(x).sum().backward()
        got, x.grad = x.grad, None
        model(x).sum().backward()
        torch.testing.assert_close(got, x.grad)


def test_running_statistics() -> None:
    models = [nn.BatchNorm1d(4), nn.BatchNorm1d(4)]
    fast = compiled(models[0])
    for _ in range(3):
        x = torch.randn(5, 4)
        torch.testing.assert_close(fast(x), models[1](x))
    for got, want in zip(models[0].buffers(), models[1].buffers(), strict=True):
        torch.testing.assert_close(got, want)


def test_dropout_is_one_mask_forward_and_backward() -> None:
    fast = compiled(lambda x: functional.dropout(x, 0.25))
    x = torch.ones(200, 100, requires_grad=True)
    y = fast(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach())
    kept = (y != 0).float().mean().item()
    assert abs(kept - 0.75) < 0.02
    torch.testing.assert_close(y.detach().unique(), torch.tensor([0, 1 / 0.75]))


def test_random_numbers_follow_the_seed() -> None:
    fast = compiled(lambda x: (torch.rand_like(x), torch.rand_like(x), torch.randperm(50)))
    x = torch.zeros(100)
    runs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        runs.append([*fast(x), *fast(x)])
    for first, again, other in zip(*runs, strict=True):
        assert torch.equal(first, again)
        assert not torch.equal(first, other)
    one, two, order, three, _, again = runs[0]
    assert not torch.equal(one, two)
    assert not torch.equal(one, three)
    assert not torch.equal(order, again)
    assert torch.equal(order.sort().values, torch.arange(50))


def test_dropout_of_nothing_is_exact() -> None:
    check_forward(nn.Dropout(0.0), torch.randn(3, 4))
    check_forward(nn.Dropout(0.5).eval(), torch.randn(3, 4))


def test_what_breaks_the_graph() -> None:
    def model(x):
        y = x * 2
        if y.sum() > 0:
            y = y + 1
        return y.nonzero().shape[0] + y

    check_forward(model, torch.randn(3, 4))


def test_an_optimizer_step() -> None:
    pair = [nn.Linear(4, 3), nn.Linear(4, 3)]
    pair[1].load_state_dict(pair[0].state_dict())
    steppers = [torch.optim.AdamW(model.parameters(), 0.01) for model in pair]
    x = torch.randn(5, 4)
    torch._dynamo.reset()
    steps = [torch.compile(steppers[0].step, backend="tapestry"), steppers[1].step]
    for _ in range(3):
        for model, stepper, step in zip(pair, steppers, steps, strict=True):
            stepper.zero_grad()
            model(x).square().sum().backward()
            step()
    torch.testing.assert_close(*(list(model.parameters()) for model in pair))


def test_a_gradient_of_a_gradient_is_refused() -> None:
    x = torch.randn(3, requires_grad=True)
    (slope,) = torch.autograd.grad(compiled(lambda x: (x**3).sum())(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        slope.sum().backward()


def test_gradients_of_inputs_and_through_integers() -> None:
    def model(x, at):
        return (x[at] * at.float()[:, None]).sum()

    at = torch.tensor([2, 0, 2])
    x = torch.randn(3, 4, requires_grad=True)
    compiled(model)(x, at).backward()
    want = torch.tensor([1.0, 0.0, 4.0])[:, None].expand(3, 4) * 0
    want = want.clone().index_add_(0, at, at.float()[:, None].expand(3, 4))
    torch.testing.assert_close(x.grad, want)


def test_inputs_that_share_memory() -> None:
    def step(x, row):
        row.mul_(2)
        return x + row

    have = torch.randn(3, 4)
    want = have.clone()
    torch.testing.assert_close(compiled(step)(have, have[1]), step(want, want[1]))
    torch.testing.assert_close(have, want)


@pytest.mark.parametrize("row", [5, -1])
def test_rows_that_a_table_lacks_are_refused(row: int) -> None:
    table, ids = torch.randn(5, 4), torch.tensor([[1, row]])
    look_up = compiled(lambda ids: functional.embedding(ids, table))
    torch.testing.assert_close(look_up(torch.tensor([[1, 4]])), table[torch.tensor([[1, 4]])])
    with pytest.raises(TapestryError, match=f"index {row} is out of range: .* 0 to 4"):
        look_up(ids)


@pytest.mark.parametrize("turned", [False, True])
def test_results_that_are_views_of_others_share_their_memory(turned: bool) -> None:
    """Whoever writes to one writes to all, as in eager mode; also of a graph that is kept."""

    def model(x):
        y = x * 2
        return y[1:, ::2], y.T if turned else y, y, y.view(2, 6), y[0] + 1, y.reshape(-1)[3:9]

    for _ in range(2):
        torch._dynamo.reset()
        run = compiled(model)
        for place in range(6):
            x = torch.randn(3, 4)
            have, want = run(x), model(x)
            for made in (have, want):
                made[place].mul_(-3)
            torch.testing.assert_close(have, want)


@pytest.mark.parametrize("slopes", [False, True])
def test_views_by_sizes_that_are_open(slopes: bool) -> None:
    """PyTorch asks a result where in its memory it begins, if sizes are symbols."""

    def views(x):
        rows, columns = x.shape
        flat = x.view(-1)[rows:]
        return x[2 : rows - 1], x[:, columns // 2 :], x.T[columns - 1], flat, x.unfold(1, 2, 1)

    def of_results(x):
        y, turned = x * 2, (x.T + 1).contiguous().T
        return *views(y), y, turned[1 : x.shape[0]], turned[:, x.shape[1] - 2], turned

    for model in (views, of_results):
        torch._dynamo.reset()
        run = torch.compile(model, backend="tapestry", dynamic=True)
        for rows in (5, 6, 9):
            x = torch.randn(rows, 4, requires_grad=slopes)
            y = x.detach().clone().requires_grad_(slopes)
            have, want = run(x), model(y)
            torch.testing.assert_close(have, want)
            if slopes:
                sum(one.sum() for one in have).backward()
                sum(one.sum() for one in want).backward()
                torch.testing.assert_close(x.grad, y.grad)
            else:
                for one, other in zip(have, want, strict=True):
                    one.mul_(-3)
                    other.mul_(-3)
                torch.testing.assert_close((x, *have), (y, *want))


def test_inputs_that_overlap() -> None:
    def step(x, y):
        return x.add_(1), y.mul_(2), x + y

    run = compiled(step)
    for cut in (
        lambda x: (x[0, :6], x[0, 4:]),
        lambda x: (x[:, :7], x[:, 3:]),
        lambda x: (x, x[1]),
        lambda x: (x[1], x),
        lambda x: (x.T[2:6], x.T[1:5]),
    ):
        x = torch.randn(3, 10)
        y = x.clone()
        torch.testing.assert_close(run(*cut(x)), step(*cut(y)))
        torch.testing.assert_close(x, y)


def test_places_in_memory() -> None:
    def read(x):
        return x.as_strided((3,), (5,), 1), (x * 2).t().as_strided((4, 3), (1, 4)) + 1

    def write(x):
        x.as_strided((2, 3), (7, 2), 1).mul_(-2)
        return x + 1

    def gapped(x):
        return x[:, 1:].as_strided((3,), (1,)) + 1

    for model in (read, write):
        for x in (torch.randn(4, 5), torch.randn(5, 4).T, torch.randn(4, 5, dtype=torch.complex64)):
            y = x.clone(memory_format=torch.preserve_format)
            torch.testing.assert_close(compiled(model)(x), model(y))
            torch.testing.assert_close(x, y)
    with pytest.raises(BackendCompilerFailed, match="its tensor does not fill its memory"):
        compiled(gapped)(torch.randn(4, 5))


def test_constants_that_are_returned_may_be_written_to() -> None:
    def model(x):
        return x + 1, torch.arange(5.0), torch.eye(3)

    run = compiled(model)
    for _ in range(3):
        x = torch.zeros(3)
        made = run(x)
        torch.testing.assert_close(made, model(x))
        for one in made:
            one.fill_(-7)
