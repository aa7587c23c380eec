"""
An optional pass may be left out, raise, or break the IR; each single rewrite may be left out, or
fail: the program is still right.
"""

from __future__ import annotations

from io import StringIO

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.printer import Printer

import irees
from irees import build
from irees.dialects import get_context
from irees.errors import ArgumentError, InternalError
from irees.frontends.mlir import import_mlir
from irees.hooks import Hooks
from irees.options import Options
from irees.pipeline import OPTIONAL, PHASES, phases, run_phases
from irees.remarks import collect
from irees.target import cpu_target
from irees.testing.faults import fail_rewrite, watch_rewrites

pytestmark = pytest.mark.passes_fail
FOR_WORKGROUPS = frozenset(
    ("irees-split-reductions", "irees-split-sorts", "irees-sort-out-of-place")
)
"""Passes of all targets that do nothing on a CPU."""
ON_CPU = (OPTIONAL & {p.name for phase in PHASES for p in phase.passes}) - FOR_WORKGROUPS
"""Those for GPUs are left out in tests/backends/cuda."""

PROGRAM = """
#rows = affine_map<(d0, d1) -> (d0, d1)>
#sums = affine_map<(d0, d1) -> (d0)>
func.func @main(%x: tensor<6x32xf32>) -> (tensor<6xf32>, tensor<1x6x40xf32>) {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<w> : tensor<32x40xf32>
  %e = tensor.empty() : tensor<6x32xf32>
  %n = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<6x32xf32>) outs(%e : tensor<6x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = arith.negf %a : f32
    linalg.yield %b : f32
  } -> tensor<6x32xf32>
  %v = tensor.empty() : tensor<6xf32>
  %s = linalg.fill ins(%zero : f32) outs(%v : tensor<6xf32>) -> tensor<6xf32>
  %r:2 = linalg.generic {indexing_maps = [#rows, #sums, #sums], iterator_types = ["parallel", "reduction"]} ins(%n : tensor<6x32xf32>) outs(%s, %s : tensor<6xf32>, tensor<6xf32>) {
  ^bb0(%a: f32, %p: f32, %q: f32):
    %b = arith.addf %a, %p : f32
    %c = arith.maximumf %a, %q : f32
    linalg.yield %b, %c : f32, f32
  } -> (tensor<6xf32>, tensor<6xf32>)
  %u = tensor.empty() : tensor<6x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%u : tensor<6x40xf32>) -> tensor<6x40xf32>
  %m = linalg.matmul ins(%n, %w : tensor<6x32xf32>, tensor<32x40xf32>) outs(%f : tensor<6x40xf32>) -> tensor<6x40xf32>
  %h = tensor.expand_shape %m [[0, 1], [2]] output_shape [1, 6, 40] : tensor<6x40xf32> into tensor<1x6x40xf32>
  return %r#0, %h : tensor<6xf32>, tensor<1x6x40xf32>
}
{-# dialect_resources: { builtin: { w: "0x04000000WEIGHT" } } #-}
"""
WEIGHT = np.arange(32 * 40, dtype=np.float32).reshape(32, 40) % 5
TEXT = PROGRAM.replace("WEIGHT", WEIGHT.tobytes().hex())


def is_right(program) -> bool:
    """Whole numbers: right is equal."""
    x = np.arange(6 * 32, dtype=np.float32).reshape(6, 32) % 7
    sums, product = program(x)
    return np.array_equal(sums, -x.sum(1)) and np.array_equal(product, (-x @ WEIGHT)[None])


def compile_anew():
    """A module is compiled each time; text might come from the cache, and meet no fault."""
    return irees.compile(import_mlir(TEXT))


def pass_class(name: str) -> type[ModulePass]:
    return next(type(p) for phase in PHASES for p in phase.passes if p.name == name)


def break_ir(module: ModuleOp) -> None:
    """Takes the results away that a function says it returns."""
    end = next(o for o in module.walk() if isinstance(o, func.ReturnOp) and o.operands)
    end.operands = []


def test_every_optional_pass_is_in_the_pipeline():
    for_gpu = {p.name for phase in phases(Options(target="cuda-emulated")) for p in phase.passes}
    assert ON_CPU | for_gpu >= OPTIONAL


@pytest.mark.parametrize("name", sorted(ON_CPU))
def test_one_pass_left_out(name):
    heard: list[str] = []
    program = irees.compile(
        import_mlir(TEXT), disable_pass=(name,), listener=lambda n, *_: heard.append(n)
    )
    assert is_right(program)
    assert name not in heard


def test_all_optional_passes_left_out():
    assert is_right(irees.compile(TEXT, disable_pass=tuple(OPTIONAL)))


@pytest.mark.parametrize("name", sorted(ON_CPU))
@pytest.mark.parametrize("fault", ["raises", "raises half way", "breaks the IR"])
def test_a_pass_that_fails_is_left_out(name, fault, monkeypatch):
    def apply(self, ctx, op):
        if fault != "raises":
            break_ir(op)
        if fault != "breaks the IR":
            raise IndexError("list index out of range")

    monkeypatch.setattr(pass_class(name), "apply", apply)
    with collect() as remarks:
        program = compile_anew()
    assert is_right(program)
    assert [r.pass_name for r in remarks if r.kind == "failed"] == [name]


@pytest.mark.parametrize("devices", [None, {"dev_0": "cpu:0"}], ids=["one target", "devices"])
@pytest.mark.parametrize("name", ["irees-pack-constant-operands", "irees-lower-contractions"])
def test_a_program_that_a_pass_was_left_out_of_is_not_kept(name, devices, monkeypatch):
    """What fails once, for want of memory say, may do its work the next time."""
    text = f"// {name} {devices}\n{TEXT}"

    def apply(self, ctx, op):
        raise MemoryError

    ran: list[frozenset[str]] = []
    real = build.run_phases

    def passes() -> list[frozenset[str]]:
        """What each run of the pipeline left out; empty for a program of the cache."""
        ran.clear()
        program = irees.compile(text, devices=devices)
        x = np.ones((6, 32), np.float32)
        np.testing.assert_array_equal(program(x)[1], (-x @ WEIGHT)[None])
        return list(ran)

    def noted(*args, **named):
        ran.append(left := real(*args, **named))
        return left

    # A patched compiler alone would keep the program out of the cache.
    monkeypatch.setattr(build, "is_altered", lambda module, options: False)
    monkeypatch.setattr(build, "run_phases", noted)
    with monkeypatch.context() as patched:
        patched.setattr(pass_class(name), "apply", apply)
        assert frozenset({name}) in passes()
    assert set(passes()) == {frozenset()}
    assert passes() == []


def test_a_pass_that_is_needed_is_reported(monkeypatch):
    def apply(self, ctx, op):
        raise IndexError("list index out of range")

    monkeypatch.setattr(pass_class("irees-bufferize-dispatch"), "apply", apply)
    with pytest.raises(InternalError, match="irees-bufferize-dispatch failed: IndexError"):
        compile_anew()


def test_a_needed_pass_that_fails_on_what_optional_passes_make(monkeypatch):
    """The program is compiled without optional passes, and the remark names the needed one."""
    name = "irees-verify-accesses"
    real = pass_class(name).apply

    def apply(self, ctx, op):
        if any(o.name == "memref.extract_strided_metadata" for o in op.walk()):
            raise InternalError("it is not shown that the place is inside")
        real(self, ctx, op)

    monkeypatch.setattr(pass_class(name), "apply", apply)
    with collect() as remarks:
        program = compile_anew()
    assert is_right(program)
    assert [r.pass_name for r in remarks if r.kind == "failed"] == [name]


def test_a_pass_that_is_needed_cannot_be_disabled():
    with pytest.raises(ArgumentError, match="unknown or mandatory pass 'irees-bufferize-dispatch'"):
        irees.compile(TEXT, disable_pass=("irees-bufferize-dispatch",))


INTEGERS = """
func.func @main(%x: tensor<?xi32>, %y: tensor<?xi32>) -> tensor<?xi32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xi32>
  %m = tensor.dim %x, %c0 : tensor<?xi32>
  %i = arith.index_cast %n : index to i64
  %c0_i64 = arith.constant 0 : i64
  %s = arith.addi %i, %c0_i64 : i64
  %k = arith.maxsi %s, %c0_i64 : i64
  %j = arith.index_cast %k : i64 to index
  %e = tensor.empty(%j) : tensor<?xi32>
  %o = tensor.empty(%m) : tensor<?xi32>
  %p = linalg.add ins(%x, %y : tensor<?xi32>, tensor<?xi32>) outs(%e : tensor<?xi32>) -> tensor<?xi32>
  %q = linalg.mul ins(%p, %y : tensor<?xi32>, tensor<?xi32>) outs(%o : tensor<?xi32>) -> tensor<?xi32>
  return %q : tensor<?xi32>
}
"""
TOPK = """
func.func @main(%x: tensor<2x64xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %v0 = iree_linalg_ext.sort dimension(1) outs(%x : tensor<2x64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.cmpf oge, %a, %b : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<2x64xf32>
  %v = tensor.extract_slice %v0[0, 0] [2, 4] [1, 1] : tensor<2x64xf32> to tensor<2x4xf32>
  %e = tensor.empty() : tensor<2x4xf32>
  %n = linalg.negf ins(%v : tensor<2x4xf32>) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  %m = linalg.negf ins(%n : tensor<2x4xf32>) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %v, %m : tensor<2x4xf32>, tensor<2x4xf32>
}
"""
LAYER = """
  %aN = linalg.reduce ins(%xN : tensor<1x8xf32>) outs(%f : tensor<1xf32>) dimensions = [1]
    (%p: f32, %q: f32) { %r = arith.addf %p, %q : f32 linalg.yield %r : f32 }
  %xM = linalg.generic {indexing_maps = [#i, #j, #ij], iterator_types = ["parallel", "parallel"]} ins(%aN, %w : tensor<1xf32>, tensor<8xf32>) outs(%e : tensor<1x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %r = arith.mulf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<1x8xf32>
"""
LAYERS = f"""
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>
#ij = affine_map<(i, j) -> (i, j)>
func.func @main(%x0: tensor<1x8xf32>) -> tensor<1x8xf32> {{
  %zero = arith.constant 0.0 : f32
  %v = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32>
  %w = tensor.collapse_shape %v [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
  %e = tensor.empty() : tensor<1x8xf32>
  %s = tensor.empty() : tensor<1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%s : tensor<1xf32>) -> tensor<1xf32>
{"".join(LAYER.replace("N", str(n)).replace("M", str(n + 1)) for n in range(3))}
  return %x3 : tensor<1x8xf32>
}}
"""


def integers_are_right(program) -> bool:
    x, y = np.arange(7, dtype=np.int32), np.arange(7, dtype=np.int32)[::-1].copy()
    return np.array_equal(program(x, y), (x + y) * y)


def topk_is_right(program) -> bool:
    x = np.random.default_rng(0).permutation(128).reshape(2, 64).astype(np.float32)
    best = -np.sort(-x, axis=1)[:, :4]
    return all(np.array_equal(each, best) for each in program(x))


def layers_are_right(program) -> bool:
    x, w = np.arange(8, dtype=np.float32)[None], np.arange(1, 9, dtype=np.float32)
    return np.array_equal(program(x), 28 * 36 * 36 * w[None])


CONVOLUTION = """\
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<IMAGExf32>, tensor<FILTERxf32>) outs(%f : tensor<RESULTxf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32"""


def convolution(image: str, weights: str, result: str) -> str:
    """%r[c, h, w] = %f + sum of %x[k, h + y, w + x] * %w[c, k, y, x], up to its result type"""
    sizes = {"IMAGE": image, "FILTER": weights, "RESULT": result}
    text = CONVOLUTION
    for name, size in sizes.items():
        text = text.replace(name, size)
    return text


PIXELS = """
#point = affine_map<(c, h, w) -> (c, h, w)>
#channel = affine_map<(c, h, w) -> (c)>
func.func @pixels(%x: tensor<3x8x8xf32>) -> tensor<16xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<WEIGHT> : tensor<16x3x3x3xf32>
  %k = arith.constant dense<SCALE> : tensor<16xf32>
  %e = tensor.empty() : tensor<16x6x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x6x6xf32>) -> tensor<16x6x6xf32>
CONVOLUTION
  } -> tensor<16x6x6xf32>
  %v = tensor.empty() : tensor<16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%v : tensor<16xf32>) -> tensor<16xf32>
  %m = linalg.generic {indexing_maps = [#point, #channel, #channel], iterator_types = ["parallel", "reduction", "reduction"]} ins(%r, %k : tensor<16x6x6xf32>, tensor<16xf32>) outs(%i : tensor<16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.maximumf %p, %zero : f32
    %s = arith.addf %c, %q : f32
    linalg.yield %s : f32
  } -> tensor<16xf32>
  return %m : tensor<16xf32>
}
"""
FILTER = np.arange(16 * 27, dtype=np.float32).reshape(16, 3, 3, 3) % 5 - 2
SCALE = np.arange(16, dtype=np.float32) % 3 - 1
PIXELS = PIXELS.replace("CONVOLUTION", convolution("3x8x8", "16x3x3x3", "16x6x6"))
PIXELS = PIXELS.replace("WEIGHT", str(FILTER.tolist())).replace("SCALE", str(SCALE.tolist()))


def pixels_are_right(program) -> bool:
    x = np.arange(3 * 64, dtype=np.float32).reshape(3, 8, 8) % 7
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))
    wanted = np.einsum("khwyx,ckyx->chw", windows, FILTER) * SCALE[:, None, None]
    return np.array_equal(program(x), np.maximum(wanted, 0).sum((1, 2)))


TILES = """
func.func @main(%x: tensor<18x18x16xf32>) -> tensor<16x16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<WEIGHT> : tensor<16x16x3x3xf32>
  %e = tensor.empty() : tensor<16x16x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16x16xf32>) -> tensor<16x16x16xf32>
CONVOLUTION
  } -> tensor<16x16x16xf32>
  return %r : tensor<16x16x16xf32>
}
"""
TILE_FILTER = np.arange(16 * 144, dtype=np.float32).reshape(16, 16, 3, 3) % 5 - 2
TILES = TILES.replace("CONVOLUTION", convolution("18x18x16", "16x16x3x3", "16x16x16"))
TILES = TILES.replace("-> (k, h + y, w + x)>", "-> (h + y, w + x, k)>")
TILES = TILES.replace("-> (c, h, w)>", "-> (h, w, c)>")
TILES = TILES.replace("WEIGHT", str(TILE_FILTER.tolist()))


def tiles_are_right(program) -> bool:
    """Sums of 144 products of at most 6 * 2, of which transforms lose some bits."""
    x = np.arange(16 * 324, dtype=np.float32).reshape(18, 18, 16) % 7
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (0, 1))
    wanted = np.einsum("hwkyx,ckyx->hwc", windows, TILE_FILTER)
    return np.abs(program(x) - wanted).max() <= 64 * 2.0**-23 * 144 * 12


STREAM = cpu_target().l3_bytes // 8
"""Floats of an output that takes half of the last cache."""

STREAMS = f"""
func.func @main(%x: tensor<{STREAM}xf32>) -> tensor<{STREAM}xf32> {{
  %e = tensor.empty() : tensor<{STREAM}xf32>
  %r = linalg.negf ins(%x : tensor<{STREAM}xf32>) outs(%e : tensor<{STREAM}xf32>)
      -> tensor<{STREAM}xf32>
  return %r : tensor<{STREAM}xf32>
}}
"""


def streams_are_right(program):
    x = np.arange(STREAM, dtype=np.float32)
    return np.array_equal(program(x), -x)


ROWS = max(8, cpu_target().l2_bytes // 4 // 1024)
"""Rows of 4 KiB that take the cache of a core."""

MEANS = f"""
#rows = affine_map<(d0, d1) -> (d0)>
#all = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%x: tensor<{ROWS}x1024xf32>) -> tensor<{ROWS}x1024xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{ROWS}xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<{ROWS}xf32>) -> tensor<{ROWS}xf32>
  %s = linalg.reduce {{ arith.addf }} ins(%x : tensor<{ROWS}x1024xf32>)
      outs(%f : tensor<{ROWS}xf32>) dimensions = [1]
  %g = tensor.empty() : tensor<{ROWS}x1024xf32>
  %r = linalg.generic {{indexing_maps = [#all, #rows, #all],
      iterator_types = ["parallel", "parallel"]}}
      ins(%x, %s : tensor<{ROWS}x1024xf32>, tensor<{ROWS}xf32>)
      outs(%g : tensor<{ROWS}x1024xf32>) {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    linalg.yield %d : f32
  }} -> tensor<{ROWS}x1024xf32>
  return %r : tensor<{ROWS}x1024xf32>
}}
"""


def means_are_right(program):
    x = np.arange(ROWS * 1024, dtype=np.float32).reshape(ROWS, 1024) % 8
    return np.array_equal(program(x), x - x.sum(1, keepdims=True))


def many_sums(count: int) -> str:
    """count times the element, added one by one."""
    sums = [f"    %{i} = arith.addf %{i - 1}, %0 : f32\n" for i in range(1, count)]
    return f"    %0 = arith.negf %a : f32\n{''.join(sums)}    linalg.yield %{count - 1} : f32\n"


HEAVY = f"""
#all = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<{ROWS * 1024}xf32>) -> tensor<{ROWS * 1024}xf32> {{
  %e = tensor.empty() : tensor<{ROWS * 1024}xf32>
  %r = linalg.generic {{indexing_maps = [#all, #all], iterator_types = ["parallel"]}}
      ins(%x : tensor<{ROWS * 1024}xf32>) outs(%e : tensor<{ROWS * 1024}xf32>) {{
  ^bb0(%a: f32, %o: f32):
{many_sums(20)}
  }} -> tensor<{ROWS * 1024}xf32>
  return %r : tensor<{ROWS * 1024}xf32>
}}
"""


def sums_are_right(program) -> bool:
    x = np.arange(ROWS * 1024, dtype=np.float32) % 8
    return np.array_equal(program(x), -20 * x)


POWERS = """
func.func @main(%x: tensor<64x1024xf32>) -> tensor<64x1024xf32> {
  %e = tensor.empty() : tensor<64x1024xf32>
  %r = linalg.softmax dimension(1) ins(%x : tensor<64x1024xf32>) outs(%e : tensor<64x1024xf32>) -> tensor<64x1024xf32>
  return %r : tensor<64x1024xf32>
}
"""


def powers_are_right(program) -> bool:
    x = np.random.default_rng(0).standard_normal((64, 1024), dtype=np.float32)
    powers = np.exp(x.astype(np.float64))
    right = powers / powers.sum(axis=1, keepdims=True)
    return np.allclose(program(x), right, rtol=16 * 2.0**-23, atol=0)


CHANNELS = """
#point = affine_map<(c, p) -> (c, p)>
#channel = affine_map<(c, p) -> (c)>
#one = affine_map<(c) -> (c)>
func.func @main(%x: tensor<6x5xf32>, %s: tensor<2x3xf32>) -> tensor<6x5xf32> {
  %i = arith.constant dense<[0, 0, 0, 1, 1, 1]> : tensor<6xi64>
  %j = arith.constant dense<[0, 1, 2, 0, 1, 2]> : tensor<6xi64>
  %e = tensor.empty() : tensor<2x3xf32>
  %n = linalg.negf ins(%s : tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %f = tensor.empty() : tensor<6xf32>
  %g = linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]} ins(%i, %j : tensor<6xi64>, tensor<6xi64>) outs(%f : tensor<6xf32>) {
  ^bb0(%a: i64, %b: i64, %o: f32):
    %p = arith.index_cast %a : i64 to index
    %q = arith.index_cast %b : i64 to index
    %v = tensor.extract %n[%p, %q] : tensor<2x3xf32>
    linalg.yield %v : f32
  } -> tensor<6xf32>
  %h = tensor.empty() : tensor<6x5xf32>
  %r = linalg.generic {indexing_maps = [#point, #channel, #point], iterator_types = ["parallel", "parallel"]} ins(%x, %g : tensor<6x5xf32>, tensor<6xf32>) outs(%h : tensor<6x5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<6x5xf32>
  return %r : tensor<6x5xf32>
}
"""


def channels_are_right(program) -> bool:
    x, s = np.arange(30, dtype=np.float32).reshape(6, 5), np.arange(6, dtype=np.float32)
    return np.array_equal(program(x, s.reshape(2, 3)), x * -s[:, None])


HALVES = """
#point = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%x: tensor<6x4xbf16>, %y: tensor<4x5xbf16>) -> tensor<6x5xbf16> {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<6x5xbf16>
  %f = linalg.fill ins(%zero : bf16) outs(%e : tensor<6x5xbf16>) -> tensor<6x5xbf16>
  %m = linalg.matmul ins(%x, %y : tensor<6x4xbf16>, tensor<4x5xbf16>) outs(%f : tensor<6x5xbf16>) -> tensor<6x5xbf16>
  %r = linalg.generic {indexing_maps = [#point, #point], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<6x5xbf16>) outs(%e : tensor<6x5xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %b = arith.subf %a, %zero : bf16
    %c = arith.maximumf %b, %zero : bf16
    linalg.yield %c : bf16
  } -> tensor<6x5xbf16>
  return %r : tensor<6x5xbf16>
}
"""


def halves_are_right(program) -> bool:
    """Sums of less than 256 are exact in bf16."""
    x = (np.arange(24, dtype=np.float32).reshape(6, 4) % 7 - 3).astype(ml_dtypes.bfloat16)
    y = (np.arange(20, dtype=np.float32).reshape(4, 5) % 5).astype(ml_dtypes.bfloat16)
    wanted = np.maximum(x.astype(np.float32) @ y.astype(np.float32), 0)
    return np.array_equal(program(x, y).astype(np.float32), wanted)


VARIANCES = """
#rows = affine_map<(d0, d1) -> (d0, d1)>
#sums = affine_map<(d0, d1) -> (d0)>
func.func @main(%x: tensor<6x8xf32>) -> (tensor<6xf64>, tensor<6xf32>) {
  %n = arith.constant 8.0 : f64
  %zero = arith.constant 0.0 : f64
  %zero32 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6xf64>
  %f = linalg.fill ins(%zero : f64) outs(%e : tensor<6xf64>) -> tensor<6xf64>
  %e32 = tensor.empty() : tensor<6xf32>
  %f32 = linalg.fill ins(%zero32 : f32) outs(%e32 : tensor<6xf32>) -> tensor<6xf32>
  %s = linalg.generic {indexing_maps = [#rows, #sums], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<6x8xf32>) outs(%f : tensor<6xf64>) {
  ^bb0(%a: f32, %o: f64):
    %w = arith.extf %a : f32 to f64
    %t = arith.addf %w, %o : f64
    linalg.yield %t : f64
  } -> tensor<6xf64>
  %q = linalg.generic {indexing_maps = [#rows, #sums, #sums], iterator_types = ["parallel", "reduction"]} ins(%x, %s : tensor<6x8xf32>, tensor<6xf64>) outs(%f : tensor<6xf64>) {
  ^bb0(%a: f32, %m: f64, %o: f64):
    %mean = arith.divf %m, %n : f64
    %w = arith.extf %a : f32 to f64
    %d = arith.subf %w, %mean : f64
    %d2 = arith.mulf %d, %d : f64
    %t = arith.addf %d2, %o : f64
    linalg.yield %t : f64
  } -> tensor<6xf64>
  %s32 = linalg.generic {indexing_maps = [#rows, #sums], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<6x8xf32>) outs(%f32 : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<6xf32>
  return %q, %s32 : tensor<6xf64>, tensor<6xf32>
}
"""


def variances_are_right(program) -> bool:
    """Eighths of whole numbers are exact."""
    x = (np.arange(48, dtype=np.float32).reshape(6, 8) * 5 % 11).astype(np.float32)
    squares, sums = program(x)
    wanted = ((x - x.mean(1, keepdims=True, dtype=np.float64)) ** 2).sum(1)
    return np.array_equal(squares, wanted) and np.array_equal(sums, x.sum(1))


QUOTIENTS = """
#id = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<6xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<6xf32>) outs(%e : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = arith.mulf %a, %a : f32
    %r = arith.divf %one, %d : f32
    %t = arith.mulf %a, %r : f32
    linalg.yield %t : f32
  } -> tensor<6xf32>
  return %y : tensor<6xf32>
}
"""


def quotients_are_right(program) -> bool:
    """Reciprocals of powers of two are exact."""
    x = np.array([1, 2, -4, 0.5, -0.25, 8], np.float32)
    return np.array_equal(program(x), 1 / x)


SLICES = """
func.func @main(%x: tensor<5x3xi32>, %u: tensor<4x3xi32>, %i: tensor<4x1xi32>) -> tensor<5x3xi32> {
  %r = iree_linalg_ext.scatter dimension_map = [0] unique_indices(false) ins(%u, %i : tensor<4x3xi32>, tensor<4x1xi32>) outs(%x : tensor<5x3xi32>) {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    iree_linalg_ext.yield %s : i32
  } -> tensor<5x3xi32>
  return %r : tensor<5x3xi32>
}
"""


def slices_are_right(program) -> bool:
    """Two updates of one row are added; one outside of the tensor is skipped."""
    x, u = np.arange(15, dtype=np.int32).reshape(5, 3), np.arange(12, dtype=np.int32).reshape(4, 3)
    want = x.copy()
    want[2] += u[0] + u[3]
    want[0] += u[1]
    return np.array_equal(program(x, u, np.array([[2], [0], [7], [2]], np.int32)), want)


RUNNING = """
func.func @main(%x: tensor<5x9xi64>) -> (tensor<5x9xi64>, tensor<5x9xi64>) {
  %e = tensor.empty() : tensor<5x9xi64>
  %zero = arith.constant 0 : i64
  %c = tensor.empty() : tensor<9xi64>
  %columns = linalg.fill ins(%zero : i64) outs(%c : tensor<9xi64>) -> tensor<9xi64>
  %r = tensor.empty() : tensor<5xi64>
  %rows = linalg.fill ins(%zero : i64) outs(%r : tensor<5xi64>) -> tensor<5xi64>
  %y, %a = iree_linalg_ext.scan dimension(0) inclusive(true) ins(%x : tensor<5x9xi64>) outs(%e, %columns : tensor<5x9xi64>, tensor<9xi64>) {
  ^bb0(%p: i64, %q: i64):
    %s = arith.addi %p, %q : i64
    iree_linalg_ext.yield %s : i64
  } -> tensor<5x9xi64>, tensor<9xi64>
  %z, %b = iree_linalg_ext.scan dimension(1) inclusive(false) ins(%x : tensor<5x9xi64>) outs(%e, %rows : tensor<5x9xi64>, tensor<5xi64>) {
  ^bb0(%p: i64, %q: i64):
    %s = arith.addi %p, %q : i64
    iree_linalg_ext.yield %s : i64
  } -> tensor<5x9xi64>, tensor<5xi64>
  return %y, %z : tensor<5x9xi64>, tensor<5x9xi64>
}
"""


def running_are_right(program) -> bool:
    """Sums of integers along both dims, the second without the element itself."""
    x = np.arange(45).reshape(5, 9) ** 3 % 17
    columns, rows = program(x)
    return np.array_equal(columns, x.cumsum(0)) and np.array_equal(rows, x.cumsum(1) - x)


NORMS = """
#point = affine_map<(c, p) -> (c, p)>
#row = affine_map<(c, p) -> (c)>
func.func @main(%x: tensor<256x16384xf32>) -> tensor<256x16384xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %s = linalg.generic {indexing_maps = [#point, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<256x16384xf32>) outs(%f : tensor<256xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %a, %o : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  %h = tensor.empty() : tensor<256x16384xf32>
  %r = linalg.generic {indexing_maps = [#point, #row, #point], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<256x16384xf32>, tensor<256xf32>) outs(%h : tensor<256x16384xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.addf %a, %b : f32
    %v = math.exp %d : f32
    %w = arith.addf %v, %one : f32
    %q = arith.divf %d, %w : f32
    linalg.yield %q : f32
  } -> tensor<256x16384xf32>
  return %r : tensor<256x16384xf32>
}
"""


def norms_are_right(program) -> bool:
    """The sum of a row is a small whole number."""
    x = np.zeros((256, 16384), np.float32)
    x[:, :12] = np.arange(-6, 6)
    x[:, 77] = np.arange(256) % 3
    d = x.astype(np.float64) + x.sum(1, keepdims=True)
    return np.allclose(program(x), d / (1 + np.exp(d)), rtol=8 * 2.0**-23, atol=0)


CACHE = """
func.func @main(%cache: tensor<8x4xf32>, %row: tensor<1x4xf32>, %i: index)
    -> (tensor<8x4xf32> {irees.updates = 0 : index}) {
  %0 = tensor.insert_slice %row into %cache[%i, 0] [1, 4] [1, 1]
      : tensor<1x4xf32> into tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""


def cache_is_right(program):
    """A row of an argument is replaced."""
    cache = np.arange(32, dtype=np.float32).reshape(8, 4)
    wanted = cache.copy()
    wanted[5] = -1
    program(cache, -np.ones((1, 4), np.float32), 5)
    return np.array_equal(cache, wanted)


TRANSPOSED = """
func.func @main(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x6xf32>
  %t = linalg.transpose ins(%w : tensor<6x8xf32>) outs(%e : tensor<8x6xf32>) permutation = [1, 0]
  %u = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%u : tensor<4x6xf32>) -> tensor<4x6xf32>
  %r = linalg.matmul ins(%x, %t : tensor<4x8xf32>, tensor<8x6xf32>)
      outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
"""


def transposed_is_right(program):
    """A product with a transposed matrix."""
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    w = np.arange(48, dtype=np.float32).reshape(6, 8) % 7
    return np.array_equal(program(x, w), x @ w.T)


BOOLEANS = """
func.func @main(%x: tensor<100xi1>, %y: tensor<100xi1>) -> tensor<100xi1> {
  %0 = arith.xori %x, %y : tensor<100xi1>
  return %0 : tensor<100xi1>
}
"""


def booleans_are_right(program) -> bool:
    x, y = np.arange(100) % 3 == 0, np.arange(100) % 2 == 0
    return np.array_equal(program(x, y), x ^ y)


POINTS = """
func.func @main(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = arith.subf %x, %y : tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
"""


def points_are_right(program) -> bool:
    x, y = (np.arange(99, dtype=np.float32).reshape(33, 3) % n for n in (7, 5))
    return np.array_equal(program(x, y), x - y)


COMPLEX = """
func.func @main(%x: tensor<4x8xcomplex<f32>>, %y: tensor<8x6xcomplex<f32>>) -> tensor<4x6xcomplex<f32>> {
  %zero = complex.constant [0.0 : f32, 0.0 : f32] : complex<f32>
  %u = tensor.empty() : tensor<4x6xcomplex<f32>>
  %f = linalg.fill ins(%zero : complex<f32>) outs(%u : tensor<4x6xcomplex<f32>>) -> tensor<4x6xcomplex<f32>>
  %m = linalg.matmul ins(%x, %y : tensor<4x8xcomplex<f32>>, tensor<8x6xcomplex<f32>>)
      outs(%f : tensor<4x6xcomplex<f32>>) -> tensor<4x6xcomplex<f32>>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<4x6xcomplex<f32>>) outs(%u : tensor<4x6xcomplex<f32>>) {
  ^bb0(%a: complex<f32>, %o: complex<f32>):
    %c = complex.conj %a : complex<f32>
    linalg.yield %c : complex<f32>
  } -> tensor<4x6xcomplex<f32>>
  return %r : tensor<4x6xcomplex<f32>>
}
"""


def complex_is_right(program) -> bool:
    """The conjugate of a product of complex matrices."""
    x = (np.arange(32) % 5 + 1j * (np.arange(32) % 3)).astype(np.complex64).reshape(4, 8)
    y = (np.arange(48) % 7 - 2j * (np.arange(48) % 4)).astype(np.complex64).reshape(8, 6)
    return np.array_equal(program(x, y), (x @ y).conj())


FORMULA = """
func.func @main(%k: index) -> (i32, tensor<3xi32>) {
  %e = tensor.empty() : tensor<1024x1024xi32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<1024x1024xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %d = arith.subi %i, %j : index
    %c = arith.index_cast %d : index to i32
    linalg.yield %c : i32
  } -> tensor<1024x1024xi32>
  %x = tensor.extract %t[%k, %k] : tensor<1024x1024xi32>
  %s = tensor.extract_slice %t[9, 7] [1, 3] [1, 2] : tensor<1024x1024xi32> to tensor<3xi32>
  return %x, %s : i32, tensor<3xi32>
}
"""


def formula_is_right(program) -> bool:
    """Elements of a table, one of them at a place outside of it."""
    found = [program(k) for k in (3, -1, 4096)]
    return all(x == 0 and s.tolist() == [2, 0, -2] for x, s in found)


# A source row by a product of floats for each element.
RESAMPLED = """
func.func @main(%x: tensor<4x8xf32>) -> tensor<6x8xf32> {
  %scale = arith.constant 0.6666667 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} outs(%e : tensor<6x8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f32
    %s = arith.mulf %f, %scale : f32
    %k = arith.fptosi %s : f32 to i64
    %y = arith.index_cast %k : i64 to index
    %v = tensor.extract %x[%y, %j] : tensor<4x8xf32>
    linalg.yield %v : f32
  } -> tensor<6x8xf32>
  return %r : tensor<6x8xf32>
}
"""


def resampled_is_right(program) -> bool:
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    return np.array_equal(program(x), x[[0, 0, 1, 2, 2, 3]])


# Parts of a product with the dims in another order, their heads, and a bias of a batch.
PARTS = """
#id = affine_map<(b, s, c) -> (b, s, c)>
func.func @main(%x: tensor<6x4xf32>, %w: tensor<4x16xf32>, %bias: tensor<16xf32>) -> (tensor<2x8x3xf32>, tensor<2x3x2x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %u = tensor.empty() : tensor<6x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%u : tensor<6x16xf32>) -> tensor<6x16xf32>
  %m = linalg.matmul ins(%x, %w : tensor<6x4xf32>, tensor<4x16xf32>) outs(%f : tensor<6x16xf32>) -> tensor<6x16xf32>
  %h = tensor.expand_shape %m [[0, 1], [2]] output_shape [2, 3, 16] : tensor<6x16xf32> into tensor<2x3x16xf32>
  %e = tensor.empty() : tensor<2x3x16xf32>
  %a = linalg.generic {indexing_maps = [#id, affine_map<(b, s, c) -> (c)>, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%h, %bias : tensor<2x3x16xf32>, tensor<16xf32>) outs(%e : tensor<2x3x16xf32>) {
  ^bb0(%v: f32, %c: f32, %o: f32):
    %r = arith.addf %v, %c : f32
    linalg.yield %r : f32
  } -> tensor<2x3x16xf32>
  %i = tensor.empty() : tensor<2x16x3xf32>
  %t = linalg.generic {indexing_maps = [#id, affine_map<(b, s, c) -> (b, c, s)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a : tensor<2x3x16xf32>) outs(%i : tensor<2x16x3xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<2x16x3xf32>
  %p = tensor.extract_slice %t[0, 0, 0] [2, 8, 3] [1, 1, 1] : tensor<2x16x3xf32> to tensor<2x8x3xf32>
  %q = tensor.extract_slice %a[0, 0, 8] [2, 3, 8] [1, 1, 1] : tensor<2x3x16xf32> to tensor<2x3x8xf32>
  %r = tensor.expand_shape %q [[0], [1], [2, 3]] output_shape [2, 3, 2, 4] : tensor<2x3x8xf32> into tensor<2x3x2x4xf32>
  return %p, %r : tensor<2x8x3xf32>, tensor<2x3x2x4xf32>
}
"""


def parts_are_right(program) -> bool:
    """Sums of small integers are exact."""
    x, w = (np.arange(n, dtype=np.float32).reshape(-1, m) % 7 for n, m in ((24, 4), (64, 16)))
    bias = np.arange(16, dtype=np.float32)
    found, expected = program(x, w, bias), (x @ w + bias).reshape(2, 3, 16)
    wanted = expected[..., :8].swapaxes(1, 2), expected[..., 8:].reshape(2, 3, 2, 4)
    return all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


IMAGES = """
#pixel = affine_map<(n, c, h, w) -> (n, c, h, w)>
#image = affine_map<(n, c, h, w) -> (n, c)>
func.func @main(%x: tensor<4x3x6x7xf32>) -> tensor<4x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x3xf32>) -> tensor<4x3xf32>
  %r = linalg.generic {indexing_maps = [#pixel, #image], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%x : tensor<4x3x6x7xf32>) outs(%f : tensor<4x3xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}
"""


def images_are_right(program) -> bool:
    x = np.arange(4 * 3 * 42, dtype=np.float32).reshape(4, 3, 6, 7) % 11
    return np.array_equal(program(x), x.sum((2, 3)))


PLACES = """
func.func @main(%x: tensor<3x64xf32>, %v: tensor<3xf32>, %i: tensor<3xi64>) -> (tensor<3xf32>, tensor<3xi64>) {
  %r:2 = iree_linalg_ext.arg_compare dimension(1) ins(%x : tensor<3x64xf32>) outs(%v, %i : tensor<3xf32>, tensor<3xi64>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.cmpf ogt, %a, %b : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<3xf32>, tensor<3xi64>
  return %r#0, %r#1 : tensor<3xf32>, tensor<3xi64>
}
"""


def places_are_right(program) -> bool:
    x = (np.arange(3 * 64, dtype=np.float32).reshape(3, 64) * 7) % 31
    values, places = program(x, np.full(3, -1, np.float32), np.zeros(3, np.int64))
    return np.array_equal(values, x.max(1)) and np.array_equal(places, x.argmax(1))


WINDOWS = """
#image = affine_map<(c, h, w, y, x) -> (c, h + y, w + x)>
#window = affine_map<(c, h, w, y, x) -> (y, x)>
#out = affine_map<(c, h, w, y, x) -> (c, h, w)>
func.func @main(%x: tensor<4x9x10xf32>) -> tensor<4x5x8xf32> {
  %low = arith.constant 0xFF800000 : f32
  %k = tensor.empty() : tensor<5x3xf32>
  %e = tensor.empty() : tensor<4x5x8xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<4x5x8xf32>) -> tensor<4x5x8xf32>
  %r = linalg.generic {indexing_maps = [#image, #window, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %k : tensor<4x9x10xf32>, tensor<5x3xf32>) outs(%f : tensor<4x5x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.maximumf %c, %a : f32
    linalg.yield %m : f32
  } -> tensor<4x5x8xf32>
  return %r : tensor<4x5x8xf32>
}
"""


def windows_are_right(program) -> bool:
    x = np.arange(360, dtype=np.float32).reshape(4, 9, 10) * 37 % 101
    windows = np.lib.stride_tricks.sliding_window_view(x, (5, 3), (1, 2))
    return np.array_equal(program(x), windows.max((-2, -1)))


MASKED = """
func.func @main(%x: tensor<4x3xf32>, %y: tensor<256x3xf32>, %z: tensor<256x5xf32>) -> tensor<4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x256xf32>) -> tensor<4x256xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : tensor<4x3xf32>, tensor<256x3xf32>) outs(%f : tensor<4x256xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<4x256xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<4x256xf32>) outs(%e : tensor<4x256xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %seen = arith.cmpi sge, %i, %j : index
    %m = arith.select %seen, %a, %zero : f32
    linalg.yield %m : f32
  } -> tensor<4x256xf32>
  %u = tensor.empty() : tensor<4x5xf32>
  %g = linalg.fill ins(%zero : f32) outs(%u : tensor<4x5xf32>) -> tensor<4x5xf32>
  %r = linalg.matmul ins(%t, %z : tensor<4x256xf32>, tensor<256x5xf32>) outs(%g : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}
"""


def masked_is_right(program) -> bool:
    x, y, z = (
        np.arange(r * c, dtype=np.float32).reshape(r, c) % 7
        for r, c in ((4, 3), (256, 3), (256, 5))
    )
    return np.array_equal(program(x, y, z), np.tril(x @ y.T) @ z)


DISTANCES = """
func.func @main(%x: tensor<9x5xf32>, %y: tensor<37x5xf32>) -> tensor<9x37xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<9x37xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<9x37xf32>) -> tensor<9x37xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : tensor<9x5xf32>, tensor<37x5xf32>) outs(%f : tensor<9x37xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %m = math.absf %d : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<9x37xf32>
  return %r : tensor<9x37xf32>
}
"""


def distances_are_right(program) -> bool:
    x, y = (np.arange(r * 5, dtype=np.float32).reshape(r, 5) * 37 % 101 for r in (9, 37))
    return np.array_equal(program(x, y), np.abs(x[:, None] - y).sum(-1))


PROGRAMS = {
    "distances": (DISTANCES, distances_are_right),
    "masked": (MASKED, masked_is_right),
    "places": (PLACES, places_are_right),
    "windows": (WINDOWS, windows_are_right),
    "images": (IMAGES, images_are_right),
    "parts": (PARTS, parts_are_right),
    "resampled": (RESAMPLED, resampled_is_right),
    "transposed": (TRANSPOSED, transposed_is_right),
    "complex": (COMPLEX, complex_is_right),
    "points": (POINTS, points_are_right),
    "booleans": (BOOLEANS, booleans_are_right),
    "formula": (FORMULA, formula_is_right),
    "cache": (CACHE, cache_is_right),
    "norms": (NORMS, norms_are_right),
    "halves": (HALVES, halves_are_right),
    "several kernels": (TEXT, is_right),
    "integers": (INTEGERS, integers_are_right),
    "topk": (TOPK, topk_is_right),
    "layers": (LAYERS, layers_are_right),
    "pixels": (PIXELS, pixels_are_right),
    "tiles": (TILES, tiles_are_right),
    "streams": (STREAMS, streams_are_right),
    "means": (MEANS, means_are_right),
    "heavy": (HEAVY, sums_are_right),
    "powers": (POWERS, powers_are_right),
    "channels": (CHANNELS, channels_are_right),
    "variances": (VARIANCES, variances_are_right),
    "quotients": (QUOTIENTS, quotients_are_right),
    "running": (RUNNING, running_are_right),
    "slices": (SLICES, slices_are_right),
}
each_program = pytest.mark.parametrize("name", PROGRAMS)


def all_rewrites(text: str):
    with watch_rewrites() as rewrites:
        run_phases(get_context(), import_mlir(text), Options())
    return rewrites


def text_of(module: ModuleOp) -> str:
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    return stream.getvalue()


def limit_remarks(remarks):
    return [r for r in remarks if "beyond the limit" in r.text]


@each_program
def test_rewrites_are_numbered_in_order_and_always_the_same(name):
    rewrites = all_rewrites(PROGRAMS[name][0])
    assert [r.number for r in rewrites] == list(range(1, len(rewrites) + 1))
    assert rewrites == all_rewrites(PROGRAMS[name][0])
    assert {r.pass_name for r in rewrites} <= OPTIONAL


def test_every_optional_pass_counts():
    seen = {r.pass_name for text, _ in PROGRAMS.values() for r in all_rewrites(text)}
    assert seen == ON_CPU


@each_program
def test_every_limit_gives_a_right_program(name):
    text, right = PROGRAMS[name]
    rewrites = all_rewrites(text)
    for limit in range(len(rewrites) + 1):
        with collect() as remarks, watch_rewrites() as applied:
            program = irees.compile(import_mlir(text), rewrite_limit=limit)
        assert right(program), f"limit {limit}"
        assert applied == rewrites[:limit]
        # The remark names what the next limit applies.
        told = [(r.pass_name, r.text) for r in limit_remarks(remarks)]
        assert told == [
            (
                each.pass_name,
                f"rewrite {each.number} ({each.what}) is beyond the limit, as are all after it",
            )
            for each in rewrites[limit : limit + 1]
        ]


@each_program
def test_every_fault_is_survived_and_told(name):
    text, right = PROGRAMS[name]
    for each in all_rewrites(text):
        with fail_rewrite(each.number) as raised, collect() as remarks:
            program = irees.compile(import_mlir(text))
        assert right(program), each
        assert raised == [each]
        assert [r.pass_name for r in remarks if r.kind == "failed"] == [each.pass_name]


@each_program
def test_beyond_the_limit_no_optional_pass_changes_anything(name):
    rewrites = all_rewrites(PROGRAMS[name][0])
    before: list[str] = []
    changed: list[str] = []

    def after(pass_name, module, seconds):
        if pass_name in OPTIONAL and text_of(module) != before[-1]:
            changed.append(pass_name)

    for limit in (0, len(rewrites) // 2, len(rewrites)):
        changed.clear()
        run_phases(
            get_context(),
            import_mlir(PROGRAMS[name][0]),
            Options(rewrite_limit=limit),
            hooks=Hooks(lambda pass_name, module: before.append(text_of(module)), listener=after),
        )
        # What is not counted would show at 0.
        assert set(changed) <= {r.pass_name for r in rewrites[:limit]}


def test_names_of_passes_are_theirs():
    """A pass that counts in functions has its name a second time."""
    for phase in PHASES:
        for each in phase.passes:
            module = __import__(type(each).__module__, fromlist=["NAME"])
            assert getattr(module, "NAME", each.name) == each.name
