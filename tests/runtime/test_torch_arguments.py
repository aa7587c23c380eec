"""Tensors of torch without elements in memory are refused by name, by every entry that takes one."""

from __future__ import annotations

import numpy as np
import pytest

import irees
from irees.errors import ArgumentError, IreesError, OutOfMemoryError
from irees.runtime.torch_tensors import address_of, plain_types

torch = pytest.importorskip("torch")

TEXT = """
func.func @f(%x: tensor<?xf32> {iree.identifier = "x"}, %y: tensor<?xf32>) -> tensor<?xf32> {
  %z = arith.addf %x, %y : tensor<?xf32>
  return %z : tensor<?xf32>
}
"""


class Mine(torch.Tensor):
    """As torchvision's images: plain elements, another class."""


class Wrapper(torch.Tensor):
    """Its elements are those of another tensor."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError


def resized(size: int, *, strided: bool = False) -> torch.Tensor:
    tensor = torch.ones(6)[::2] if strided else torch.ones(3)
    tensor.untyped_storage().resize_(size)
    return tensor


def fake() -> torch.Tensor:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.ones(3)


def masked() -> torch.Tensor:
    from torch.masked import masked_tensor

    return masked_tensor(torch.ones(3), torch.ones(3).bool())


ODD = {
    "fake": (fake, "a FakeTensor"),
    "zero": (lambda: torch._efficientzerotensor(3), "zeros without storage"),
    "freed": (lambda: resized(0), "storage has 0 bytes"),
    "cut": (lambda: resized(8), "storage has 8 bytes"),
    "cut with strides": (lambda: resized(16, strided=True), "storage has 16 bytes"),
    "functional": (lambda: torch._to_functional_tensor(torch.ones(3)), "a functional tensor"),
    "meta": (lambda: torch.ones(3, device="meta"), "a meta tensor"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(3), torch.ones(2)]), "nested tensor"),
    "jagged": (
        lambda: torch.nested.nested_tensor([torch.ones(3)], layout=torch.jagged),
        "nested tensor",
    ),
    "sparse": (lambda: torch.ones(3).to_sparse(), "a sparse tensor"),
    "sparse rows": (lambda: torch.ones(3, 3).to_sparse_csr(), "a sparse tensor"),
    "mkldnn": (lambda: torch.ones(3).to_mkldnn(), "a sparse tensor"),
    "subclass": (lambda: Wrapper(torch.ones(3)), "a Wrapper, a subclass of Tensor"),
    "masked": (masked, "a MaskedTensor, a subclass"),
    "uninitialized": (torch.nn.parameter.UninitializedParameter, "an UninitializedParameter"),
    "quantized": (lambda: torch.quantize_per_tensor(torch.ones(3), 1.0, 0, torch.qint8), "qint8"),
}
GOOD = {
    "plain subclass": lambda: torch.arange(3.0).as_subclass(Mine),
    "dense": lambda: torch.arange(3.0),
    "parameter": lambda: torch.nn.Parameter(torch.arange(3.0)),
    "buffer": lambda: torch.nn.Buffer(torch.arange(3.0)),
    "part": lambda: torch.arange(-1.0, 9)[1:4],
    "strided": lambda: torch.arange(6.0).reshape(3, 2)[:, 0] / 2,
    "view with steps": lambda: torch.tensor([0.0, 9, 1, 9, 2])[::2],
    "expanded": lambda: torch.arange(3.0).expand(1, 3)[0],
    "negative": lambda: torch.complex(torch.zeros(3), -torch.arange(3.0)).conj().imag,
    "lazy copy": lambda: torch._lazy_clone(torch.arange(3.0)),
    "flipped": lambda: torch.tensor([2.0, 1, 0]).flip(0),
}


WRITES = """
func.func @f(%x: memref<?xf32>, %y: memref<?xf32>) {
  linalg.add ins(%x, %y : memref<?xf32>, memref<?xf32>) outs(%x : memref<?xf32>)
  linalg.add ins(%x, %y : memref<?xf32>, memref<?xf32>) outs(%y : memref<?xf32>)
  return
}
"""


@pytest.fixture(scope="module", params=["cpu", "reference", "cuda-emulated", "devices"])
def program(request):
    if request.param == "devices":
        return irees.compile(TEXT, devices={"dev_0": "cpu:0"})
    return irees.compile(TEXT, target=request.param)


@pytest.mark.parametrize(("make", "words"), ODD.values(), ids=ODD)
@pytest.mark.parametrize("place", [0, 1])
def test_odd_tensors_are_refused_by_name(program, make, words, place):
    arguments = [np.ones(3, np.float32)] * 2
    arguments[place] = make()
    with pytest.raises(ArgumentError, match=f"argument {place}.*{words}"):
        program(*arguments)


@pytest.mark.parametrize(("make", "words"), ODD.values(), ids=ODD)
@pytest.mark.parametrize("place", [0, 1])
def test_odd_tensors_are_not_written(make, words, place):
    arguments = [np.ones(3, np.float32), np.ones(3, np.float32)]
    arguments[place] = make()
    with pytest.raises(ArgumentError, match=f"argument {place}.*{words}"):
        irees.compile(WRITES)(*arguments)


@pytest.mark.parametrize("make", GOOD.values(), ids=GOOD)
def test_dense_tensors_are_taken(program, make):
    result = program(make().detach(), torch.ones(3))
    assert result.tolist() == [1.0, 2.0, 3.0]


def test_function_transforms(program):
    def call(x):
        with pytest.raises(ArgumentError, match=r"argument 0.*(vmap, grad|functional)"):
            program(x, torch.ones(3))
        return x.sum()

    torch.vmap(call)(torch.ones(2, 3))
    torch.func.grad(call)(torch.ones(3))
    torch.func.functionalize(call)(torch.ones(3))


def test_empty_tensors_need_no_storage(program):
    assert program(torch.empty(0), resized(0)[:0]).shape == (0,)


NUMBER = """
func.func @f(%x: f32) -> f32 {
  %z = arith.addf %x, %x : f32
  return %z : f32
}
"""


@pytest.mark.parametrize("name", ["fake", "meta", "zero", "functional"])
def test_numbers_that_are_tensors(name):
    odd = {
        "fake": lambda: fake().sum(),
        "meta": lambda: torch.ones((), device="meta"),
        "zero": lambda: torch._efficientzerotensor(()),
        "functional": lambda: torch._to_functional_tensor(torch.ones(())),
    }[name]()
    program = irees.compile(NUMBER)
    if name in ("zero", "functional"):  # they have a value, which is copied
        assert program(odd) == (0.0 if name == "zero" else 2.0)
        return
    with pytest.raises(ArgumentError, match="argument 0"):
        program(odd)


def test_updated_arguments():
    class Adds(torch.nn.Module):
        def forward(self, x):
            x.add_(1)
            return x * 2

    program = irees.compile(Adds(), (torch.ones(3),))
    for name in ("fake", "zero", "freed", "cut", "functional", "meta", "subclass"):
        make, words = ODD[name]
        with pytest.raises(ArgumentError, match=words):
            program(make())
    x = torch.ones(3)
    assert program(x).tolist() == [4.0] * 3
    assert x.tolist() == [2.0] * 3


def test_a_compiled_graph_checks_storage():
    """PyTorch's guards look at sizes and strides, not at storages."""
    compiled = torch.compile(lambda x: x * 2 + 1, backend="irees")
    x = torch.ones(3)
    assert compiled(x).tolist() == [3.0] * 3
    x.untyped_storage().resize_(0)
    with pytest.raises(ArgumentError, match="storage has 0 bytes"):
        compiled(x)
    columns = torch.ones(4, 3).t().contiguous().t()
    assert compiled(columns).shape == (4, 3)


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.complex64, torch.int8]
)
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_dtypes_of_torch(dtype, target):
    names = {
        torch.bfloat16: "bf16", torch.float16: "f16", torch.complex64: "complex<f32>",
        torch.int8: "i8", torch.float8_e4m3fn: "f8E4M3FN",
    }  # fmt: skip
    kind = "tensor<2xf32>".replace("f32", names[dtype])
    text = f"func.func @f(%x: {kind}) -> {kind} {{ return %x : {kind} }}"
    try:
        program = irees.compile(text, target=target)
    except IreesError:
        pytest.skip("the type is not compiled")
    x = torch.tensor([1, 2]).to(dtype)
    result = program(x)
    result = (
        result
        if isinstance(result, torch.Tensor)
        else torch.from_numpy(result.astype(np.complex128))
    )
    assert result.to(torch.complex64).tolist() == [1, 2]


def test_address_is_that_of_torch():
    x = torch.arange(9.0)[2:]
    assert address_of(x, "x") == x.data_ptr()
    assert plain_types() == (torch.Tensor, torch.nn.Parameter)


ROWS = "func.func @f(%x: tensor<?x4xf32>) -> tensor<?x4xf32> { return %x : tensor<?x4xf32> }"


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_views_with_more_rows_than_memory(target):
    program = irees.compile(ROWS, target=target)
    rows = torch.ones(4).expand(1 << 40, 4)
    views = [
        rows,
        rows.to(torch.float32),
        np.lib.stride_tricks.as_strided(np.ones(4, np.float32), (1 << 40, 4), (0, 4)),
    ]
    for view in views:
        with pytest.raises(OutOfMemoryError, match=r"argument 0.* takes 17592186044416 bytes"):
            program(view)
    swapped = np.lib.stride_tricks.as_strided(np.ones(4, ">f4"), (1 << 40, 4), (0, 4))
    with pytest.raises(OutOfMemoryError, match="argument 0"):
        program(swapped)
    few = torch.ones(4).expand(3, 4)
    assert program(few).shape == (3, 4)
