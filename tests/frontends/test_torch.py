"""PyTorch programs: their names, their memory, their errors."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX

from irees.dialects.resources import blob_of, constant_array
from irees.errors import ArgumentError, UnsupportedError

WAY = "needs torch: pip install 'irees[torch]'"
torch = pytest.importorskip("torch", reason=WAY)

import irees  # noqa: E402
from irees.frontends.torch import import_torch  # noqa: E402


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 8)
        self.scale = torch.nn.Parameter(torch.randn(8, dtype=torch.bfloat16))
        self.register_buffer("mask", torch.arange(8) > 3)

    def forward(self, x):
        return torch.where(self.mask, self.linear(x), x[:, :8]), self.scale * self.scale


def resources(module):
    return {
        str(op.value.resource_handle.data): op.value
        for op in module.walk()
        if op.name == "arith.constant" and op.value.name == "dense_resource"
    }


def test_weights_are_the_tensors_memory_under_their_names():
    model = Model().eval()
    found = resources(import_torch(model, (torch.randn(4, 16),)))
    assert {"linear.weight", "linear.bias", "scale"} <= set(found)
    weight = constant_array(found["linear.weight"])
    assert np.shares_memory(weight, model.linear.weight.detach().numpy())
    np.testing.assert_array_equal(
        constant_array(found["scale"]).astype(np.float32), model.scale.detach().float().numpy()
    )
    assert all(blob_of(attr).size for attr in found.values())


def test_dynamic_shapes_and_exported_programs():
    batch = torch.export.Dim("batch")
    model = Model().eval()
    module = import_torch(model, (torch.randn(4, 16),), ({0: batch},))
    func = next(op for op in module.walk() if op.name == "func.func")
    assert func.function_type.inputs.data[0].get_shape() == (DYNAMIC_INDEX, 16)
    exported = torch.export.export(model, (torch.randn(4, 16),), dynamic_shapes=({0: batch},))
    again = import_torch(exported, function="f")
    func = next(op for op in again.walk() if op.name == "func.func")
    assert func.sym_name.data == "f"
    assert func.function_type.inputs.data[0].get_shape() == (DYNAMIC_INDEX, 16)


def test_unsigned_results_stay_unsigned():
    class Image(torch.nn.Module):
        def forward(self, x):
            return x.to(torch.uint8), x.to(torch.int8), x.max().to(torch.uint8), x > 0

    x = torch.tensor([200, 3, -1])
    for target in ("cpu", "reference"):
        program = irees.compile(Image(), (x,), target=target)
        found = [np.asarray(r) for r in program(x.numpy())]
        assert [r.dtype.name for r in found] == ["uint8", "int8", "uint8", "bool"]
        assert [r.tolist() for r in found] == [
            [200, 3, 255], [-56, 3, -1], 200, [True, True, False]
        ]  # fmt: skip
    found = irees.compile(Image(), (x,))(x)
    assert [r.dtype for r in found] == [torch.uint8, torch.int8, torch.uint8, torch.bool]


def test_ops_know_their_line_of_python():
    module = import_torch(Model().eval(), (torch.randn(4, 16),))
    matmul = next(op for op in module.walk() if op.name == "arith.mulf")
    assert "test_torch.py" in str(matmul.location)


def helper(x):
    return torch.linalg.ldl_factor(x)[0]


def test_ops_outside_of_a_forward_know_their_line():
    class Calls(torch.nn.Module):
        def forward(self, x):
            return helper(x + 1)

    line = helper.__code__.co_firstlineno + 1
    for program in (helper, Calls()):
        with pytest.raises(UnsupportedError, match=rf"test_torch\.py:{line}:0: error: .*ldl"):
            irees.compile(program, (torch.randn(3, 3),))


def test_generators_are_refused_by_name():
    def draws(x):
        return x + torch.rand(3, generator=torch.Generator().manual_seed(3))

    with pytest.raises(UnsupportedError, match=r"test_torch\.py:.* from a torch\.Generator"):
        irees.compile(draws, (torch.randn(3),))


def test_what_cannot_be_exported_says_so():
    class Branch(torch.nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(UnsupportedError, match=r"torch\.export"):
        import_torch(Branch(), (torch.randn(3),))
    with pytest.raises(ArgumentError, match=r"nn\.Module"):
        import_torch(3)
