"""Kernels that a program brings on memrefs: loops, vectors, affine ops; all targets agree."""

from __future__ import annotations

import runpy
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import irees
from irees.dialects.upstream.memref import ATOMIC_KINDS
from irees.errors import IreesError, UnsupportedError

HEAD = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
"""
ROW = "memref<?xf32>"


def on_rows(body: str) -> str:
    """A function that reads %a and writes %b, both of size %n."""
    return f"""func.func @main(%a: {ROW}, %b: {ROW}) {{{HEAD}
  %n = memref.dim %a, %c0 : {ROW}
{body}
  return
}}"""


LOOP = on_rows(f"""  scf.for %i = %c0 to %n step %c1 {{
    %x = memref.load %a[%i] : {ROW}
    %y = arith.addf %x, %x : f32
    memref.store %y, %b[%i] : {ROW}
  }}""")
TRANSFER = on_rows(f"""  scf.for %i = %c0 to %n step %c8 {{
    %x = vector.transfer_read %a[%i], %zero : {ROW}, vector<8xf32>
    %y = arith.addf %x, %x : vector<8xf32>
    vector.transfer_write %y, %b[%i] : vector<8xf32>, {ROW}
  }}""")
TAIL = on_rows(f"""  %rest = arith.remui %n, %c8 : index
  %whole = arith.subi %n, %rest : index
  %two = arith.constant dense<2.0> : vector<8xf32>
  scf.for %i = %c0 to %whole step %c8 {{
    %x = vector.load %a[%i] : {ROW}, vector<8xf32>
    %y = arith.mulf %x, %two : vector<8xf32>
    vector.store %y, %b[%i] : {ROW}, vector<8xf32>
  }}
  scf.for %i = %whole to %n step %c1 {{
    %x = memref.load %a[%i] : {ROW}
    %y = arith.addf %x, %x : f32
    memref.store %y, %b[%i] : {ROW}
  }}""")
AFFINE = on_rows(f"""  affine.for %i = 0 to %n {{
    %x = affine.load %a[%i] : {ROW}
    %y = arith.addf %x, %x : f32
    affine.store %y, %b[%i] : {ROW}
  }}""")
ATOMIC = on_rows(f"""  scf.for %i = %c0 to %n step %c1 {{
    %x = memref.load %a[%i] : {ROW}
    memref.store %x, %b[%i] : {ROW}
    %y = memref.atomic_rmw addf %x, %b[%i] : (f32, {ROW}) -> f32
  }}""")
PARALLEL = on_rows(f"""  scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
    %x = memref.load %a[%i] : {ROW}
    %y = arith.addf %x, %x : f32
    memref.store %y, %b[%i] : {ROW}
    scf.reduce
  }}""")
WHILE = on_rows(f"""  %end = scf.while (%i = %c0) : (index) -> index {{
    %more = arith.cmpi slt, %i, %n : index
    scf.condition(%more) %i : index
  }} do {{
  ^bb0(%i: index):
    %x = memref.load %a[%i] : {ROW}
    %y = arith.addf %x, %x : f32
    memref.store %y, %b[%i] : {ROW}
    %next = arith.addi %i, %c1 : index
    scf.yield %next : index
  }}""")
SCRATCH = on_rows(f"""  %t = memref.alloc(%n) : {ROW}
  scf.for %i = %c0 to %n step %c1 {{
    %x = memref.load %a[%i] : {ROW}
    memref.store %x, %t[%i] : {ROW}
  }}
  linalg.add ins(%t, %t : {ROW}, {ROW}) outs(%b : {ROW})
  memref.dealloc %t : {ROW}""")
SUBVIEW = on_rows(f"""  scf.for %i = %c0 to %n step %c1 {{
    %s = memref.subview %a[%i] [1] [1] : {ROW} to memref<1xf32, strided<[1], offset: ?>>
    %x = memref.load %s[%c0] : memref<1xf32, strided<[1], offset: ?>>
    %y = arith.addf %x, %x : f32
    memref.store %y, %b[%i] : {ROW}
  }}""")
LOCAL = on_rows(f"""  scf.for %i = %c0 to %n step %c1 {{
    %t = memref.alloc() : memref<8xf32>
    %x = memref.load %a[%i] : {ROW}
    memref.store %x, %t[%c1] : memref<8xf32>
    %y = memref.load %t[%c1] : memref<8xf32>
    %z = arith.addf %y, %y : f32
    memref.store %z, %b[%i] : {ROW}
    memref.dealloc %t : memref<8xf32>
  }}""")
BLOCKS = on_rows(f"""  %m = arith.ceildivsi %n, %c8 : index
  scf.forall (%j) in (%m) {{
    %i = arith.muli %j, %c8 : index
    %x = vector.transfer_read %a[%i], %zero : {ROW}, vector<8xf32>
    %y = arith.addf %x, %x : vector<8xf32>
    vector.transfer_write %y, %b[%i] : vector<8xf32>, {ROW}
  }}""")
CALLED = (
    on_rows(f"""  scf.for %i = %c0 to %n step %c1 {{
    %x = memref.load %a[%i] : {ROW}
    %y = func.call @f(%x) : (f32) -> f32
    memref.store %y, %b[%i] : {ROW}
  }}""")
    + """
func.func private @f(%x: f32) -> f32 {
  %y = arith.addf %x, %x : f32
  return %y : f32
}"""
)
RESHAPED = on_rows(f"""  %v = memref.reinterpret_cast %a to offset: [0], sizes: [%n, 1], strides: [1, 1]
      : {ROW} to memref<?x1xf32>
  scf.for %i = %c0 to %n step %c1 {{
    %x = memref.load %v[%i, %c0] : memref<?x1xf32>
    %y = arith.addf %x, %x : f32
    memref.store %y, %b[%i] : {ROW}
  }}""")
MASK = """    %left = arith.subi %n, %i : index
    %m = vector.create_mask %left : vector<8xi1>
    %f = arith.constant dense<0.0> : vector<8xf32>
"""
MASKED = on_rows(f"""  scf.for %i = %c0 to %n step %c8 {{
{MASK}    %x = vector.maskedload %a[%i], %m, %f
        : {ROW}, vector<8xi1>, vector<8xf32> into vector<8xf32>
    %y = arith.addf %x, %x : vector<8xf32>
    vector.maskedstore %b[%i], %m, %y : {ROW}, vector<8xi1>, vector<8xf32>
  }}""")
MASKED_TRANSFER = on_rows(f"""  scf.for %i = %c0 to %n step %c8 {{
{MASK}    %x = vector.transfer_read %a[%i], %zero, %m : {ROW}, vector<8xf32>
    %y = arith.addf %x, %x : vector<8xf32>
    vector.transfer_write %y, %b[%i], %m {{in_bounds = [true]}} : vector<8xf32>, {ROW}
  }}""")
SCATTERED = on_rows(f"""  scf.for %i = %c0 to %n step %c8 {{
{MASK}    %s = vector.step : vector<8xindex>
    %x = vector.gather %a[%i] [%s], %m, %f
        : {ROW}, vector<8xindex>, vector<8xi1>, vector<8xf32> into vector<8xf32>
    %y = arith.addf %x, %x : vector<8xf32>
    vector.scatter %b[%i] [%s], %m, %y : {ROW}, vector<8xindex>, vector<8xi1>, vector<8xf32>
  }}""")
PARTS = on_rows(f"""  scf.for %i = %c0 to %n step %c8 {{
    %x = vector.transfer_read %a[%i], %zero : {ROW}, vector<8xf32>
    %l = vector.extract_strided_slice %x {{offsets = [0], sizes = [4], strides = [1]}}
        : vector<8xf32> to vector<4xf32>
    %h = vector.extract_strided_slice %x {{offsets = [4], sizes = [4], strides = [1]}}
        : vector<8xf32> to vector<4xf32>
    %l2 = arith.addf %l, %l : vector<4xf32>
    %h2 = arith.addf %h, %h : vector<4xf32>
    %y = vector.insert_strided_slice %l2, %x {{offsets = [0], strides = [1]}}
        : vector<4xf32> into vector<8xf32>
    %z = vector.insert_strided_slice %h2, %y {{offsets = [4], strides = [1]}}
        : vector<4xf32> into vector<8xf32>
    vector.transfer_write %z, %b[%i] : vector<8xf32>, {ROW}
  }}""")
HINTS = on_rows(f"""  scf.for %i = %c0 to %n step %c8 {{
    %s = arith.addi %i, %c8 : index
    %f = arith.cmpi sle, %s, %n : index
    scf.if %f {{
      %x = vector.load %a[%i] {{alignment = 4 : i64, nontemporal = true}} : {ROW}, vector<8xf32>
      %y = arith.addf %x, %x : vector<8xf32>
      vector.store %y, %b[%i] {{nontemporal = true}} : {ROW}, vector<8xf32>
    }} else {{
      scf.for %j = %i to %n step %c1 {{
        %x = memref.load %a[%j] {{nontemporal = true}} : {ROW}
        %y = arith.addf %x, %x : f32
        memref.store %y, %b[%j] {{nontemporal = true}} : {ROW}
      }}
    }}
  }}""")
DOUBLED = {
    "hints": HINTS,
    "masked": MASKED,
    "masked-transfer": MASKED_TRANSFER,
    "scattered": SCATTERED,
    "parts": PARTS,
    "reshaped": RESHAPED,
    "local": LOCAL,
    "blocks": BLOCKS,
    "called": CALLED,
    "loop": LOOP,
    "transfer": TRANSFER,
    "tail": TAIL,
    "affine": AFFINE,
    "atomic": ATOMIC,
    "parallel": PARALLEL,
    "while": WHILE,
    "scratch": SCRATCH,
    "subview": SUBVIEW,
}
TARGETS = ("cpu", "cuda-emulated", "reference")


def run(text: str, target: str, *arguments: np.ndarray) -> list[np.ndarray]:
    """The arguments after a call. On other targets than a CPU, the last one is the result."""
    given = [np.array(x) for x in arguments]
    result = irees.compile(text, target=target)(*given)
    if target != "cpu":
        given[-1] = np.asarray(result)
    return given


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", DOUBLED)
def test_a_kernel_doubles_its_rows(name, target):
    for size in (0, 1, 7, 8, 29):
        a = np.arange(size, dtype=np.float32)
        found = run(DOUBLED[name], target, a, np.full(size, 9, np.float32))
        np.testing.assert_array_equal(found[0], a)
        np.testing.assert_array_equal(found[1], 2 * a)


@pytest.mark.parametrize("name", [n for n in DOUBLED if n not in ("scratch", "local")])
def test_a_kernel_is_one_dispatch_in_place(name):
    module = irees.compile(DOUBLED[name], to="stream")
    names = [op.name for op in module.walk()]
    assert names.count("stream.cmd.dispatch") == 1
    assert "memref.alloc" not in names
    assert "memref.copy" not in names


ATOMIC_MEANINGS = {
    "addf": np.add,
    "addi": np.add,
    "andi": np.bitwise_and,
    "assign": lambda old, new: new,
    "maximumf": np.maximum,
    "maxnumf": np.fmax,
    "maxs": np.maximum,
    "maxu": lambda old, new: np.maximum(old.view(np.uint32), new.view(np.uint32)).view(np.int32),
    "minimumf": np.minimum,
    "minnumf": np.fmin,
    "mins": np.minimum,
    "minu": lambda old, new: np.minimum(old.view(np.uint32), new.view(np.uint32)).view(np.int32),
    "mulf": np.multiply,
    "muli": np.multiply,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ATOMIC_KINDS)
def test_each_kind_of_atomic_update(kind, target):
    scalar = "f32" if kind.endswith("f") else "i32"
    row = f"memref<?x{scalar}>"
    text = f"""func.func @main(%a: {row}, %c: {row}, %b: {row}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : {row}
  scf.for %i = %c0 to %n step %c1 {{
    %x = memref.load %a[%i] : {row}
    %y = memref.atomic_rmw {kind} %x, %c[%i] : ({scalar}, {row}) -> {scalar}
    %o = memref.atomic_rmw assign %y, %c[%i] : ({scalar}, {row}) -> {scalar}
    memref.store %o, %b[%i] : {row}
  }}
  return
}}"""
    old, new = np.array([[6, -3, 5, 0, -8], [3, 5, -1, 7, -9]], np.int32)
    if scalar == "f32":
        old, new = old.astype(np.float32), new.astype(np.float32)
        old[3], new[4] = np.nan, np.nan
    kept, changed = np.array(old), np.zeros_like(old)
    result = irees.compile(text, target=target)(np.array(new), kept, changed)
    if target != "cpu":
        kept, changed = map(np.asarray, result)
    np.testing.assert_array_equal(kept, old)
    np.testing.assert_array_equal(changed, ATOMIC_MEANINGS[kind](old, new))


@pytest.mark.parametrize("name", DOUBLED)
def test_other_sizes_touch_no_other_memory(name):
    """Sizes that the kernel does not expect: it is checked, guarded, or refuses them."""
    a, around = np.arange(23, dtype=np.float32), np.full(64, 5, np.float32)
    b = around[16:32]
    program = irees.compile(DOUBLED[name])
    try:
        program(a, b)
    except IreesError:
        pass
    np.testing.assert_array_equal(around[:16], 5)
    np.testing.assert_array_equal(around[32:], 5)


@pytest.mark.parametrize("name", ["loop", "tail", "scratch", "blocks"])
def test_a_kernel_on_two_devices(name):
    a, b = np.arange(29, dtype=np.float32), np.full(29, 9, np.float32)
    devices = {"dev_0": "cpu:0", "dev_1": "cpu:0"}
    result = irees.compile(DOUBLED[name], devices=devices)(a, b)
    np.testing.assert_array_equal(b if result is None else np.asarray(result), 2 * a)


MATMUL = Path(__file__).parents[3] / "examples" / "kernels" / "matmul.py"


@pytest.mark.parametrize("target", ["cpu", "cuda-emulated"])
@pytest.mark.parametrize("step", ["dot-products", "vectors", "register-tile", "packed"])
def test_each_step_of_the_matmul_is_right(step, target):
    n = 48
    text = runpy.run_path(str(MATMUL))["STEPS"][step](n)
    a, b = (np.arange(n * n).reshape(n, n).astype(np.float32) % m - 2 for m in (5, 7))
    found = run(text, target, a, b, np.full((n, n), np.nan, np.float32))
    np.testing.assert_array_equal(found[-1], a @ b)


EMPTY = on_rows(f"""  %low = arith.addi %n, %c8 : index
  scf.parallel (%i) = (%low) to (%n) step (%c8) {{
    %j = arith.remui %i, %c8 : index
    memref.store %zero, %b[%j] : {ROW}
    scf.reduce
  }}""")
WRAPS = f"""func.func @main(%a: {ROW}, %b: {ROW}, %s: index) {{{HEAD}
  %i = arith.muli %s, %s : index
  %x = vector.load %a[%i] : {ROW}, vector<2xf32>
  vector.store %x, %b[%c0] : {ROW}, vector<2xf32>
  return
}}"""


def test_a_parallel_loop_to_below_its_begin_does_not_run():
    _, b = run(EMPTY, "cpu", np.ones(8, np.float32), np.ones(8, np.float32))
    np.testing.assert_array_equal(b, 1)


@pytest.mark.parametrize("place", [0, 3, 1 << 31, 3037000500])
def test_a_place_that_wraps_is_guarded(place):
    """3037000500 squared is above 2^63. A load that is not inside gives zeros."""
    a, b = np.arange(1, 12, dtype=np.float32), np.full(4, 9, np.float32)
    irees.compile(WRAPS)(a, b, place)
    np.testing.assert_array_equal(b, [*(a[place**2 :][:2] if place < 4 else (0, 0)), 9, 9])


STRAIGHT = f"""func.func @main(%a: memref<8xf32>, %b: memref<8xf32>) {{{HEAD}
  %x = vector.load %a[%c0] : memref<8xf32>, vector<8xf32>
  vector.store %x, %b[%c0] : memref<8xf32>, vector<8xf32>
  return
}}"""


@pytest.mark.parametrize("target", TARGETS)
def test_a_kernel_without_a_loop(target):
    """On a GPU, a vector is not loaded by the launcher."""
    a = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(run(STRAIGHT, target, a, np.zeros(8, np.float32))[1], a)


ELEMENTS = {
    "f64": (np.float64, "addf"),
    "f16": (np.float16, "addf"),
    "bf16": (ml_dtypes.bfloat16, "addf"),
    "i8": (np.int8, "addi"),
    "i64": (np.int64, "addi"),
    "i1": (np.bool_, "ori"),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ELEMENTS)
def test_vectors_of_any_elements(kind, target):
    """1.5 + 1.5 and the like are exact in all of them."""
    dtype, op = ELEMENTS[kind]
    text = f"""func.func @main(%a: memref<?x{kind}>, %b: memref<?x{kind}>) {{{HEAD}
  %n = memref.dim %a, %c0 : memref<?x{kind}>
  scf.for %i = %c0 to %n step %c8 {{
    %x = vector.load %a[%i] : memref<?x{kind}>, vector<8x{kind}>
    %y = arith.{op} %x, %x : vector<8x{kind}>
    vector.store %y, %b[%i] : memref<?x{kind}>, vector<8x{kind}>
  }}
  return
}}"""
    a = (np.arange(16) * 1.5 % 31).astype(dtype)
    found = run(text, target, a, np.zeros(16, dtype))
    np.testing.assert_array_equal(found[1], a + a)


GLOBAL = f"""memref.global "private" constant @w : memref<4x4xf32> = dense<2.0>
func.func @main(%b: memref<16xf32>) {{{HEAD}
  %c16 = arith.constant 16 : index
  %w = memref.get_global @w : memref<4x4xf32>
  %v = memref.collapse_shape %w [[0, 1]] : memref<4x4xf32> into memref<16xf32>
  scf.for %i = %c0 to %c16 step %c8 {{
    %x = vector.load %v[%i] : memref<16xf32>, vector<8xf32>
    vector.store %x, %b[%i] : memref<16xf32>, vector<8xf32>
  }}
  return
}}"""


@pytest.mark.parametrize("target", TARGETS)
def test_a_constant_global_in_another_shape(target):
    np.testing.assert_array_equal(run(GLOBAL, target, np.zeros(16, np.float32))[0], 2)


WRONG_SIZES = f"""func.func @main(%b: {ROW}, %m: index) {{{HEAD}
  %one = arith.constant 1.0 : f32
  %v = memref.reinterpret_cast %b to offset: [0], sizes: [%m, 4], strides: [4, 1]
      : {ROW} to memref<?x4xf32>
  scf.for %i = %c0 to %m step %c1 {{
    memref.store %one, %v[%i, %c1] : memref<?x4xf32>
  }}
  return
}}"""


def test_a_view_of_wrong_sizes_is_guarded():
    around = np.full(64, 5, np.float32)
    irees.compile(WRONG_SIZES)(around[16:32], 11)
    np.testing.assert_array_equal(np.flatnonzero(around == 1), [17, 21, 25, 29])


OLD = f"""func.func @main(%a: memref<4xf32>) -> memref<4xf32> {{{HEAD}
  %c4 = arith.constant 4 : index
  %t = memref.alloc() : memref<4xf32>
  linalg.copy ins(%a : memref<4xf32>) outs(%t : memref<4xf32>)
  scf.for %i = %c0 to %c4 step %c1 {{
    memref.store %zero, %a[%i] : memref<4xf32>
  }}
  return %t : memref<4xf32>
}}"""


def test_what_was_read_before_the_kernel_is_kept():
    """The copy of the old value is used behind the kernel, which writes the argument in place."""
    a = np.arange(1, 5, dtype=np.float32)
    kept, _ = irees.compile(OLD)(a)
    np.testing.assert_array_equal(kept, [1, 2, 3, 4])
    np.testing.assert_array_equal(a, 0)


def test_a_value_of_a_kernel_is_not_returned():
    text = f"""func.func @main(%a: memref<8xf32>) -> vector<8xf32> {{{HEAD}
  %x = vector.load %a[%c0] : memref<8xf32>, vector<8xf32>
  return %x : vector<8xf32>
}}"""
    with pytest.raises(UnsupportedError, match="used outside of it"):
        irees.compile(text)


def test_a_mask_of_two_dims_is_refused_by_name():
    text = f"""func.func @main(%a: memref<8xf32>, %b: memref<8xf32>) {{{HEAD}
  %p = vector.create_mask %c1, %c8 : vector<2x8xi1>
  %m = vector.extract %p[1] : vector<8xi1> from vector<2x8xi1>
  %z = arith.constant dense<0.0> : vector<8xf32>
  %x = vector.maskedload %a[%c0], %m, %z : memref<8xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  vector.store %x, %b[%c0] : memref<8xf32>, vector<8xf32>
  return
}}"""
    with pytest.raises(UnsupportedError, match=r"vector\.create_mask: this mask is not"):
        irees.compile(text)


LANES = {
    "a mask of some lanes": (
        """%m = arith.constant dense<[true, false, false, true, true, false, true, false]> : vector<8xi1>
  %y = arith.select %m, %x, %z : vector<8xi1>, vector<8xf32>""",
        lambda x: np.where([1, 0, 0, 1, 1, 0, 1, 0], x, 0),
    ),
    "a lane of a mask": (
        """%p = arith.cmpf ogt, %x, %z : vector<8xf32>
  %l = vector.extract %p[1] : i1 from vector<8xi1>
  %w = arith.extui %l : i1 to i32
  %f = arith.uitofp %w : i32 to f32
  %y = vector.broadcast %f : f32 to vector<8xf32>""",
        lambda x: np.full(8, x[1] > 0),
    ),
    "a lane put into a mask": (
        """%p = arith.cmpf ogt, %x, %z : vector<8xf32>
  %true = arith.constant true
  %q = vector.insert %true, %p[0] : i1 into vector<8xi1>
  %y = arith.select %q, %x, %z : vector<8xi1>, vector<8xf32>""",
        lambda x: np.where((x > 0) | (np.arange(8) == 0), x, 0),
    ),
    "a sum with an accumulator": (
        """%acc = arith.constant 100.0 : f32
  %s = vector.reduction <add>, %x, %acc : vector<8xf32> into f32
  %y = vector.broadcast %s : f32 to vector<8xf32>""",
        lambda x: np.full(8, x.sum() + 100),
    ),
    "all lanes of a mask": (
        """%p = arith.cmpf one, %x, %z : vector<8xf32>
  %s = vector.reduction <and>, %p : vector<8xi1> into i1
  %y0 = arith.uitofp %s : i1 to f32
  %y = vector.broadcast %y0 : f32 to vector<8xf32>""",
        lambda x: np.full(8, (x != 0).all()),
    ),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", LANES)
def test_lanes(name, target):
    """A lane of a mask is -1 where it is set, a bool is 1."""
    ops, want = LANES[name]
    text = f"""func.func @main(%a: memref<8xf32>, %b: memref<8xf32>) {{{HEAD}
  %z = arith.constant dense<0.0> : vector<8xf32>
  %x = vector.load %a[%c0] : memref<8xf32>, vector<8xf32>
  {ops}
  vector.store %y, %b[%c0] : memref<8xf32>, vector<8xf32>
  return
}}"""
    x = np.array([-3, 5, 1, -2, 4, 8, -6, 7], np.float32)
    got = run(text, target, x, np.zeros(8, np.float32))[1]
    np.testing.assert_array_equal(got, want(x).astype(np.float32))


@pytest.mark.parametrize("target", ["cpu", "cuda-emulated"])
@pytest.mark.parametrize("shape", ["3", "2x4"])
def test_a_vector_without_a_type_in_c_is_refused(shape, target):
    text = f"""func.func @main(%a: memref<2x8xf32>, %b: memref<2x8xf32>) {{
  %c0 = arith.constant 0 : index
  %x = vector.load %a[%c0, %c0] : memref<2x8xf32>, vector<{shape}xf32>
  vector.store %x, %b[%c0, %c0] : memref<2x8xf32>, vector<{shape}xf32>
  return
}}"""
    with pytest.raises(UnsupportedError, match=f"vector<{shape}xf32>") as info:
        irees.compile(text, target=target)
    assert info.value.location is not None
