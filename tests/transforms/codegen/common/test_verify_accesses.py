"""
Programs whose accesses are all shown: an error of code generation is seen without a run.

Sizes of all kinds: static and not, with and without rests of tiles and vectors.
"""

from __future__ import annotations

import functools

import pytest

import irees
from irees.backends.c.backend import BACKEND
from irees.backends.common.program_text import ProgramText, print_program
from irees.build import is_guarded
from irees.dialects.flow import ExecutableOp
from irees.errors import InternalError

TARGETS = ("cpu:x86-64-v3", "cuda:sm_80")


def matmul(m, k, n) -> str:
    a, b, c = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    return f"""
func.func @main(%a: {a}, %b: {b}, %c: {c}) -> {c} {{
  %r = linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c}) -> {c}
  %s = math.tanh %r : {c}
  return %s : {c}
}}"""


def convolution(c, h) -> str:
    x, w, r = f"tensor<1x{c}x{h}x{h}xf32>", f"tensor<24x{c}x3x3xf32>", "tensor<1x24x?x?xf32>"
    return f"""
func.func @main(%x: {x}, %w: {w}, %o: {r}) -> {r} {{
  %r = linalg.conv_2d_nchw_fchw ins(%x, %w : {x}, {w}) outs(%o : {r}) -> {r}
  return %r : {r}
}}"""


def softmax(m, n) -> str:
    x = f"tensor<{m}x{n}xf32>"
    return f"""
func.func @main(%x: {x}, %o: {x}) -> {x} {{
  %r = linalg.softmax dimension(1) ins(%x : {x}) outs(%o : {x}) -> {x}
  return %r : {x}
}}"""


def transpose(m, n) -> str:
    x, y = f"tensor<{m}x{n}xf32>", f"tensor<{n}x{m}xf32>"
    return f"""
func.func @main(%x: {x}, %o: {y}) -> {y} {{
  %r = linalg.transpose ins(%x : {x}) outs(%o : {y}) permutation = [1, 0]
  return %r : {y}
}}"""


def chain(n) -> str:
    """Reductions of temporaries that are used at the same time."""
    x, r = f"tensor<{n}x96xf32>", f"tensor<{n}xf32>"
    sums = ""
    for i in range(4):
        sums += f"""
  %e{i} = linalg.generic {{indexing_maps = [{MAP2}, {MAP1}], iterator_types = {KINDS}}}
    ins(%x{i} : {x}) outs(%o : {r}) {{
    ^bb0(%p: f32, %q: f32):
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
  }} -> {r}
  %b{i} = linalg.broadcast ins(%e{i} : {r}) outs(%x : {x}) dimensions = [1]
  %x{i + 1} = arith.mulf %x{i}, %b{i} : {x}"""
    return f"""
func.func @main(%x: {x}, %o: {r}) -> ({x}, {x}) {{
  %x0 = math.tanh %x : {x}{sums}
  %y = arith.addf %x4, %x0 : {x}
  return %y, %x4 : {x}, {x}
}}"""


MAP1, MAP2 = "affine_map<(i, j) -> (i)>", "affine_map<(i, j) -> (i, j)>"
KINDS = '["parallel", "reduction"]'

SCATTER = """
func.func @main(%u: tensor<300x5xf32>, %i: tensor<300x1xi32>, %o: tensor<?x5xf32>)
    -> tensor<?x5xf32> {
  %r = iree_linalg_ext.scatter dimension_map = [0] unique_indices(false)
    ins(%u, %i : tensor<300x5xf32>, tensor<300x1xi32>) outs(%o : tensor<?x5xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    iree_linalg_ext.yield %s : f32
  } -> tensor<?x5xf32>
  return %r : tensor<?x5xf32>
}"""

SORT = """
func.func @main(%x: tensor<7x13xf32>) -> tensor<7x13xf32> {
  %r = iree_linalg_ext.sort dimension(1) outs(%x : tensor<7x13xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.cmpf olt, %a, %b : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<7x13xf32>
  return %r : tensor<7x13xf32>
}"""

TOPK = """
func.func @main(%x: tensor<3x100xf32>, %v: tensor<3x8xf32>, %i: tensor<3x8xi32>)
    -> (tensor<3x8xf32>, tensor<3x8xi32>) {
  %r:2 = iree_linalg_ext.topk dimension(1) ins(%x : tensor<3x100xf32>)
    outs(%v, %i : tensor<3x8xf32>, tensor<3x8xi32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.cmpf ogt, %a, %b : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<3x8xf32>, tensor<3x8xi32>
  return %r#0, %r#1 : tensor<3x8xf32>, tensor<3x8xi32>
}"""

RESHAPE = """
func.func @f(%x: tensor<4x?xf32>, %m: index) -> tensor<?x?xf32> {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %n = tensor.dim %x, %c1 : tensor<4x?xf32>
  %r = arith.remsi %n, %c3 : index
  %s = tensor.from_elements %r, %m : tensor<2xindex>
  %y = tensor.reshape %x(%s) : (tensor<4x?xf32>, tensor<2xindex>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}"""
"""The product (n - 3 (n div 3)) m of sizes is no sum of natural products, and yet natural."""


SQUARES = """
func.func @f(%x: tensor<?x3x?x?xf32>, %t: tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %z = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x3x?x?xf32>
  %h = tensor.dim %x, %c2 : tensor<?x3x?x?xf32>
  %d2 = tensor.dim %t, %c2 : tensor<?x4x?x?xf32>
  %d3 = tensor.dim %t, %c3 : tensor<?x4x?x?xf32>
  %less = arith.subi %h, %c2 : index
  %more = arith.addi %h, %c2 : index
  %e2 = arith.cmpi eq, %d2, %less : index
  cf.assert %e2, "rows"
  %e3 = arith.cmpi eq, %d3, %less : index
  cf.assert %e3, "columns"
  %e4 = arith.cmpi sge, %h, %c3 : index
  cf.assert %e4, "at least 3"
  %a = tensor.empty(%n, %less, %less) : tensor<?x4x?x?xf32>
  %b = linalg.transpose ins(%t : tensor<?x4x?x?xf32>) outs(%a : tensor<?x4x?x?xf32>)
      permutation = [0, 1, 3, 2]
  %c = tensor.empty(%n, %more, %less) : tensor<?x4x?x?xf32>
  %d = linalg.fill ins(%z : f32) outs(%c : tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %e = tensor.insert_slice %b into %d[0, 0, 2, 0] [%n, 4, %less, %less] [1, 1, 1, 1]
      : tensor<?x4x?x?xf32> into tensor<?x4x?x?xf32>
  %f = tensor.empty(%n, %more, %more) : tensor<?x4x?x?xf32>
  %g = linalg.fill ins(%z : f32) outs(%f : tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %i = tensor.insert_slice %e into %g[0, 0, 0, 2] [%n, 4, %more, %less] [1, 1, 1, 1]
      : tensor<?x4x?x?xf32> into tensor<?x4x?x?xf32>
  %j = tensor.empty(%n, %more, %more) : tensor<?x4x?x?xf32>
  %k = linalg.transpose ins(%i : tensor<?x4x?x?xf32>) outs(%j : tensor<?x4x?x?xf32>)
      permutation = [0, 1, 3, 2]
  return %k : tensor<?x4x?x?xf32>
}"""
"""Temporaries of n (h - 2)^2, n (h + 2) (h - 2) and n (h + 2)^2 elements in one arena."""


PROGRAMS = {
    "matmul static": matmul(64, 96, 128),
    "matmul rests": matmul(67, 45, 35),
    "matmul large": matmul(300, 700, 530),
    "matmul dynamic": matmul("?", "?", "?"),
    "convolution": convolution(16, 20),
    "convolution dynamic": convolution("?", "?"),
    "softmax": softmax(37, 101),
    "softmax dynamic": softmax("?", "?"),
    "transpose": transpose(70, 45),
    "transpose dynamic": transpose("?", "?"),
    "chain": chain(40),
    "chain dynamic": chain("?"),
    "scatter": SCATTER,
    "sort": SORT,
    "topk": TOPK,
}


EXPECTED = {
    # Workgroups share the sums of a tile, in an order that counters say.
    ("matmul large", "cuda:sm_80"): (0, 9),
    # Places that are counted.
    ("scatter", "cuda:sm_80"): (6, 0),
    ("topk", "cpu:x86-64-v3"): (1, 0),
    ("topk", "cuda:sm_80"): (1, 0),
}
"""Program and target => accesses that are guarded, and that are not shown to be apart."""


@functools.cache
def accesses(text: str, target: str) -> dict[str, int]:
    """How many accesses of all kernels are kept inside in which way."""
    module = irees.compile(text, to="verification", target=target)
    total: dict[str, int] = {}
    for op in module.ops:
        if op.name == "flow.executable":
            for kind, number in op.attributes["accesses"].data.items():
                total[kind] = total.get(kind, 0) + number.value.data
    return total


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_access_is_shown(name: str, target: str):
    found = accesses(PROGRAMS[name], target)
    assert found["proved"] > 0
    expected = EXPECTED.get((name, target), (0, 0))
    assert (found["guarded"], found["together"]) == expected


@pytest.mark.parametrize("target", TARGETS)
def test_a_product_of_natural_differences_is_natural(target: str):
    """The copy of the argument into a result of these sizes runs on the host."""
    assert irees.compile(RESHAPE, to="verification", target=target) is not None


@pytest.mark.parametrize("target", TARGETS)
def test_temporaries_of_square_images_fit_into_their_arena(target: str):
    """A size is a polynomial of degree 2 in the height, with terms of either sign."""
    assert irees.compile(SQUARES, to="verification", target=target) is not None


def test_a_temporary_that_shares_bytes_is_refused():
    """Two views of an arena that are used by one dispatch."""
    text = """
flow.executable @k {
  builtin.module {
    func.func @k(%x: memref<4xf32>, %y: memref<4xf32>) { func.return }
  }
}
func.func @main() {
  %a = memref.alloc() : memref<64xi8>
  %c0 = arith.constant 0 : index
  %c12 = arith.constant 12 : index
  %x = memref.view %a[%c0][] : memref<64xi8> to memref<4xf32>
  %y = memref.view %a[%c12][] : memref<64xi8> to memref<4xf32>
  stream.cmd.dispatch @k::@k(%x, %y) : memref<4xf32>, memref<4xf32>
  func.return
}"""
    with pytest.raises(InternalError, match="two live temporaries overlap in the arena"):
        irees.compile(text, start="codegen", to="verification")
    irees.compile(text.replace("12 : index", "16 : index"), start="codegen", to="verification")


def test_a_barrier_that_some_threads_do_not_come_to_is_refused():
    text = """
flow.executable @k {
  builtin.module {
    func.func @k(%n: index) {
      scf.forall (%t) in (64) {
        %c = arith.cmpi ult, CONDITION : index
        scf.if %c {
          gpu.barrier
        }
      } {mapping = [#gpu.thread<linear_dim_0>]}
      func.return
    }
  }
}
func.func @main(%n: index) {
  stream.cmd.dispatch @k::@k(%n) : index
  func.return
}"""
    options = {"start": "codegen", "to": "verification", "target": "cuda:sm_80"}
    with pytest.raises(InternalError, match="divergent barrier: some threads may not reach it"):
        irees.compile(text.replace("CONDITION", "%t, %n"), **options)
    irees.compile(text.replace("CONDITION", "%n, %n"), **options)


FILL = """
func.func @main(%y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    memref.store %one, %y[%i] : memref<?xf32>
  }
  return
}"""


def test_what_a_program_does_not_declare_is_guarded():
    """Nothing says that the buffer has n elements."""
    assert accesses(FILL, "cpu:x86-64-v3")["guarded"] == 1


PADDED_VIEW = """
func.func @f(%x: tensor<?xf32>, %m: index, %n: index, %l: index, %h: index) -> tensor<?x?xf32> {
  %s = tensor.from_elements %m, %n : tensor<2xindex>
  %v = tensor.reshape %x(%s) : (tensor<?xf32>, tensor<2xindex>) -> tensor<?x?xf32>
  %c = arith.constant 7.0 : f32
  %p = tensor.pad %v low[0, %l] high[0, %h] {
  ^bb0(%i: index, %j: index):
    tensor.yield %c : f32
  } : tensor<?x?xf32> to tensor<?x?xf32>
  return %p : tensor<?x?xf32>
}"""


def test_both_comparisons_of_a_guard_are_of_one_machine_value():
    """`0 <= place` and `place <= last` of vectors, where the place is a sum that may have wrapped."""
    assert accesses(PADDED_VIEW, "cpu:x86-64-v3")["guarded"] > 0


@pytest.mark.parametrize("size", [4096, 200_000, "?"])
def test_counted_places_are_tested_where_they_are_used(size: int | str):
    """No inequality says that they are inside."""
    text = SORT.replace("7x13", f"2x{size}")
    assert accesses(text, "cpu:x86-64-v3")["guarded"] == 0


@pytest.mark.parametrize("trap", [False, True])
def test_kernels_that_are_guarded_are_printed_again(trap, monkeypatch):
    """Texts are those of the module as it is in the end, also where kernels have traps."""
    again: list[int] = []
    print_again = ProgramText.print_again

    def counted(self, executables):
        changed = list(executables)
        again.append(len(changed))
        if trap:
            self.trapping.update(e.sym_name.data for e in changed)
        return print_again(self, changed)

    monkeypatch.setattr(ProgramText, "print_again", counted)
    program = irees.compile(FILL, target="cpu:x86-64-v3")
    module = irees.compile(FILL, target="cpu:x86-64-v3", to="verification")
    assert program.sources == print_program(module, BACKEND).texts
    assert again == [sum(is_guarded(op) for op in module.ops if isinstance(op, ExecutableOp))]
    assert again[0] > 0
