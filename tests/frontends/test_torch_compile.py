"""`torch.compile(backend="irees")`: forward, training, mutation, strides, changed weights, fallback."""

from __future__ import annotations

import copy
import importlib
import logging
import subprocess
import sys
import threading

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'irees[torch]'")

from torch import nn  # noqa: E402

import irees  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(function, **options):
    return torch.compile(function, backend="irees", options=options or None, fullgraph=True)


def net():
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)).eval()


X = torch.linspace(-1, 1, 40).reshape(5, 8)


def test_the_back_end_is_found_without_an_import():
    code = (
        "import torch; f = torch.compile(lambda x: x * 2 + 1, backend='irees');"
        "assert f(torch.ones(3)).tolist() == [3.0] * 3"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_forward(mode):
    model = net()
    with mode():
        torch.testing.assert_close(compiled(model)(X), model(X))


def test_other_sizes_are_one_program_more():
    from importlib import import_module

    backend = import_module("irees.dynamo.backend")

    made = []
    original = backend.compile_graph
    backend.compile_graph = lambda *a, **k: made.append(a) or original(*a, **k)
    try:
        function = compiled(lambda x: (x.relu().sum(0), x.shape[0] * 2))
        for rows in (5, 6, 7, 30):
            x = torch.randn(rows, 8)
            found = function(x)
            torch.testing.assert_close(found[0], x.relu().sum(0))
            assert found[1] == 2 * rows
    finally:
        backend.compile_graph = original
    assert len(made) == 2


def train(model, optimizer, steps=6):
    losses = []
    for step in range(steps):
        loss = (model(X + step * 0.1) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


OPTIMIZERS = {
    "SGD": (lambda p: torch.optim.SGD(p, 1e-2, momentum=0.9), 1e-5),
    # Adam divides by the size of a gradient: a rounding of a small one is a step of another size.
    "Adam": (lambda p: torch.optim.Adam(p, 1e-2), 2e-3),
    "fused Adam": (lambda p: torch.optim.Adam(p, 1e-2, fused=True), 2e-3),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_follows_eager(name):
    model = nn.Sequential(
        nn.Linear(8, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8),
        nn.LayerNorm(8),
    ).train()  # fmt: skip
    twin = copy.deepcopy(model)
    make, tolerance = OPTIMIZERS[name]
    mine = train(compiled(model), make(model.parameters()))
    theirs = train(twin, make(twin.parameters()))
    assert mine == pytest.approx(theirs, rel=tolerance)
    for a, b in zip(model.buffers(), twin.buffers()):
        torch.testing.assert_close(a, b, rtol=5 * tolerance, atol=5 * tolerance)


@pytest.mark.parametrize("whole", [False, True], ids=["optimizer", "loss and optimizer"])
def test_a_compiled_step_follows_eager(whole):
    """Dynamo meets the first backward pass in code that it traces; it must not trace irees."""
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
    twin = copy.deepcopy(model)

    def stepped(model, wrap):
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)

        def loss(x):
            value = (model(x) ** 2).mean()
            value.backward()
            return value

        update = optimizer.step if whole else wrap(optimizer.step)

        def step(x):
            value = loss(x)
            update()
            optimizer.zero_grad()
            return value.item()

        step = wrap(step) if whole else step
        return [step(X + 0.1 * n) for n in range(5)]

    def wrap(function):
        return torch.compile(function, backend="irees", options={"fallback": False})

    counters = torch._dynamo.utils.counters
    counters.clear()
    assert stepped(model, wrap) == pytest.approx(stepped(twin, lambda f: f), rel=2e-3)
    for a, b in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
    # The optimizer has about a hundred, irees thousands.
    assert counters["frames"]["total"] < 400
    assert counters["stats"]["unique_graphs"]


CHANGES = {
    "in place": lambda p: p.add_(1),
    "data": lambda p: p.data.mul_(2),
    "numpy": lambda p: p.detach().numpy().fill(0.5),
    "new data": lambda p: setattr(p, "data", torch.full_like(p, 0.25)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_weights_are_seen(change):
    model = nn.Linear(8, 4)
    function = compiled(model)
    with torch.no_grad():
        function(X)
        CHANGES[change](model.weight)
        # Writes past the version counter are found by a sample, of one weight in each call.
        for _ in range(2):
            found = function(X)
        torch.testing.assert_close(found, model(X))


def test_a_fused_optimizer_between_two_inferences():
    model = nn.Linear(8, 4)
    function = compiled(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.5, fused=True)
    with torch.no_grad():
        function(X)
    model(X).sum().backward()
    optimizer.step()
    with torch.no_grad():
        torch.testing.assert_close(function(X), model(X))


def test_frozen_weights_are_the_users_promise():
    model = nn.Linear(8, 4)
    function = compiled(model, freeze=True)
    with torch.no_grad():
        before = function(X)
        model.weight.add_(1)
        torch.testing.assert_close(function(X), before)


def test_arguments_are_mutated_in_place():
    def f(cache, row, x):
        cache[:, row] = x
        x.mul_(2)
        return cache.sum(), x

    cache, x = torch.zeros(3, 6, 2), torch.ones(3, 1, 2)
    other, y = cache.clone(), x.clone()
    found, wanted = compiled(f)(cache, torch.tensor([2]), x), f(other, torch.tensor([2]), y)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(cache, other)
    assert found[1] is x


def halved(x):
    x.mul_(0.5)
    x[0] = 1
    return x.sum()


@pytest.mark.parametrize("rows", [4, 3])
def test_mutated_arguments_of_any_layout(rows):
    def made():
        yield torch.arange(4.0 * rows).reshape(rows, 4).t()
        yield torch.arange(8.0 * rows).reshape(rows, 8)[:, ::2]
        yield torch.complex(torch.ones(rows, 4), torch.ones(rows, 4)).t().conj()
        yield torch.arange(24.0 * rows).reshape(2, 3, rows, 4).permute(3, 0, 2, 1)

    for mine, theirs in zip(made(), made()):
        assert compiled(halved)(mine) == halved(theirs)
        torch.testing.assert_close(mine, theirs)


def test_a_mutation_behind_an_operator_of_pytorch_is_not_lost():
    def f(buffer, x):
        found = foreign(x @ x.t()).sum()
        buffer.add_(1)
        return found

    x = torch.randn(4, 4, requires_grad=True)
    buffer = torch.zeros(3)
    compiled(f)(buffer, x)
    assert buffer.tolist() == [1.0] * 3


def test_weights_get_the_memory_of_new_values():
    """`set_` gives the fake tensor of an argument the memory of a value that is computed later."""

    class Average(nn.Module):
        def __init__(self):
            super().__init__()
            self.mine, self.other = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            for mine, other in zip(self.mine.parameters(), self.other.parameters()):
                mine.data = mine.data * 0.5 + other.data * 0.5
            return self.mine(x)

    eager = Average()
    model = copy.deepcopy(eager)
    run = torch.compile(model, backend="irees")
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(run(X), eager(X))
    torch.testing.assert_close(model.mine.weight, eager.mine.weight)


def test_threads_while_weights_change():
    model = nn.Linear(8, 4)
    function = torch.compile(model, backend="irees")
    failed = []

    def work(change):
        try:
            with torch.no_grad():
                for step in range(30):
                    function(X)
                    if change and step == 10:
                        model.weight.add_(1)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n == 0,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    with torch.no_grad():
        torch.testing.assert_close(function(X), model(X))


def test_transforms_of_functions():
    def f(x):
        return torch.func.grad(lambda y: (y.sin() ** 2).sum())(x)

    torch.testing.assert_close(compiled(f)(X), f(X))


def test_aliases_of_inputs_and_outputs():
    def f(x):
        y = x + 1
        return x, x.t(), y, y.t(), y

    found = compiled(f)(X)
    torch.testing.assert_close(found, f(X))
    assert found[0] is X
    assert found[1].data_ptr() == X.data_ptr()
    assert found[4] is found[2]


def same_strides(function, *inputs):
    found, wanted = compiled(function)(*inputs), function(*inputs)
    torch.testing.assert_close(found, wanted)
    assert found.stride() == wanted.stride()


def test_results_have_the_strides_of_eager():
    image = torch.randn(2, 3, 6, 7)
    conv = nn.Conv2d(3, 5, 3, padding=1).to(memory_format=torch.channels_last)
    with torch.no_grad():
        same_strides(conv, image.to(memory_format=torch.channels_last))
    same_strides(lambda x: (x * 2).transpose(0, 1).contiguous().transpose(0, 1), image)
    same_strides(lambda x: x.t() * 2, X)
    same_strides(lambda x: x.expand(4, 5, 8) + 0, X)


def test_results_without_elements_can_be_resized():
    empty = compiled(lambda x: x[:0] + 1)(X)
    torch.testing.assert_close(torch.add(X, 1, out=empty), X + 1)


def test_inputs_may_have_any_strides():
    function = compiled(lambda x: x * 2 + 1)
    for x in (
        X.t(),
        X[:, ::2],
        X[1:3, 2:5],
        X[:1].expand(5, 8),
        torch.randn(2, 3, 4).permute(2, 0, 1),
    ):
        torch.testing.assert_close(function(x), x * 2 + 1)
    z = torch.tensor([1 + 2j, 3 - 4j])
    torch.testing.assert_close(compiled(lambda x: x * 2)(z.conj()), z.conj() * 2)


def test_numbers_drawn_differ_and_follow_the_seed():
    function = compiled(lambda x: nn.functional.dropout(x, 0.5))
    x = torch.ones(1000)
    torch.manual_seed(1)
    first, second = function(x), function(x)
    torch.manual_seed(1)
    assert torch.equal(function(x), first)
    assert not torch.equal(first, second)
    assert 400 < int((first == 0).sum()) < 600
    assert set(first.unique().tolist()) == {0.0, 2.0}


def test_dropout_uses_one_mask_in_both_directions():
    x = torch.ones(1000, requires_grad=True)
    y = compiled(lambda x: nn.functional.dropout(x, 0.5))(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


@torch.library.custom_op("irees_tests::foreign", mutates_args=())
def foreign(x: torch.Tensor) -> torch.Tensor:
    """|x|, by an operator that irees does not know."""
    return x.abs()


foreign.register_fake(lambda x: torch.empty_like(x, memory_format=torch.contiguous_format))
foreign.register_autograd(
    lambda ctx, grad: grad * ctx.saved_tensors[0].sign(),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


def unsupported(x):
    return foreign(x @ x.t()).sum() + x.sin().sum()


def test_what_is_not_lowered_runs_in_pytorch(caplog):
    with caplog.at_level(logging.WARNING, "irees"):
        found = compiled(unsupported)(X)
    torch.testing.assert_close(found, unsupported(X))
    (said,) = [r.message for r in caplog.records if "foreign" in r.message]
    assert "runs in PyTorch" in said
    assert "test_torch_compile.py" in said


def test_no_fallback_is_an_error():
    with pytest.raises(Exception, match=r"UnsupportedError.*test_torch_compile\.py.*foreign"):
        compiled(unsupported, fallback=False)(X)


def overlapping(x):
    windows = x.clone().unfold(0, 2, 1)
    windows[0] += 1  # PyTorch does not make writes to overlapping elements functional
    return windows * 2


def test_the_loss_of_labels_up_to_the_first_minus_one():
    """PyTorch's decomposition counts those behind it, too, and gives a vector for a vector."""
    loss = nn.MultiLabelMarginLoss(reduction="none")
    target = torch.tensor([3, 0, 0, 1, -1, 2, 0, 0])
    for shape in ((8,), (1, 8), (5, 8)):
        x, labels = torch.rand(shape), target.expand(shape)
        torch.testing.assert_close(compiled(loss)(x, labels), loss(x, labels))
        torch.testing.assert_close(irees.compile(loss, (x, labels))(x, labels), loss(x, labels))


def test_a_float_that_changes_stays_in_irees(caplog):
    """AOT autograd asks Dynamo to trace again when a float cannot be a tensor."""

    def clamped(x, limit):
        return x.clamp(max=limit) + 1

    function = torch.compile(clamped, backend="irees", dynamic=True)
    with caplog.at_level(logging.WARNING, "irees"):
        for limit in (0.25, 0.5, -0.125):
            torch.testing.assert_close(function(X, limit), clamped(X, limit))
    assert not [r.message for r in caplog.records if "runs in PyTorch" in r.message]


def test_a_graph_that_is_not_made_functional_runs_in_pytorch(caplog):
    with caplog.at_level(logging.WARNING, "irees"):
        torch.testing.assert_close(compiled(overlapping)(X), overlapping(X))
    assert "a graph runs in PyTorch" in caplog.text
    torch._dynamo.reset()
    with pytest.raises(Exception, match="internal overlap"):
        compiled(overlapping, fallback=False)(X)


def test_nested_tensors():
    rows = [torch.randn(2, 3), torch.randn(4, 3)]
    nested = torch.nested.nested_tensor(rows, layout=torch.jagged)
    for each, row in zip(compiled(lambda x: x.sin() * 2)(nested).unbind(), rows, strict=True):
        torch.testing.assert_close(each, row.sin() * 2)
    sums = compiled(lambda x: x.exp().sum(-1), fallback=False)(nested)
    torch.testing.assert_close(sums.values(), torch.cat(rows).exp().sum(-1))


def test_unknown_options_are_errors():
    with pytest.raises(Exception, match="ArgumentError: option 'nonsense' is unknown"):
        compiled(lambda x: x + 1, nonsense=1)(X)
    with pytest.raises(Exception, match="ArgumentError: option 'freeze' is 3"):
        compiled(lambda x: x + 1, freeze=3)(X)
    with pytest.raises(Exception, match="ArgumentError: target 'nonsense' is unknown"):
        compiled(lambda x: x + 1, target="nonsense")(X)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("infinity", [False, True])
def test_ctc_loss_with_lengths_that_are_numbers(reduction, infinity):
    """irees says what shapes it has, so Dynamo captures it; PyTorch's own kernel then fails."""
    scores, targets = torch.randn(7, 3, 5), torch.randint(1, 5, (3, 4))

    def f(scores):
        probabilities = scores.log_softmax(2)
        return nn.functional.ctc_loss(
            probabilities,
            targets,
            (7, 3, 7),
            (3, 4, 0),
            reduction=reduction,
            zero_infinity=infinity,
        )

    torch.testing.assert_close(compiled(f, fallback=False)(scores), f(scores))
    mine, theirs = (scores.clone().requires_grad_() for _ in range(2))
    compiled(f)(mine).sum().backward()
    f(theirs).sum().backward()
    torch.testing.assert_close(mine.grad, theirs.grad, equal_nan=True)


def test_several_threads():
    model = net()
    function = torch.compile(model, backend="irees")
    wrong = []

    def work(rows):
        with torch.no_grad():
            for _ in range(20):
                x = torch.randn(rows, 8)
                if not torch.allclose(function(x), model(x), atol=1e-5):
                    wrong.append(rows)

    threads = [threading.Thread(target=work, args=(n,)) for n in (3, 3, 5, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_weights_that_stay_after_a_change_are_constants_again(monkeypatch):
    module = importlib.import_module("irees.dynamo.backend")

    monkeypatch.setattr(module, "CALM", 3)
    made = []
    monkeypatch.setattr(
        module, "compile_graph", lambda g, o, w: made.append(w) or compile_graph(g, o, w)
    )
    compile_graph = importlib.import_module("irees.dynamo.calls").compile_graph
    model = nn.Linear(8, 4)
    function = torch.compile(model, backend="irees")
    with torch.no_grad():
        for step in range(12):
            if step in (2, 9):
                model.weight.add_(1)
            torch.testing.assert_close(function(X), model(X))
    # Constants, arguments after the change, constants again; the second change needs nothing new.
    assert [weights is not None for weights in made] == [True, False, True]


def test_explain_names_what_runs_in_pytorch():
    def f(x):
        return foreign(x @ x.t()).sum() + x.sum()

    found = irees.explain(f, (X,))
    (left,) = found.left[0]
    assert left.operator == "irees_tests.foreign.default"
    assert left.line.startswith(f"{__file__}:{f.__code__.co_firstlineno + 1}")
    assert found.operators[0] > 3
    assert left.line in str(found)
    assert not any(irees.explain(nn.Linear(8, 4), X).left)


def test_explain_names_a_graph_that_pytorch_cannot_make_functional():
    def f(x, i):
        return x[:, i] + 1

    found = irees.explain(f, (X, torch.tensor(3)))
    assert [left.operator for left in found.left[0]] == ["getitem", "add"]
    assert "DataDependentOutputException" in found.left[0][0].reason
    assert found.left[0][0].line == f"{__file__}:{f.__code__.co_firstlineno + 1}"


def test_explain_says_where_a_graph_ends():
    def f(x):
        y = x + 1
        print(end="")
        return y * 2

    found = irees.explain(f, (X,))
    assert len(found.operators) == 2
    assert found.breaks


def test_gradients_of_what_is_marked_for_quantization():
    """PyTorch's cut into forward and backward does not understand the operator by itself."""
    from torch._higher_order_ops import InvokeQuant

    def f(x):
        return InvokeQuant()(lambda x: (x.sin() * x,), x)[0] * 2

    mine, theirs = (X.clone().requires_grad_() for _ in range(2))
    got, want = compiled(f, fallback=False)(mine), f(theirs)
    got.sum().backward()
    want.sum().backward()
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(mine.grad, theirs.grad)


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_counted_sizes_are_strides_of_results():
    """PyTorch's stride is max(1, n) for a counted n; results are right for n = 0, too."""

    def selected(x, y):
        return torch.outer(x, y[y > 0]) * 2

    function, x, y = compiled(selected, fallback=False), torch.rand(3), torch.linspace(-1, 1, 6)
    for each in (y, y.abs(), -y.abs()):
        result, expected = function(x, each), selected(x, each)
        assert torch.equal(result, expected)
        assert result.stride() == expected.stride()


def _later_half(x):
    return x.chunk(2, 0)[1], x[:, x.shape[1] // 2 :], x.select(1, x.shape[1] - 1)


def _written_half(x):
    half = x[:, x.shape[1] // 2 :]
    half.add_(1)
    return half, half[0]


@pytest.mark.parametrize("function", [_later_half, _written_half])
def test_views_of_arguments_of_dynamic_sizes_have_their_offset(function):
    """PyTorch makes such a result again from the argument, by its strides and offset."""
    run = compiled_dynamic(function)
    for rows in (4, 6):
        x = torch.randn(rows, 5, 3)
        given = x.clone()
        found, expected = run(given), function(x)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(given, x)
        for mine, other in zip(found, expected):
            assert mine.stride() == other.stride()
            assert mine.storage_offset() == other.storage_offset()


def compiled_dynamic(function):
    return torch.compile(function, backend="irees", dynamic=True, options={"fallback": False})


DYNAMIC = {
    "symbolic strides": lambda x: (x.expand(3, *x.shape), x.diagonal(), (x + 1)[:, 1:]),
    "circular": lambda x: nn.functional.pad(x, (1, 2), mode="circular"),
    "up": lambda x: nn.functional.conv_transpose1d(x, torch.ones(5, 2, 4), stride=2, padding=1),
    "attention": lambda x: nn.functional.scaled_dot_product_attention(x, x, x),
    "frequencies": lambda x: torch.fft.fftfreq(x.shape[2], 0.5) + x,
}


@pytest.mark.parametrize("case", DYNAMIC)
def test_nothing_of_dynamic_sizes_runs_in_pytorch(case):
    function = DYNAMIC[case]
    run = compiled_dynamic(function)
    for rows, columns in ((2, 7), (4, 9)):
        x = torch.randn(rows, 5, columns)
        torch.testing.assert_close(run(x), function(x))


def test_checks_that_are_effects_are_compiled():
    """AOT autograd orders the check of `inv` by a token, which is None in calls."""
    x = torch.eye(3) * 2
    torch.testing.assert_close(compiled(torch.linalg.inv, fallback=False)(x), x / 4)
    with pytest.raises(irees.errors.RuntimeTrap):
        compiled(torch.linalg.inv, fallback=False)(torch.zeros(3, 3))


COMPLEX = {
    "parts": lambda x: (x.imag[:, x.shape[1] // 2 :], torch.view_as_real(x)[:, x.shape[1] // 2 :]),
    "conjugate": lambda x: x[x.shape[0] // 2 :].conj(),
}


@pytest.mark.parametrize("case", COMPLEX)
def test_views_of_complex_arguments_of_dynamic_sizes(case):
    function = COMPLEX[case]
    run = torch.compile(function, backend="irees", dynamic=True)
    for rows in (4, 7):
        x = torch.randn(rows, 6, dtype=torch.complex64)
        torch.testing.assert_close(run(x), function(x))


def halves(x):
    y = x * 2
    left, right = y.chunk(2, 1)
    return left, right


SHARING = {
    "base and view": lambda x: (lambda y: (y, y[1], y.t()))(x + 1),
    "views of what is not returned": halves,
    "parts of complex numbers": lambda x: (lambda z: (z.real, z.imag, z))(torch.complex(x, x + 1)),
    "detached": lambda x: (lambda y: (y, y.detach()))(x.exp()),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", SHARING)
def test_results_share_memory_as_in_eager(name, dynamic):
    """Code after a graph break may write to a result that is a view of another one."""
    function = SHARING[name]
    model = torch.compile(function, backend="irees", dynamic=dynamic, options={"fallback": False})
    for rows in (4, 5):
        x = torch.arange(rows * 6.0).reshape(rows, 6)
        results = model(x), function(x)
        for found, expected in zip(*results, strict=True):
            torch.testing.assert_close(found, expected)
            assert found.stride() == expected.stride()
        for outputs in results:
            outputs[0].mul_(3)
            outputs[1].add_(1)
        for found, expected in zip(*results, strict=True):
            torch.testing.assert_close(found, expected)


def test_saved_views_are_views_of_results():
    def function(x, w):
        y = (x @ w).tanh()
        return y.view(-1), y[0]

    x, gradients = torch.randn(4, 6), []
    for run in (function, torch.compile(function, backend="irees")):
        w = torch.linspace(-1, 1, 18).reshape(6, 3).requires_grad_()
        first, second = run(x, w)
        (first.sum() + (second**2).sum()).backward()
        gradients.append(w.grad)
    torch.testing.assert_close(*gradients)


def test_results_of_several_parts_share_memory():
    def function(x):
        z = foreign(x.diagonal()) * 2
        norm = foreign(x.diagonal() + 1)  # runs in PyTorch, between z and its views
        return z, z[1:].view(-1), *z.split(2), norm

    x = torch.diag(torch.arange(4.0))
    results = torch.compile(function, backend="irees")(x), function(x)
    for outputs in results:
        outputs[1].mul_(3)
        outputs[3].add_(1)
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", ["a result", "a weight"])
def test_a_write_to_what_the_backward_pass_reads_is_an_error(name):
    """Saved tensors are the arguments and results themselves, not copies."""
    x, w = torch.randn(3, 6, requires_grad=True), torch.randn(6, 2, requires_grad=True)
    y = torch.compile(lambda x, w: (x @ w).exp(), backend="irees")(x, w)
    with torch.no_grad():
        (y if name == "a result" else w).mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
