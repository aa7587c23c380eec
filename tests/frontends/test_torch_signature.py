"""A compiled PyTorch program is called as the module is: trees, names, defaults, state."""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import pickle
import subprocess
import sys
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'irees[torch]'")

import irees  # noqa: E402
from irees.errors import ArgumentError, ParseError, UnsupportedError  # noqa: E402
from irees.runtime import trees  # noqa: E402


class Nested(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.register_buffer("mask", torch.arange(3.0), persistent=False)

    def forward(self, x, extra=None, *, scale=2.0, flag=None):
        y = self.linear(x) * scale + self.mask
        if extra is not None:
            y = y + extra["bias"][0]
        return {"y": y, "rest": [y.sum(), None, 3], "given": (x,)}


X = torch.linspace(-1, 1, 8).reshape(2, 4)


@pytest.fixture(scope="module", params=["cpu", "reference"])
def nested(request):
    model = Nested().eval()
    scale = torch.tensor(3.0)
    return model, irees.compile(model, (X,), kwargs={"scale": scale}, target=request.param), scale


def test_results_have_their_structure(nested):
    model, program, scale = nested
    found, wanted = program(X, scale=scale), model(X, scale=scale)
    assert list(found) == ["y", "rest", "given"]
    torch.testing.assert_close(found["y"], wanted["y"])
    assert found["rest"][1:] == [None, 3]
    assert found["given"][0] is X


def test_arguments_by_name_in_any_order(nested):
    _, program, scale = nested
    torch.testing.assert_close(program(scale=scale, x=X)["y"], program(X, scale=scale)["y"])
    assert program(X, None, scale=scale, flag=None)["y"].shape == (2, 3)


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((), {}, r"'x' is missing: the program takes \(x: \*, scale: \*\)"),
        ((X,), {}, "argument 'scale' is missing"),
        ((X, {"bias": [X]}), {"scale": X}, "'extra' .* was compiled without this argument"),
        ((X,), {"scale": X, "nonsense": 1}, r"nonsense=\*"),
        ((X, None, X, X), {}, "is given"),
        (([X, X],), {"scale": torch.tensor(1.0)}, r"'x'|x"),
    ],
)
def test_wrong_structures_show_both_trees(nested, args, kwargs, words):
    _, program, _ = nested
    with pytest.raises(ArgumentError, match=words):
        program(*args, **kwargs)


def test_errors_name_the_argument_by_its_path():
    program = irees.compile(Nested().eval(), (X, {"bias": [torch.ones(3)]}))
    with pytest.raises(ArgumentError, match=r"extra\['bias'\]\[0\]"):
        program(X, {"bias": [torch.ones(4)]})
    with pytest.raises(ArgumentError, match=r"extra is .*'other'.* keys 'bias'"):
        program(X, {"other": [torch.ones(3)]})
    with pytest.raises(ArgumentError, match="float64"):
        program(X.double(), {"bias": [torch.ones(3)]})


def test_numbers_are_compiled_in():
    program = irees.compile(lambda x, n: x * n, (X, 3))
    torch.testing.assert_close(program(X, 3), X * 3)
    with pytest.raises(ArgumentError, match="n is 4, but the program was compiled for 3"):
        program(X, 4)


def test_pickle_copy_save_keep_the_signature(nested, tmp_path):
    model, program, scale = nested
    if not isinstance(program, irees.Program):
        pytest.skip("an interpreted program cannot be saved")
    wanted = model(X, scale=scale)["y"]
    program.save(tmp_path / "p.irees")
    for again in (
        pickle.loads(pickle.dumps(program)), copy.deepcopy(program),
        irees.load(tmp_path / "p.irees"),
    ):  # fmt: skip
        torch.testing.assert_close(again(X, scale=scale)["y"], wanted)
        assert repr(again) == repr(program) == "<irees program (x: *, scale: *) on cpu>"
    code = (
        "import irees, numpy as np, sys;"
        f"p = irees.load({str(tmp_path / 'p.irees')!r});"
        "r = p(np.ones((2, 4), 'f'), scale=np.float32(3));"
        "assert r['rest'][1:] == [None, 3] and isinstance(r['y'], np.ndarray);"
        "assert 'torch' not in sys.modules and 'xdsl' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@dataclasses.dataclass
class Pair:
    total: torch.Tensor
    product: torch.Tensor
    count: int = 2


def test_functions_dataclasses_and_an_argument_that_is_given_twice():
    program = irees.compile(lambda a, b: Pair(a + b, a - b), (X, X))
    found = program(X, X + 1)
    assert isinstance(found, Pair)
    assert found.count == 2
    torch.testing.assert_close(found.product, torch.full_like(X, -1))
    with pytest.raises(ArgumentError, match="'a' is given twice"):
        program(X, X, a=X)


def test_dynamic_shapes_and_sizes_as_results():
    batch = torch.export.Dim("batch", min=2)
    program = irees.compile(
        lambda x: (x.sum(0), x.shape[0] * 2), (X,), dynamic_shapes={"x": {0: batch}}
    )
    found = program(torch.ones(5, 4))
    assert found[0].tolist() == [5.0] * 4
    assert found[1] == 10


def test_sizes_that_must_agree_are_checked():
    batch = torch.export.Dim("batch", min=2)
    shapes = {"x": {0: batch}, "y": {0: batch}}
    program = irees.compile(lambda x, y: x + y, (X, X + 1), dynamic_shapes=shapes)
    with pytest.raises(ArgumentError, match="must equal"):
        program(torch.ones(5, 4), torch.ones(6, 4))


class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(x)


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_buffers_are_state(target, tmp_path):
    model = Norm().train()
    program = irees.compile(model, (X,), target=target)
    for step in range(3):
        torch.testing.assert_close(program(X + step), model(X + step))
    for name, buffer in model.named_buffers():
        np.testing.assert_allclose(program.state[name], buffer.numpy(), rtol=1e-6)
    program.state["norm.running_mean"] = torch.zeros(4)
    assert program.state["norm.running_mean"].tolist() == [0.0] * 4
    with pytest.raises(ArgumentError, match="no state 'nonsense'"):
        program.state["nonsense"] = torch.zeros(4)
    with pytest.raises(ArgumentError, match="must be"):
        program.state["norm.running_mean"] = torch.zeros(5)
    if target == "cpu":
        program.save(tmp_path / "p.irees")
        again = irees.load(tmp_path / "p.irees")
        assert again.state["norm.num_batches_tracked"] == 3


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.register_buffer("count", torch.zeros(()))

    def encode(self, x, *, scale=2):
        self.count += 1
        return self.linear(x) * scale + self.count


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_a_bound_method_has_the_state_of_its_module(target):
    model = Counter()
    program = irees.compile(copy.deepcopy(model).encode, (X,), target=target)
    for _ in range(3):
        torch.testing.assert_close(program(X), model.encode(X))
    assert program.state["count"] == 3


class Cache(torch.nn.Module):
    def forward(self, cache, position, row):
        cache[:, position] = row
        return cache, cache.sum()


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_arguments_are_written_where_they_are(target):
    example = (torch.zeros(2, 8, 4), torch.tensor([3]), torch.ones(2, 1, 4))
    program = irees.compile(Cache(), example, target=target)
    cache = torch.zeros(2, 8, 4)
    found, total = program(cache, torch.tensor([5]), torch.ones(2, 1, 4))
    assert found is cache
    assert total == cache[:, 5].sum() == cache.sum() == 8
    array = np.zeros((2, 8, 4), np.float32)
    assert program(array, np.array([1]), np.ones((2, 1, 4), np.float32))[0] is array
    assert array[:, 1].sum() == array.sum() == 8
    array.flags.writeable = False
    with pytest.raises(ArgumentError, match=r"cache.* is written to"):
        program(array, np.array([1]), np.ones((2, 1, 4), np.float32))


def test_what_cannot_be_compiled_says_why():
    with pytest.raises(ArgumentError, match="needs example inputs"):
        irees.compile(Nested())
    with pytest.raises(UnsupportedError, match="'x' is sparse"):
        irees.compile(lambda x: x * 2, (X.to_sparse(),))
    with pytest.raises(UnsupportedError, match="'x' is on meta"):
        irees.compile(lambda x: x * 2, (X.to("meta"),))


def test_function_transforms():
    rows = irees.compile(lambda x: torch.vmap(lambda r: (r * r).cumsum(0))(x), (X,))
    torch.testing.assert_close(rows(X), (X * X).cumsum(1))
    cubes = irees.compile(lambda x: torch.func.jvp(lambda y: y**3, (x,), (x,))[1], (X,))
    torch.testing.assert_close(cubes(X + 1), 3 * (X + 1) ** 3)
    # PyTorch's export above autograd would make a constant of the example.
    slope = irees.compile(lambda x: torch.func.grad(lambda y: (y.sin() ** 2).sum())(x), (X,))
    torch.testing.assert_close(slope(X + 1), (2 * (X + 1)).sin())


def test_scripted_modules_are_refused():
    with pytest.raises(UnsupportedError, match="TorchScript"):
        irees.compile(torch.jit.script(torch.nn.Linear(4, 3)), (X,))


def test_scripted_parts_are_refused_by_name():
    model = torch.nn.Sequential(torch.nn.ReLU(), torch.jit.trace(torch.nn.Linear(4, 4), X))
    with pytest.raises(UnsupportedError, match="TorchScript programs are not supported: '1' is"):
        irees.compile(model, (X,))


def test_hints_for_what_is_not_traced():
    with pytest.raises(UnsupportedError, match="call the module once before"):
        irees.compile(torch.nn.LazyLinear(3), (X,))
    with pytest.raises(UnsupportedError, match="use PyTorch's functions instead of NumPy's"):
        irees.compile(lambda x: torch.from_numpy(np.sin(x.numpy())), (X,))


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_arguments_that_do_not_fit_are_named_by_their_paths(target):
    compiled = irees.compile(lambda d: d["k"][0] * 2, ({"k": [X]},), target=target)
    wrong = {
        r"d\['k'\]\[0\].*has rank 1": X[0],
        r"d\['k'\]\[0\].*dtype torch.float64": X.double(),
        r"d\['k'\]\[0\].*is a sparse tensor": X.to_sparse(),
        r"d\['k'\]\[0\].*is a meta tensor": X.to("meta"),
        r"d\['k'\]\[0\].*is a str": "text",
    }
    for message, value in wrong.items():
        with pytest.raises(ArgumentError, match=message):
            compiled({"k": [value]})


def test_a_size_is_a_size(tmp_path):
    def program(x):
        return {"whole": x.size(), "rest": x.shape[1:], "x": x + 1}

    dims = ({0: torch.export.Dim.DYNAMIC},)
    compiled = irees.compile(program, (X,), dynamic_shapes=dims)
    compiled.save(tmp_path / "sizes.irees")
    for each in (compiled, irees.load(tmp_path / "sizes.irees")):
        found = each(torch.ones(5, 4))
        assert found["whole"] == torch.Size([5, 4])
        assert type(found["whole"]) is type(found["rest"]) is torch.Size


def test_a_class_of_another_kind_is_no_tuple():
    tree = {"kind": "tuple", "class": "subprocess:Popen", "children": ["*", "*"]}
    assert trees.unflatten(tree, iter([1, 2])) == (1, 2)
    with pytest.raises(ParseError):
        trees.check_tree({**tree, "class": 3})


def test_a_call_that_failed_leaves_nothing():
    def reshaped(x):
        try:
            return x.reshape(5, 5)
        except RuntimeError:
            return x.reshape(6, 4) + 1

    x = torch.arange(24.0).reshape(4, 6)
    assert torch.equal(irees.compile(reshaped, (x,), target="reference")(x), reshaped(x))


def test_tensors_without_elements_are_refused():
    ragged = torch.nested.nested_tensor([torch.ones(3), torch.ones(2)], layout=torch.jagged)
    with pytest.raises(UnsupportedError, match="an argument is nested"):
        irees.compile(lambda x: x * 2, (ragged,))
    linear = lambda x, t: torch.func.linearize(torch.sin, x)[1](t)  # noqa: E731
    with pytest.raises(UnsupportedError, match="is a tensor without elements"):
        irees.compile(linear, (torch.ones(3), torch.ones(3)))


class Shifted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("base", torch.arange(3.0))
        self.plain = torch.arange(3.0)

    def forward(self, x):
        return x + self.base * 10 + self.plain * 100


@pytest.mark.parametrize("name", ["base", "plain"])
def test_an_example_may_be_a_tensor_that_the_program_holds(name):
    """PyTorch's export takes the argument for the weight, or the weight for the argument."""
    model = Shifted()
    program = irees.compile(model, (getattr(model, name),), target="reference")
    x = torch.ones(3)
    assert torch.equal(program(x), model(x))
    held = model.base
    other = irees.compile(
        lambda x: x.sum() + held, (held,), dynamic_shapes=({0: torch.export.Dim.AUTO},)
    )
    assert torch.equal(other(x[:2]), x[:2].sum() + held)


def test_graphs_of_fx_return_plain_lists_and_dicts():
    class Several(torch.nn.Module):
        def forward(self, x):
            return {"y": x + 1, "rest": [x, (x * 2,)]}

    traced = torch.fx.symbolic_trace(Several())
    found = irees.compile(traced, (X,), target="reference")(X)
    assert type(found) is dict
    assert type(found["rest"]) is list
    torch.testing.assert_close(found, traced(X))


class Color(enum.Enum):
    RED = 1


class Attributes(dict):
    """A dict whose attributes are its items."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.__dict__ = self


class Tagged(dict):
    """A dict that cannot be constructed from a dict, with an attribute."""

    def __init__(self, tag, number, **items):
        super().__init__(**items)
        self.tag, self.number = tag, number


class Ordered(collections.OrderedDict):
    pass


MAPPINGS = {
    "attributes": lambda **items: Attributes(items, inner=Attributes(items)),
    "tagged": lambda **items: Tagged("t", 3, **items),
    "ordered": lambda **items: Ordered(items),
    "user": lambda **items: collections.UserDict(items),
}


@pytest.mark.parametrize("name", MAPPINGS)
def test_classes_derived_from_dict_are_arguments_and_results(name, tmp_path):
    make = MAPPINGS[name]

    def f(given):
        return make(b=given["b"] * len(given), a=given["a"]), getattr(given, "tag", None)

    given = make(b=X, a=X + 1)
    program, wanted = irees.compile(f, (given,)), f(given)
    program.save(tmp_path / "p")
    for each in (program, irees.load(tmp_path / "p")):
        found, tag = each(given)
        assert type(found) is type(wanted[0])
        assert (list(found), tag) == (list(wanted[0]), wanted[1])
        torch.testing.assert_close(torch.as_tensor(found["b"]), wanted[0]["b"])
        assert getattr(found, "tag", None) == tag
    assert getattr(program(given)[0], "number", 3) == 3
    if name == "attributes":
        assert type(program(given)[0].inner) is Attributes


def test_namespaces_are_arguments_and_results():
    def f(given):
        return types.SimpleNamespace(y=given.x * given.n, n=4)

    program = irees.compile(f, (types.SimpleNamespace(x=X, n=3),), target="reference")
    found = program(types.SimpleNamespace(x=X, n=3))
    assert (type(found), found.n) == (types.SimpleNamespace, 4)
    torch.testing.assert_close(found.y, X * 3)
    with pytest.raises(ArgumentError, match="n is 5, not 3"):
        program(types.SimpleNamespace(x=X, n=5))


def test_classes_of_a_function_are_those_of_results():
    pair = collections.namedtuple("pair", "first second")

    @dataclasses.dataclass
    class Sum:
        value: torch.Tensor
        count: int = 2

    class Items(dict):
        pass

    def f(x):
        return pair(x, Sum(x + 1)), Items(x=x * 2)

    found, items = irees.compile(f, (X,), target="reference")(X)
    assert (type(found), type(found.second), type(items)) == (pair, Sum, Items)
    assert found.second.count == 2


def test_keys_of_any_kind(tmp_path):
    def f(given):
        return {(1, "a"): given[2, 3], None: given[Color.RED] + 1, Color.RED: X, 1.5: X}

    given = {(2, 3): X, Color.RED: X * 2}
    program = irees.compile(f, (given,))
    program.save(tmp_path / "p")
    for each in (program, irees.load(tmp_path / "p")):
        found = each(given)
        assert list(found) == [(1, "a"), None, Color.RED, 1.5]
        torch.testing.assert_close(torch.as_tensor(found[None]), X * 2 + 1)
    with pytest.raises(ArgumentError, match=r"a dict with the keys \(2, 3\), <Color.RED: 1>"):
        program({(2, 3): X})
    with pytest.raises(UnsupportedError, match="a key of a dict is an object of"):
        irees.compile(lambda x: {object(): x}, (X,), target="reference")


def test_results_that_are_constants(tmp_path):
    def f(x, color):
        return x + 1, x.dtype, x.device, Color.RED, color, {"a", "b"}, slice(1, 2), 2 + 3j

    program, wanted = irees.compile(f, (X, Color.RED)), f(X, Color.RED)
    program.save(tmp_path / "p")
    for each in (program, irees.load(tmp_path / "p")):
        assert each(X, Color.RED)[1:] == wanted[1:]


def test_a_key_of_a_manifest_must_be_hashable():
    tree = {"kind": "dict", "keys": [{"list": []}], "children": ["*"]}
    with pytest.raises(ParseError, match="cannot be one of a dict"):
        trees.unflatten(tree, iter([1]))


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_bytes_that_are_returned_with_two_dtypes(target):
    """i8 has no sign in the IR, and a float of 8 bits is stored as i8."""

    def program(x):
        x.add_(1)
        return x.to(torch.int8), x.to(torch.uint8), x.view(torch.float8_e5m2)

    x = torch.tensor([3, 200, 60], dtype=torch.uint8)
    results = irees.compile(program, (x.clone(),), target=target)(x.clone())
    for result, expected in zip(results, program(x.clone()), strict=True):
        assert result.dtype == expected.dtype
        assert torch.equal(result.view(torch.uint8), expected.view(torch.uint8))


def test_an_exported_gradient_of_a_pooling_is_refused():
    """Tensors inside of a transform have no memory of their own."""

    class Slope(torch.nn.Module):
        def forward(self, x):
            pooled = torch.nn.functional.avg_pool3d
            return torch.func.grad(lambda v: pooled(v, 3, 2, 1).square().sum())(x)

    x = torch.randn(1, 2, 7, 6, 5)
    exported = torch.export.export(Slope().eval(), (x,))
    with pytest.raises(UnsupportedError, match="cannot functionalize"):
        irees.compile(exported)
