"""Convolutions by tiles of F(4, 3) and F(2, 3) give what the direct sum gives, within their rounding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from irees.dialects import get_context
from irees.frontends.mlir import import_mlir
from irees.remarks import collect
from irees.testing import profiles
from irees.testing.oracles import Case, compiled_results, interpret
from irees.transforms import load_pass

FACTOR = profiles.load()
ROUNDING = 64 * 2.0**-23
"""Of the largest sum of products without their signs."""

LAYOUTS = {
    # loops of the output, dims of the image, of the filter; what is left is summed
    "nchw": ("bchw", "bkHW", "ckpq"),
    "nhwc": ("bhwc", "bHWk", "pqkc"),
    "hw swapped": ("bcwh", "bkWH", "ckqp"),
    "image of one order, output of another": ("chw", "HWk", "kpqc"),
    "blocked": ("bnhwc", "bmHWi", "nmpqic"),
    "image as it came": ("nhwc", "kHW", "nkpqc"),
    "depthwise": ("bchw", "bcHW", "cpq"),
    "depthwise nhwc": ("hwc", "HWc", "pqc"),
    "grouped": ("gchw", "gkHW", "gckpq"),
    "summed over a dim the filter lacks": ("chw", "mkHW", "ckpq"),
    "one channel": ("hw", "HW", "pq"),
}


@dataclass(frozen=True)
class Convolution:
    """A convolution: its text, and its operands by letter for numpy."""

    text: str
    image: np.ndarray
    filters: np.ndarray
    low: tuple[int, int]
    size: tuple[int, int]
    einsum: str
    axes: tuple[int, int]

    def direct(self, image: np.ndarray, filters: np.ndarray) -> np.ndarray:
        """The sum as it is written, in f64."""
        pad, cut = [(0, 0)] * image.ndim, [slice(None)] * image.ndim
        for axis, low, size in zip(self.axes, self.low, self.size, strict=True):
            pad[axis] = (low, max(0, size + 2 - low - image.shape[axis]))
            cut[axis] = slice(0, size + 2)
        padded = np.pad(image.astype(np.float64), pad)[tuple(cut)]
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), self.axes)
        return np.einsum(self.einsum, windows, filters.astype(np.float64))

    def bound(self) -> float:
        return ROUNDING * float(self.direct(abs(self.image), abs(self.filters)).max(initial=0.0))


def generic(loops: str, reads: list[str], operands: str, out: str, body: str) -> str:
    """A linalg.generic without its result name; loops: `chw/kpq`."""
    parallel, reduced = loops.split("/")
    dims = ", ".join(parallel + reduced)
    index = {"H": "h + p", "W": "w + q"}
    maps = ", ".join(
        f"affine_map<({dims}) -> ({', '.join(index.get(d, d) for d in r)})>" for r in reads
    )
    kinds = ", ".join(['"parallel"'] * len(parallel) + ['"reduction"'] * len(reduced))
    return (
        f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {operands} {{\n"
        f"{body}\n}} -> {out}"
    )


def convolution(data: DataObject, layout: str) -> Convolution:
    """A random convolution of that layout, perhaps padded just before."""

    def some(*choices):
        return data.draw(st.sampled_from(choices))

    written, seen, taps = LAYOUTS[layout]
    sizes = {d: some(1, 2, 3, 4, 8) for d in "bckgmni"} | {"p": 3, "q": 3}
    sizes |= {"h": some(1, 2, 3, 4, 5, 8, 11), "w": some(1, 4, 6, 7, 12)}
    low = (some(0, 1, 2), some(0, 1))
    high = (some(0, 1, 3), some(0, 1))
    padded = some(True, True, False)
    # An image may reach past the last window.
    more = (0, 0) if padded else (some(0, 0, 1, 9), some(0, 0, 3))
    whole = sizes | {"H": sizes["h"] + 2 + more[0], "W": sizes["w"] + 2 + more[1]}
    own = dict(whole)
    if padded:
        low, high = (
            (tuple(min(a, 1) for a in t) for t in (low, high)) if some(True, False) else (low, high)
        )
        own |= {d: max(1, whole[d] - a - b) for d, a, b in zip("HW", low, high, strict=True)}
        # Where the image is too small for it, less is padded.
        low = tuple(min(a, whole[d] - own[d]) for d, a in zip("HW", low, strict=True))
    else:
        low = (0, 0)

    def kind(dims: str, of: dict[str, int]) -> str:
        return f"tensor<{'x'.join([*(str(of[d]) for d in dims), 'f32'])}>"

    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    image = random.standard_normal([own[d] for d in seen]).astype(np.float32)
    filters = random.standard_normal([sizes[d] for d in taps]).astype(np.float32)
    reduced = [d for d in dict.fromkeys(seen + taps) if d not in written and d not in "HW"]
    loops = f"{written}/{''.join(reduced)}"
    lines, source = [], "%x"

    def zeros(name: str, dims: str, of: dict[str, int]) -> None:
        letters = "".join("hwpq"["HWPQ".index(d)] if d in "HW" else d for d in dims)
        lines.append(f"{name}e = tensor.empty() : {kind(dims, of)}")
        body = "^bb0(%a: f32): linalg.yield %zero : f32"
        fill = generic(
            f"{letters}/", [letters], f"outs({name}e : {kind(dims, of)})", kind(dims, of), body
        )
        lines.append(f"{name} = {fill}")

    shared = padded and some(False, False, True)
    if padded:
        zeros("%around", seen, whole)
        offsets = ", ".join(str(low["HW".index(d)]) if d in "HW" else "0" for d in seen)
        counts = ", ".join(str(own[d]) for d in seen)
        lines.append(
            f"%i = tensor.insert_slice %x into %around[{offsets}] [{counts}]"
            f" [{', '.join('1' for _ in seen)}] : {kind(seen, own)} into {kind(seen, whole)}"
        )
        source = "%i"
    zeros("%f", written, sizes)
    bits = filters.tobytes().hex()
    first = some(True, False)
    reads = [seen, taps] if first else [taps, seen]
    names = [source, "%w"] if first else ["%w", source]
    kinds = [kind(seen, whole), kind(taps, sizes)]
    kinds = kinds if first else kinds[::-1]
    out = kind(written, sizes)
    body = (
        "^bb0(%a: f32, %b: f32, %c: f32):\n%p = arith.mulf %a, %b : f32\n"
        "%s = arith.addf %c, %p : f32\nlinalg.yield %s : f32"
    )
    operands = f"ins({', '.join(names)} : {', '.join(kinds)}) outs(%f : {out})"
    lines.append(f"%r = {generic(loops, [*reads, written], operands, out, body)}")
    results = [("%r", out)] + ([("%i", kind(seen, whole))] if shared else [])
    types = ", ".join(k for _, k in results)
    text = (
        f"func.func @main(%x: {kind(seen, own)}) -> ({types}) {{\n"
        "%zero = arith.constant 0.0 : f32\n"
        f"%w = arith.constant dense_resource<w> : {kind(taps, sizes)}\n"
        + "\n".join(lines)
        + f"\nreturn {', '.join(n for n, _ in results)} : {types}\n}}\n"
        f'{{-# dialect_resources: {{ builtin: {{ w: "0x04000000{bits}" }} }} #-}}\n'
    )
    windows = seen.replace("H", "h").replace("W", "w") + "pq"
    axes = (seen.index("H"), seen.index("W"))
    size = (sizes["h"], sizes["w"])
    return Convolution(text, image, filters, low, size, f"{windows},{taps}->{written}", axes)


def converted(conv: Convolution, outputs: int):
    """The module after the pass, which took the convolution by F(outputs, 3)."""
    module = import_mlir(conv.text)
    with collect() as remarks:
        options = {"least_gain": 0.0, "outputs": (outputs,)}
        load_pass("irees-convert-conv2d-to-winograd")(**options).apply(get_context(), module)
    module.verify()
    assert [r.kind for r in remarks] == ["passed"]
    return module


def check(results, conv: Convolution) -> None:
    wanted = conv.direct(conv.image, conv.filters)
    assert results[0].shape == wanted.shape
    assert abs(results[0] - wanted).max(initial=0.0) <= conv.bound()


@settings(max_examples=120 * FACTOR)
@given(st.data(), st.sampled_from(sorted(LAYOUTS)), st.sampled_from((4, 2)))
def test_tiles_give_the_direct_sum(data, layout, outputs):
    conv = convolution(data, layout)
    case = Case("main", (conv.image,))
    before = interpret(import_mlir(conv.text), [case])["main"]
    module = converted(conv, outputs)
    after = interpret(module, [case])["main"]
    check(before, conv)
    check(after, conv)
    # A padded image that is read elsewhere is still what it was.
    assert all(np.array_equal(a, b) for a, b in zip(before[1:], after[1:], strict=True))
    inserts = sum(o.name == "tensor.insert_slice" for o in module.walk())
    event(f"{inserts} paddings{', shared' if len(after) > 1 else ''}")


@settings(max_examples=12 * FACTOR)
@given(st.data(), st.sampled_from(sorted(LAYOUTS)), st.sampled_from((4, 2)))
def test_compiled_tiles_give_the_direct_sum(data, layout, outputs):
    conv = convolution(data, layout)
    check(compiled_results(converted(conv, outputs), [Case("main", (conv.image,))])["main"], conv)


@pytest.mark.parametrize(("outputs", "bound"), [(4, 8e-7), (2, 5e-7)])
def test_rounding_of_many_channels(outputs, bound):
    """F(4, 3) by MLIR's points, 0, +-1 and +-2, is off by twice as much."""
    random = np.random.default_rng(0)
    image = np.maximum(random.standard_normal((64, 18, 18)), 0).astype(np.float32)
    filters = random.standard_normal((4, 64, 3, 3)).astype(np.float32)
    kinds = "tensor<64x18x18xf32>", "tensor<4x64x3x3xf32>", "tensor<4x16x16xf32>"
    body = (
        "^bb0(%a: f32, %b: f32, %c: f32):\n%p = arith.mulf %a, %b : f32\n"
        "%s = arith.addf %c, %p : f32\nlinalg.yield %s : f32"
    )
    fill = "^bb0(%a: f32): linalg.yield %zero : f32"
    operands = f"ins(%x, %w : {kinds[0]}, {kinds[1]}) outs(%f : {kinds[2]})"
    text = (
        f"func.func @main(%x: {kinds[0]}) -> {kinds[2]} {{\n%zero = arith.constant 0.0 : f32\n"
        f"%w = arith.constant dense_resource<w> : {kinds[1]}\n%e = tensor.empty() : {kinds[2]}\n"
        f"%f = {generic('chw/', ['chw'], f'outs(%e : {kinds[2]})', kinds[2], fill)}\n"
        f"%r = {generic('chw/kpq', ['kHW', 'ckpq', 'chw'], operands, kinds[2], body)}\n"
        f"return %r : {kinds[2]}\n}}\n"
        f'{{-# dialect_resources: {{ builtin: {{ w: "0x04000000{filters.tobytes().hex()}" }} }} #-}}'
    )
    conv = Convolution(text, image, filters, (0, 0), (16, 16), "khwpq,ckpq->chw", (1, 2))
    wanted = conv.direct(image, filters)
    (found,) = compiled_results(converted(conv, outputs), [Case("main", (image,))])["main"]
    assert np.linalg.norm(found - wanted) <= bound * np.linalg.norm(wanted)
