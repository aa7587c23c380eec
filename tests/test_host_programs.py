"""
What a program may hold around its tensor ops: functions, calls, blocks, loops of all kinds, hints.

Importers leave such code, and a user's own passes do. Each text compiles for a CPU and for an
emulated GPU and gives what the interpreter gives.
"""

from __future__ import annotations

import numpy as np
import pytest

import irees
from irees.errors import RuntimeTrap, UnsupportedError, VerifyError

X = np.linspace(0.1, 0.8, 8).astype(np.float32)
T = "tensor<8xf32>"

PROGRAMS = {
    "functions of IREE, tied, and a global that an initializer stores": (
        f"""
util.global private mutable @g = dense<1.0> : {T}
util.initializer {{
  %c = arith.constant dense<3.0> : {T}
  util.global.store %c, @g : {T}
  util.return
}}
util.func public @main(%x: {T}, %i: i32) -> (%x as {T}, i32) {{
  %0 = util.call @step(%x) : ({T}) -> %x as {T}
  %g = util.global.load @g : {T}
  %r = arith.addf %0, %g : {T}
  util.return %r, %i : {T}, i32
}}
util.func private @step(%y: {T}) -> {T} attributes {{inlining_policy = #util.inline.never}} {{
  %r = arith.mulf %y, %y : {T}
  util.return %r : {T}
}}""",
        (X, np.int32(7)),
    ),
    "calls of calls, also of what callers see": (
        f"""
func.func @main(%x: {T}) -> {T} {{
  %0:2 = func.call @both(%x) : ({T}) -> ({T}, {T})
  %1 = func.call @twice(%0#1) : ({T}) -> {T}
  return %1 : {T}
}}
func.func private @both(%x: {T}) -> ({T}, {T}) {{
  %0 = func.call @twice(%x) : ({T}) -> {T}
  return %x, %0 : {T}, {T}
}}
func.func @twice(%x: {T}) -> {T} {{
  %0 = arith.addf %x, %x : {T}
  return %0 : {T}
}}""",
        (X,),
    ),
    "a loop of blocks that calls a function of several blocks": (
        f"""
func.func @main(%n: index, %x: {T}) -> {T} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  cf.br ^test(%c0, %x : index, {T})
^test(%i: index, %y: {T}):
  %c = arith.cmpi slt, %i, %n : index
  cf.cond_br %c, ^body, ^end
^body:
  %j = arith.addi %i, %c1 : index
  %z = func.call @choose(%i, %y) : (index, {T}) -> {T}
  cf.br ^test(%j, %z : index, {T})
^end:
  return %y : {T}
}}
func.func private @choose(%i: index, %y: {T}) -> {T} {{
  cf.switch %i : index, [ default: ^a, 1: ^b ]
^a:
  %0 = math.absf %y : {T}
  return %0 : {T}
^b:
  %1 = arith.addf %y, %y : {T}
  return %1 : {T}
}}""",
        (np.int64(3), X),
    ),
    "switches, regions and blocks in regions": (
        f"""
func.func @main(%i: index, %x: {T}) -> ({T}, i32) {{
  %r:2 = scf.index_switch %i -> {T}, i32
  case 1 {{
    %a = arith.addf %x, %x : {T}
    %c = arith.constant 5 : i32
    scf.yield %a, %c : {T}, i32
  }}
  case 3 {{
    %a = scf.execute_region -> {T} {{
      %p = arith.cmpi slt, %i, %i : index
      cf.cond_br %p, ^a, ^b
    ^a:
      scf.yield %x : {T}
    ^b:
      %m = arith.mulf %x, %x : {T}
      scf.yield %m : {T}
    }}
    %c = arith.constant 6 : i32
    scf.yield %a, %c : {T}, i32
  }}
  default {{
    %c = arith.constant 7 : i32
    scf.yield %x, %c : {T}, i32
  }}
  return %r#0, %r#1 : {T}, i32
}}""",
        (np.int64(3), X),
    ),
    "parallel loops over tensors and numbers": (
        f"""
func.func @main(%x: {T}) -> ({T}, f32) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : {T}
  %r = scf.forall (%i) in (4) shared_outs(%o = %e) -> ({T}) {{
    %c2 = arith.constant 2 : index
    %at = arith.muli %i, %c2 : index
    %s = tensor.extract_slice %x[%at] [2] [1] : {T} to tensor<2xf32>
    %a = arith.addf %s, %s : tensor<2xf32>
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %a into %o[%at] [2] [1] : tensor<2xf32> into {T}
    }}
  }}
  %t = scf.parallel (%i) = (%c0) to (%c8) step (%c1) init (%z) -> f32 {{
    %v = tensor.extract %x[%i] : {T}
    scf.reduce(%v : f32) {{
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      scf.reduce.return %s : f32
    }}
  }}
  return %r, %t : {T}, f32
}}""",
        (X,),
    ),
    "hints": (
        f"""
func.func @main(%x: {T}, %n: index) -> ({T}, index, i32) {{
  %b = util.optimization_barrier %x : {T}
  %m = util.assume.int %n<umin = 1, umax = 10> : index
  %c4 = arith.constant 4 : index
  %a = util.align %m, %c4 : index
  %k = util.unfoldable_constant 42 : i32
  %y = math.absf %b : {T}
  return %y, %a, %k : {T}, index, i32
}}""",
        (X, np.int64(3)),
    ),
    "arithmetic on whole tensors of any size": (
        """
func.func @main(%c: i1, %x: tensor<?xf32>, %y: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xi32>) {
  %p = arith.cmpf olt, %x, %y : tensor<?xf32>
  %s = arith.select %p, %x, %y : tensor<?xi1>, tensor<?xf32>
  %t = arith.select %c, %s, %x : tensor<?xf32>
  %i = arith.extui %p : tensor<?xi1> to tensor<?xi32>
  return %t, %i : tensor<?xf32>, tensor<?xi32>
}""",
        (np.True_, X, X[::-1].copy()),
    ),
}


def results(text: str, inputs: tuple, target: str) -> list[np.ndarray]:
    found = irees.compile(text, target=target, fp="strict")(*inputs)
    return [np.asarray(value) for value in (found if isinstance(found, tuple | list) else [found])]


@pytest.mark.parametrize("target", ["cpu", "cuda-emulated"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_host_programs_compile_and_are_right(name, target):
    text, inputs = PROGRAMS[name]
    wanted, got = (results(text, inputs, each) for each in ("reference", target))
    for a, b in zip(wanted, got, strict=True):
        np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("name", PROGRAMS)
def test_host_programs_run_on_devices(name):
    text, inputs = PROGRAMS[name]
    wanted = results(text, inputs, "reference")
    found = irees.compile(text, devices={"dev_0": "cpu:0"}, fp="strict")(*inputs)
    found = found if isinstance(found, tuple | list) else [found]
    for a, b in zip(wanted, found, strict=True):
        np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("body", ["%0 = func.call @f(%x) : (i32) -> i32", None])
def test_calls_without_an_end_are_refused(body):
    callee = f"{{\n {body}\n return %0 : i32\n}}" if body else ""
    parameter = "%x: i32" if body else "i32"
    text = f"""
func.func @main(%x: i32) -> i32 {{
  %0 = func.call @f(%x) : (i32) -> i32
  return %0 : i32
}}
func.func private @f({parameter}) -> i32 {callee}"""
    with pytest.raises(UnsupportedError, match="@f is recursive, or has no body"):
        irees.compile(text)


@pytest.mark.parametrize(
    ("blocks", "says"),
    [
        ("cf.br ^a\n^a:\n  cf.br ^a", "no block returns"),
        ("cf.cond_br %c, ^a, ^b\n^a:\n  cf.br ^a\n^b:\n  return", "never ends"),
    ],
)
def test_blocks_without_an_end_are_refused(blocks, says):
    with pytest.raises(UnsupportedError, match=says):
        irees.compile(f"func.func @main(%c: i1) {{\n  {blocks}\n}}")


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_a_remainder_in_a_map_is_not_negative(target):
    text = """func.func @main(%i: index) -> (index, index, index) {
  %m = affine.apply affine_map<(d0) -> (d0 mod 4)>(%i)
  %f = affine.apply affine_map<(d0) -> (d0 floordiv 4)>(%i)
  %c = affine.apply affine_map<(d0) -> (d0 ceildiv 4)>(%i)
  return %m, %f, %c : index, index, index
}"""
    program = irees.compile(text, target=target)
    for i in (-9, -8, -1, 0, 3, 4, 9):
        assert tuple(program(i)) == (i % 4, i // 4, -(-i // 4))


def test_affine_loops_have_bounds_that_are_values():
    text = """func.func @main(%n: index, %m: index, %x: f32) -> f32 {
  %z = arith.constant 0.0 : f32
  %r = affine.for %i = max affine_map<()[a, b] -> (a, b)>()[%n, %m]
      to min affine_map<()[a, b] -> (a + 4, b + 7)>()[%n, %m] step 2 iter_args(%a = %z) -> (f32) {
    %b = arith.addf %a, %x : f32
    affine.yield %b : f32
  }
  return %r : f32
}"""
    program = irees.compile(text)
    for n, m in ((0, 0), (5, 3), (3, 9), (9, 3)):
        count = len(range(max(n, m), min(n + 4, m + 7), 2))
        assert program(n, m, np.float32(1)) == count


@pytest.mark.parametrize("index", ["%i", "%c5"])
def test_a_dim_that_is_not_there_traps(index):
    text = f"""func.func @main(%x: tensor<?x4xf32>, %i: index) -> index {{
  %c5 = arith.constant 5 : index
  %d = tensor.dim %x, {index} : tensor<?x4xf32>
  return %d : index
}}"""
    x = np.zeros((3, 4), np.float32)
    for target in ("reference", "cpu"):
        with pytest.raises((RuntimeTrap, VerifyError), match="dim"):
            irees.compile(text, target=target)(x, 2)
    if index == "%i":
        assert [irees.compile(text)(x, i) for i in (0, 1)] == [3, 4]


def test_a_mutable_global_is_a_tensor_or_a_number():
    """A complex one begins with zeros."""
    complexes = "util.global private mutable @g : tensor<2xcomplex<f32>>"
    irees.compile(f"{complexes}\nfunc.func @main(%x: {T}) -> {T} {{ return %x : {T} }}")
    kind = "!iree_tensor_ext.dispatch.tensor<readonly:tensor<4x8xf32>>"
    with pytest.raises(UnsupportedError, match="a mutable global of type"):
        irees.compile(f"util.global private mutable @g : {kind}\n")


def test_affine_yield_ends_a_loop():
    with pytest.raises(VerifyError, match="expects parent op to be one of"):
        irees.compile("func.func @main(%x: f32) -> f32 { affine.yield %x : f32 }")


@pytest.mark.parametrize("target", ["reference", "cpu", "cuda-emulated"])
@pytest.mark.parametrize(
    ("kind", "assumed", "right", "wrong"),
    [
        ("index", "umin = 2, umax = 9", (2, 9), (1, 10, -1)),
        ("i64", "udiv = 8", (0, 64, -8), (4, -1)),
        # A bound that the type cannot exceed holds; a divisor beyond it leaves 0.
        ("i8", "umin = 0, umax = 300", (0, 100, -1), ()),
        ("i8", "umin = 200", (-1,), (0, 100)),
        ("i8", "umin = 256", (), (0, -1)),
        ("i8", "udiv = 256", (0,), (1, 64, -128)),
        ("i32", "umax = 4294967295, udiv = 4", (0, -4), (2,)),
    ],
)
def test_a_wrong_assumption_traps(target, kind, assumed, right, wrong):
    """Analyses count on it, so the interpreter must not go on where compiled code stops."""
    program = irees.compile(
        f"""
        func.func @main(%x: {kind}) -> {kind} {{
          %y = util.assume.int %x<{assumed}> : {kind}
          return %y : {kind}
        }}""",
        target=target,
    )
    for number in right:
        assert program(number) == number
    for number in wrong:
        with pytest.raises(RuntimeTrap, match="not what is assumed"):
            program(number)
