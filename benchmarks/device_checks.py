"""
What `first_day.py` runs on a device: programs, their inputs and what they must answer.

A check is small enough that its answer is computed on the host at once: by numpy where sums of whole
numbers are exact in any order, and otherwise by irees itself, compiled for the CPU. One program per
kernel design and data path, so that a wrong answer names the part that is wrong: products of
warpgroups with and without bulk copies, in each order of their operands, of one slot and of many.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import irees
from irees.target import Target

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "backends" / "cuda"))
import kernels

DTYPES = {
    "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32), "f64": np.dtype(np.float64), "i8": np.dtype(np.int8),
}  # fmt: skip
THREADS = {"disable_pass": ("irees-gpu-use-bulk-copies",)}
"""The options with which threads copy what otherwise the bulk copy engine does."""
ORDERS = tuple(f"{left}; {right}" for left in ("m, k", "k, m") for right in ("k, n", "n, k"))

Arrays = list[np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Check:
    """
    A program that the device runs, and how far its answer may be from the expected one.

    `sizes` are those of dynamic dims, in order. `inputs` and `answer` make the arguments and the
    results, where whole numbers and the CPU will not do. `tolerance` is relative to the largest
    number of a result. A check that is `small` runs under compute-sanitizer too. With `warps` the
    matrix instructions of one warp are used, although the device has those of four.
    """

    name: str
    text: str
    sizes: tuple[int, ...] = ()
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    inputs: Callable[[Arrays], Arrays] | None = None
    answer: Callable[..., Arrays] | None = None
    tolerance: float = 0.0
    small: bool = False
    warps: bool = False

    def target(self, target: Target) -> Target:
        """The target that it is compiled for."""
        if not self.warps or target.gpu is None:
            return target
        return replace(target, gpu=replace(target.gpu, warpgroup_kinds=()))

    def compiled(self, target: Target) -> Any:
        """The program for a device."""
        return irees.compile(self.text, target=self.target(target), **self.options)

    def arguments(self, program: Any) -> Arrays:
        """Whole numbers of the types of a program's arguments, or what `inputs` makes of them."""
        random, sizes = np.random.default_rng(0), iter(self.sizes)
        made: Arrays = []
        for spec in next(iter(program.functions.values())).arguments:
            shape = tuple(next(sizes) if n is None else n for n in spec.shape)
            made.append(random.integers(-3, 4, shape).astype(spec.dtype))
        return self.inputs(made) if self.inputs is not None else made

    def expected(self, arguments: Arrays) -> Arrays:
        """The right results."""
        if self.answer is not None:
            return self.answer(*arguments)
        program = irees.compile(self.text, **{k: v for k, v in self.options.items() if k == "fp"})
        found = program(*(x.copy() for x in arguments))
        return list(found) if isinstance(found, tuple) else [found]


def product_of(order: str) -> Callable[..., Arrays]:
    """a * b in f32, or in i64 where they are integers, of operands in that order."""
    left, right = (side.strip() for side in order.split(";"))

    def answer(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> Arrays:
        # Sums of whole numbers below 2^24 are exact, and BLAS takes floats.
        a, b = a.astype(np.float32), b.astype(np.float32)
        return [(a if left == "m, k" else a.T) @ (b if right == "k, n" else b.T)]

    return answer


def product(
    name: str, m: int, n: int, k: int, element: str, order: str = "m, k; k, n", **given: Any
) -> Check:
    """A product of whole numbers, which must be exact."""
    text = kernels.widening_matmul(m, n, k, element, order)
    return Check(name, text, answer=product_of(order), **given)


def warpgroups() -> list[Check]:
    """wgmma: both data types, all orders of operands, one slot and the ring, both kinds of copy."""
    found: list[Check] = []
    for way, options in (("threads", THREADS), ("boxes", {})):
        for order in ORDERS:
            for k in (64, 136, 1024):
                name = f"{way}, {order}, k = {k}"
                found.append(product(name, 1536, 1408, k, "f16", order, options=options))
        found.append(product(f"{way}, bf16", 1536, 1408, 1024, "bf16", options=options))
        found.append(product(f"{way}, cut edges", 1500, 1400, 1000, "f16", options=options))
        name = f"{way}, few tiles"
        found.append(product(name, 768, 768, 136, "f16", options=options, small=True))
        text = kernels.narrowed_matmul(3072, 1536, 4096, "f16")
        found.append(Check(f"{way}, narrowed", text, options=options, answer=halves))
        text = kernels.activated_matmul(1024, 1280, 512)
        found.append(Check(f"{way}, bias and relu", text, options=options, tolerance=1e-3))
    return found


def halves(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> Arrays:
    """a * b of whole numbers in f16, rounded once."""
    return [(a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)]


def products() -> list[Check]:
    """mma.sync and plain products: every data type, order, cut edges, few rows, Stream-K."""
    found: list[Check] = []
    for element in ("f16", "bf16", "i8"):
        for order in ORDERS:
            name = f"mma {element}, {order}"
            found.append(product(name, 264, 200, 328, element, order, warps=True))
        name = f"mma {element}, odd"
        found.append(product(name, 133, 71, 77, element, warps=True, small=True))
    for order in ORDERS:
        name = f"mma tf32, {order}"
        options = {"allow_tf32": True}
        found.append(product(name, 264, 200, 328, "f32", order, options=options))
        found.append(product(f"f32, {order}", 264, 200, 328, "f32", order))
    for m in (1, 16, 64, 128):
        found.append(product(f"bf16, m = {m}", m, 4096, 4096, "bf16"))
    found.append(product("f32, m = 1", 1, 4096, 4096, "f32"))
    found.append(product("f32, n = 1", 4096, 1, 4096, "f32"))
    found.append(product("Stream-K bf16", 64, 4096, 11008, "bf16"))
    found.append(product("Stream-K f32", 40, 64, 8192, "f32", small=True))
    for element in ("f32", "f64"):
        text = kernels.matmul("?", "?", "?", element)
        found.append(Check(f"dynamic {element}", text, (133, 77, 77, 71, 71), answer=plus))
    text = kernels.followed_matmul(150, 153, 509)
    found.append(Check("followed f32", text, tolerance=1e-5))
    return found


def plus(a: Any, b: Any, c: Any) -> Arrays:
    """a * b + c"""
    return [a @ b + c]


def numbers(arrays: Arrays) -> Arrays:
    """Normal numbers in place of whole ones."""
    random = np.random.default_rng(1)
    return [
        random.standard_normal(x.shape).astype(x.dtype) if x.dtype.kind in "fV" else x
        for x in arrays
    ]


def keyed(arrays: Arrays) -> Arrays:
    """Distinct keys, and beside them where each stands."""
    random = np.random.default_rng(2)
    keys, *rest = arrays
    count = keys.shape[-1]
    rows = [random.permutation(count) - count // 2 for _ in range(keys.size // count)]
    places = [np.broadcast_to(np.arange(count), x.shape).astype(x.dtype) for x in rest]
    return [np.reshape(rows, keys.shape).astype(keys.dtype), *places]


def placed(arrays: Arrays) -> Arrays:
    """Indices within the target, some of them outside."""
    target, updates, indices = arrays
    random = np.random.default_rng(3)
    return [target, updates, random.integers(-1, target.shape[0] + 1, indices.shape, indices.dtype)]


def started(arrays: Arrays) -> Arrays:
    """An argmax that begins with nothing."""
    rows, best, where = arrays
    keys = keyed([rows])[0]
    return [keys, np.full_like(best, -np.inf), np.zeros_like(where)]


def rest() -> list[Check]:
    """Every other kernel design."""
    k, c = kernels, Check
    return [
        c("elementwise", k.elementwise(), small=True),
        c("dynamic elementwise", k.elementwise("?", 33, "f16"), (1000, 1000)),
        c("row sums", k.row_sums(512, 4096)),
        c("one row", k.row_sums("?", "?", "i64"), (1, 100000)),
        c("column sums", k.column_sums(4096, 512)),
        c("softmax", k.softmax(640, 1000), inputs=numbers, tolerance=1e-5, small=True),
        c("group norm", k.group_norm(32, 26214), inputs=numbers, tolerance=1e-4),
        c("transpose", k.transpose(1000, "?"), (1030, 1030)),
        c("argmax", k.argmax(3, 32000), inputs=started),
        c("argmax of rows", k.argmax("?", 1000, "f16"), (700, 700, 700), inputs=started),
        c("convolution", k.convolution(58, 64, 64)),
        c("attention f32", k.attention(2, 200, 333, 64), inputs=numbers, tolerance=1e-5),
        c("attention bf16", k.attention(4, 1024, 1000, 64, "bf16"), inputs=numbers,
          tolerance=1e-2),
        c("attention f16", k.attention(2, 100, 200, 64, "f16"), inputs=numbers,
          tolerance=2e-3, small=True),
        c("attention masked", k.attention(2, 256, 256, 128, "f16", "f32"), inputs=numbers,
          tolerance=2e-3),
        c("sort", k.sort(8, 4096), inputs=keyed, small=True),
        c("sort of doubles", k.sort(8, 4096, "f64"), inputs=keyed),
        c("dynamic sort", k.sort("?", "?"), (5, 3000, 5, 3000), inputs=keyed),
        c("sort of one row", k.sort(1, 1 << 20), inputs=keyed),
        c("short sort", k.sort(8, 40), inputs=keyed),
        c("topk", k.topk(64, 4096, 1000), inputs=keyed, small=True),
        c("topk of many rows", k.topk(200, 20000, 64, "f32"), inputs=keyed),
        c("scatter", k.scatter(64, 64), (300, 300), inputs=placed, small=True),
        c("scatter of many elements", k.scatter_of([1 << 20], [1 << 20], 1), inputs=placed),
        c("scatter of large slices", k.scatter_of([1000, 1 << 12], [60], 1), inputs=placed),
    ]  # fmt: skip


STEPS: dict[str, Callable[[], Sequence[Check]]] = {
    "kernels": rest,
    "warpgroups": warpgroups,
    "products": products,
}


def difference(found: np.ndarray[Any, Any], right: np.ndarray[Any, Any], tolerance: float) -> str:
    """What is wrong with a result, or an empty string; where it is wrong helps to find out why."""
    if found.shape != right.shape:
        return f"shape {found.shape}, not {right.shape}"
    a, b = found.astype(np.float64), right.astype(np.float64)
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=0.0)) or 1.0
    with np.errstate(invalid="ignore"):
        wrong = ~((np.abs(a - b) <= tolerance * scale) | (a == b) | (np.isnan(a) & np.isnan(b)))
    if not wrong.any():
        return ""
    places = np.argwhere(wrong)
    parts = [f"{len(places)} of {a.size} wrong"]
    for place in places[:4]:
        at = tuple(int(x) for x in place)
        parts.append(f"{list(at)}: {a[at]:.6g}, not {b[at]:.6g}")
    for dim in range(a.ndim):
        residues = sorted({int(x) % 64 for x in places[:, dim]})
        parts.append(f"dim {dim} mod 64 in {residues if len(residues) < 17 else 'many'}")
    return "; ".join(parts)


def run(check: Check, target: Target, calls: int = 3) -> str:
    """Calls the program several times, with fresh arrays; what is wrong, or an empty string."""
    program = check.compiled(target)
    arguments = check.arguments(program)
    expected = check.expected(arguments)
    for number in range(calls):
        found = program(*(x.copy() for x in arguments))
        results = list(found) if isinstance(found, tuple) else [found]
        for place, (mine, right) in enumerate(zip(results, expected, strict=True)):
            if said := difference(np.asarray(mine), np.asarray(right), check.tolerance):
                return f"call {number}, result {place}: {said}"
    return ""
