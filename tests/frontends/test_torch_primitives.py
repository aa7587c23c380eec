"""PyTorch's primitive operators against eager."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import irees  # noqa: E402
import irees.frontends.torch.importing  # noqa: E402  (fills the table)
from irees.errors import UnsupportedError  # noqa: E402
from irees.frontends.torch.calls import LOWERINGS  # noqa: E402
from irees.frontends.torch.primitives import DECOMPOSITIONS  # noqa: E402

prims = torch.ops.prims
X = torch.linspace(-0.9, 0.9, 12).reshape(3, 4)
Y = torch.linspace(0.5, 2.0, 12).reshape(3, 4)
N, M = torch.arange(12).reshape(3, 4), torch.arange(1, 13).reshape(3, 4)
C = torch.complex(X, Y)
ON_CPU = {"device": torch.device("cpu"), "requires_grad": False}

BY_KIND = {
    "bitwise": (N, M), "shift": (N, M % 5), "conj": (C,), "real": (C,), "imag": (C,), "gcd": (N, M),
}  # fmt: skip
"""Arguments by the beginning of a name; others take floats."""

OTHERS = {
    "amax": lambda: prims.amax(X, [1]), "amin": lambda: prims.amin(X, [0, 1]),
    "sum": lambda: prims.sum(X, [0]), "prod": lambda: prims.prod(Y, [0, 1]),
    "var": lambda: prims.var(X, [1], 1), "var_0": lambda: prims.var(X, [0], 0.0),
    "broadcast_in_dim": lambda: prims.broadcast_in_dim(X, [2, 3, 5, 4], [1, 3]),
    "cat": lambda: prims.cat([X + 0, Y + 0], 1), "collapse": lambda: prims.collapse(X, 0, 1),
    "convert_element_type": lambda: prims.convert_element_type(X * 10, torch.int32),
    "copy_strided": lambda: prims.copy_strided(X, [1, 3]),
    "device_put": lambda: prims.device_put(X, torch.device("cpu")),
    "div_of_integers": lambda: prims.div(N - 6, M),
    "fill": lambda: prims.fill(X, 2.0), "full_like": lambda: prims.full_like(X, 3, dtype=torch.int32, **ON_CPU),
    "full": lambda: prims.full([2, 3], 1.5, dtype=torch.float64, **ON_CPU),
    "iota": lambda: prims.iota(5, start=2, step=3, dtype=torch.int64, **ON_CPU),
    "reshape": lambda: prims.reshape(X, [4, 3]), "rev": lambda: prims.rev(X, [1]),
    "scalar_tensor": lambda: prims.scalar_tensor(2.5, dtype=torch.float16, device=torch.device("cpu")),
    "split_dim": lambda: prims.split_dim(X, 1, 2), "squeeze": lambda: prims.squeeze(X[None], [0]),
    "svd": lambda: prims.svd(X, full_matrices=False)[1],
    "transpose": lambda: prims.transpose(X, [1, 0]),
    "view_of_dtype": lambda: prims.view_of_dtype(X, torch.int32),
    "where": lambda: prims.where(X > 0, X, Y),
}  # fmt: skip


def elementwise():
    """Names of operators whose arguments are tensors of one shape."""
    for op in sorted({*LOWERINGS, *DECOMPOSITIONS}, key=str):
        if getattr(op, "namespace", "") == "prims" and op._opname not in (*OTHERS, "item"):
            kinds = {str(a.type) for a in op._schema.arguments}
            if kinds == {"Tensor"} and not op._schema.is_mutable:
                yield op._opname


def checked(function, arguments):
    want = function(*arguments)
    got = irees.compile(function, arguments, target="reference")(*arguments)
    torch.testing.assert_close(got, want, equal_nan=True)


@pytest.mark.parametrize("name", list(elementwise()))
def test_elementwise(name):
    op = getattr(prims, name).default
    given = next((v for k, v in BY_KIND.items() if name.startswith(k)), (X, Y))
    if name in ("acosh",):
        given = (Y + 1,)
    checked(op, given[: len(op._schema.arguments)])


@pytest.mark.parametrize("name", OTHERS)
def test_others(name):
    checked(OTHERS[name], ())


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x.softmax(3), "a tensor of rank 2 has no dim 3"),
        (lambda x: x.sort(-3), "a tensor of rank 2 has no dim -3"),
        (lambda x: x @ x.double().T, "float32, float64"),
        (lambda x: x[:, :1].expand(3, 2**21) @ x.half()[:1].expand(2**21, 3), "f32 and f16"),
        (lambda x: torch.nn.functional.linear(x, x.double()), "float32, float64"),
        (lambda x: torch.addmm(x.double(), x, torch.eye(3)), "float64, float32"),
        (lambda x: torch.nn.functional.conv1d(x[None], x[:, :, None].long()), "float32, int64"),
    ],
)
def test_what_only_eagers_kernels_refuse_is_refused(function, reason):
    """PyTorch's shapes of these calls are right, so that it exports them."""
    with pytest.raises(UnsupportedError, match=reason):
        irees.compile(function, (torch.ones(3, 3),), target="reference")
