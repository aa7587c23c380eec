"""
PyTorch's operator database as programs: each sample input of an operator as a function of tensors.

    for case in cases("float32", limit=2): case.check(compile)

A sample's tensors are arguments, all else is closed over. What may differ between two right
answers is compared as what it is for: results that are not initialised by shape, orders of equal
elements by the values that they pick, factorizations by their product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from nearness import as_near
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

UNINITIALISED = {
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
}  # fmt: skip
"""Operators whose elements may be anything: shape and dtype are compared."""

ORDERS = {"sort", "topk", "argsort", "msort", "kthvalue", "mode", "median", "nanmedian"}
"""Operators whose indices are free among equal elements: what they pick is compared."""

FACTORS = {"svd", "linalg.svd", "linalg.eigh"}
"""Operators whose vectors are free in sign, phase and basis: what they multiply to is compared."""

EIGEN = {"linalg.eig", "linalg.eigvals"}
"""Operators whose values have no order, and whose vectors are free in phase."""

RANDOM = {
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "uniform", "nn.functional.dropout",
    "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.alpha_dropout",
    "nn.functional.feature_alpha_dropout", "nn.functional.rrelu", "torch.ops.aten._safe_softmax",
    "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d", "normal.in_place",
    "normal.number_mean", "poisson", "pca_lowrank", "svd_lowrank", "nn.functional.multi_head_attention_forward",
} - {"torch.ops.aten._safe_softmax"}  # fmt: skip
"""Operators that draw numbers: shape, dtype and finiteness are compared."""

NO_TENSOR = {
    "item", "allclose", "equal", "broadcast_shapes", "to_sparse", "sparse.sampled_addmm",
    "sparse.mm", "is_complex", "is_floating_point",
}  # fmt: skip
"""Operators whose results are no dense tensors, left out."""

DEFAULT_TOLERANCE = {
    torch.float32: (1.3e-6, 1e-5), torch.float64: (1e-7, 1e-7), torch.bfloat16: (1.6e-2, 1e-5),
    torch.float16: (1e-3, 1e-5), torch.complex64: (1.3e-6, 1e-5), torch.complex128: (1e-7, 1e-7),
}  # fmt: skip

OFF_IN_EAGER = {
    "special.bessel_j0": 1e-6, "special.bessel_j1": 1e-6, "special.bessel_y0": 1e-6,
    "special.bessel_y1": 1e-6,
}  # fmt: skip
"""How far eager's own answer in f64 is from the function; test_builder_numeric.py has the latter."""

WIDER = {
    torch.float32: torch.float64, torch.bfloat16: torch.float64, torch.float16: torch.float64,
    torch.complex64: torch.complex128, torch.int64: torch.float64,
}  # fmt: skip
"""In which dtype an answer is taken for the exact one."""


@dataclass
class Case:
    """One sample of an operator."""

    op: Any
    number: int
    sample: Any
    dtype: torch.dtype

    @property
    def name(self) -> str:
        """The operator's name in the database."""
        variant = self.op.variant_test_name
        return f"{self.op.name}.{variant}" if variant else self.op.name

    def program(
        self, dtype: torch.dtype | None = None
    ) -> tuple[Callable[..., Any], list[torch.Tensor]]:
        """The sample as a function of its tensors; what asks for its dtype, asks for `dtype`."""
        leaves, spec = tree_flatten((self.sample.input, self.sample.args, self.sample.kwargs))
        leaves = [(dtype or x) if x is self.dtype else x for x in leaves]
        places = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
        op = self.op

        def run(*tensors: torch.Tensor) -> Any:
            filled = list(leaves)
            for place, tensor in zip(places, tensors):
                filled[place] = tensor
            first, args, kwargs = tree_unflatten(filled, spec)
            return op(first, *args, **kwargs)

        return run, [leaves[i].detach().clone() for i in places]

    def compare(self, got: Any, want: Any) -> str | None:
        """Why the answer is wrong; None where it is right."""
        mine = [_as_tensor(t) for t in tree_leaves(got) if not isinstance(t, bool | int | float)]
        theirs = [t for t in tree_leaves(want) if isinstance(t, torch.Tensor)]
        if len(mine) != len(theirs):
            return f"{len(mine)} results, not {len(theirs)}"
        for i, (g, w) in enumerate(zip(mine, theirs)):
            if g.shape != w.shape or g.dtype != w.dtype:
                return f"result {i} is {g.dtype} {list(g.shape)}, not {w.dtype} {list(w.shape)}"
        if self.op.name in UNINITIALISED or self.op.name in RANDOM or self.name in RANDOM:
            return None
        if self.sample.kwargs.get("dropout_p"):
            return None
        if self.op.name in ORDERS:
            return self._compare_order(mine, theirs)
        if self.op.name in EIGEN:
            return self._compare_eigen(mine, theirs)
        if self.op.name in FACTORS and len(theirs) > 1 and any(t.any() for t in theirs[::2]):
            return self._compare_factors(mine, theirs)
        wide: list[torch.Tensor] | None = None
        for i, (g, w) in enumerate(zip(mine, theirs)):
            if (why := self._differ(g, w)) is None:
                continue
            wide = self._wider_answer() if wide is None else wide
            if not (i < len(wide) and as_near(g, w, wide[i])):
                return f"result {i}: {why}"
        return None

    def _wider_answer(self) -> list[torch.Tensor]:
        """What eager answers to the same sample in f64; nothing where it does not take that."""
        wide = WIDER.get(self.dtype)
        if wide is None:
            return []
        function, tensors = self.program(wide)
        try:
            got = function(*[t.to(wide) if t.dtype == self.dtype else t for t in tensors])
        except Exception:  # an operator without a kernel for f64
            return []
        return [t for t in tree_leaves(got) if isinstance(t, torch.Tensor)]

    def _differ(self, g: torch.Tensor, w: torch.Tensor) -> str | None:
        rtol, atol = DEFAULT_TOLERANCE.get(w.dtype, (0, 0))
        off = OFF_IN_EAGER.get(self.name, 0.0)
        rtol, atol = max(rtol, self._loosened(0), off), max(atol, self._loosened(1), off)
        try:
            torch.testing.assert_close(g, w, rtol=rtol, atol=atol, equal_nan=True)
        except AssertionError as error:
            return " ".join(str(error).split())[:160]
        return None

    def _loosened(self, index: int) -> float:
        """What the database itself allows for this operator and dtype on a CPU."""
        found = 0.0
        for each in self.op.decorators:
            for inner in getattr(each, "decorators", [each]):
                overrides = getattr(inner, "overrides", None)
                if isinstance(overrides, dict) and self.dtype in overrides:
                    found = max(found, overrides[self.dtype][index])
        return found

    def _compare_order(self, mine: list[torch.Tensor], theirs: list[torch.Tensor]) -> str | None:
        values = [i for i, t in enumerate(theirs) if t.dtype == self.dtype][:1]
        for i in values:
            if (why := self._differ(mine[i], theirs[i])) is not None:
                return f"result {i}: {why}"
        return None

    def _compare_eigen(self, mine: list[torch.Tensor], theirs: list[torch.Tensor]) -> str | None:
        x = self.sample.input.to(torch.complex128)
        if not x.numel():
            return None
        values, wanted = (t[0].to(torch.complex128) for t in (mine, theirs))
        allowed = 20 * x.shape[-1] * torch.finfo(self.dtype).eps
        scale = x.abs().max().clamp(min=1e-30)
        far = (values.unsqueeze(-1) - wanted.unsqueeze(-2)).abs()
        error = torch.stack([far.amin(-1), far.amin(-2)]).max() / scale
        if len(mine) > 1:
            vectors = mine[1].to(torch.complex128)
            rest = (x @ vectors - vectors * values.unsqueeze(-2)).abs().max() / scale
            error = torch.stack([error, rest, (vectors.norm(dim=-2) - 1).abs().max()]).max()
        return None if error <= allowed else f"values or vectors are off by {error.item()}"

    def _compare_factors(self, mine: list[torch.Tensor], theirs: list[torch.Tensor]) -> str | None:
        x = self.sample.input.to(torch.complex128)
        numbers = 0 if self.op.name == "linalg.eigh" else 1
        if (why := self._differ(mine[numbers], theirs[numbers])) is not None:
            return f"result {numbers}: {why}"
        wide = [t.to(torch.complex128) for t in mine]
        if numbers == 0:
            lower = self.sample.kwargs.get("UPLO", "L") == "L"
            half = x.tril(-1) if lower else x.triu(1)
            x = half + half.mH + torch.diag_embed(x.diagonal(dim1=-2, dim2=-1).real).to(x.dtype)
            left, values, right = wide[1], wide[0], wide[1].mH
        else:
            left, values = wide[:2]
            right = wide[2].mH if self.op.name == "svd" else wide[2]
        count = values.shape[-1]
        product = left[..., :count] @ torch.diag_embed(values) @ right[..., :count, :]
        if not x.numel():
            return None
        allowed = 20 * max(x.shape[-2:]) * torch.finfo(self.dtype).eps
        error = ((product - x).abs().max() / x.abs().max().clamp(min=1e-30)).item()
        for vectors in (left.mH @ left, right @ right.mH):
            eye = torch.eye(vectors.shape[-1], dtype=vectors.dtype)
            error = max(error, (vectors - eye).abs().max().item())
        return None if error <= allowed else f"the factors are off by {error}"


def _as_tensor(value: Any) -> torch.Tensor:
    """A result as a tensor: the reference interpreter answers with numpy's arrays."""
    if isinstance(value, torch.Tensor):
        return value
    if value.dtype.name == "bfloat16":
        return torch.from_numpy(value.view("i2")).view(torch.bfloat16)
    return torch.as_tensor(value)


def cases(
    dtype: str, limit: int | None = None, only: str = "", exact: bool = False
) -> Iterator[Case]:
    """The samples of a dtype, `limit` of each operator at most."""
    kind = getattr(torch, dtype)
    for op in op_db:
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        if kind not in op.dtypes or op.name in NO_TENSOR or op.name.startswith("jiterator"):
            continue
        if (name != only) if exact else (only not in name):
            continue
        torch.manual_seed(0)
        try:
            for number, sample in enumerate(op.sample_inputs("cpu", kind, requires_grad=False)):
                if limit is not None and number >= limit:
                    break
                yield Case(op, number, sample, kind)
        except Exception:  # the database cannot make inputs for itself here
            continue
