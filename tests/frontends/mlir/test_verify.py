"""Rules that hold across ops: what is defined before it is used, and where ops may stand."""

from __future__ import annotations

import numpy as np
import pytest

import irees
from irees.errors import VerifyError

HEAD = "func.func @f(%a: tensor<4xf32>, %c: i1) -> tensor<4xf32> {"
GENERIC = """%r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%x: f32, %y: f32):
    BODY
    linalg.yield %x : f32
  } -> tensor<4xf32>"""


def generic(body: str, before: str = "", after: str = "") -> str:
    """A function of one generic, and ops around it."""
    return f"""{HEAD}
  %e = tensor.empty() : tensor<4xf32>
  {before}
  {GENERIC.replace("BODY", body)}
  {after}
  return %r : tensor<4xf32>
}}"""


USE = "%z = arith.addf %x, %late : f32"
INVALID = {
    "a value that follows the op": (
        generic(USE, after="%late = arith.constant 1.0 : f32"), "used before it is defined",
    ),
    "the op's own result": (
        generic("%i = arith.constant 0 : index\n %z = tensor.extract %r[%i] : tensor<4xf32>"),
        "used before it is defined",
    ),
    "a value of a region beside": (
        generic(USE, before="""%u = scf.if %c -> f32 {
    %late = arith.constant 1.0 : f32
    scf.yield %late : f32
  } else {
    %o = arith.constant 2.0 : f32
    scf.yield %o : f32
  }"""), "%late",
    ),
    "a value two regions out that follows": (
        generic(f"scf.if %c {{\n {USE}\n scf.yield\n }}",
                after="%late = arith.constant 1.0 : f32"), "used before it is defined",
    ),
    "a block that does not dominate": (
        f"""{HEAD}
  cf.cond_br %c, ^one, ^two
^one:
  %late = arith.constant 1.0 : f32
  cf.br ^two
^two:
  %e = tensor.empty() : tensor<4xf32>
  {GENERIC.replace("BODY", USE)}
  return %r : tensor<4xf32>
}}""", "does not dominate its use",
    ),
    "an index of a loop that is not there": (
        generic("%i = linalg.index 1 : index"),
        r"expected dim \(1\) to be lower than the number of loops \(1\)",
    ),
    "an index in no structured op": (
        generic("", before="%i = linalg.index 0 : index"), "expected parent op with LinalgOp",
    ),
}  # fmt: skip


AFFINE_FOR = """func.func @f(%n: index) -> index {
  %r = "affine.for"(%n, %n, %n) <{lowerBoundMap = affine_map<(d0) -> (d0)>,
      upperBoundMap = affine_map<(d0) -> (d0)>, step = 1 : index,
      operandSegmentSizes = array<i32: 1, 1, 1>}> ({
    BODY
  }) : (index, index, index) -> index
  return %r : index
}"""
UPDATES = """func.func @f(%a: tensor<4xf32>, %b: index)
    -> (tensor<4xf32> {irees.updates = 0 : index}, TYPE {irees.updates = NUMBER : index}) {
  return %a, VALUE : tensor<4xf32>, TYPE
}"""


def updates(number: int, value: str, kind: str) -> str:
    """A function that writes two arguments."""
    text = UPDATES.replace("NUMBER", str(number)).replace("VALUE", value)
    return text.replace("TYPE", kind)


INVALID |= {
    "a function without a terminator": (
        "func.func @f(%x: f32) -> f32 {\n}", "empty block: expected at least a terminator",
    ),
    "a called function without a terminator": (
        "func.func private @g(%x: i1) {\n}\nfunc.func @f(%x: i1) {\n func.call @g(%x) : (i1) -> ()\n"
        "  return\n}",
        "empty block",
    ),
    "a branch to nothing": (
        "func.func @f() {\n  cf.br ^end\n^end:\n}", "empty block",
    ),
    "a body without a terminator": (
        generic("").replace("linalg.yield %x : f32", ""), "empty block|before its terminator",
    ),
    "a function in a body": (
        generic("func.func @g() {\n return\n}"), "a symbol must be in a symbol table",
    ),
    "a return of no function": ("util.return {\n  util.return\n}", "expects parent op to be"),
    "a loop without a body": (AFFINE_FOR.replace("BODY", ""), "expected a body of one block"),
    "a loop that yields nothing": (
        AFFINE_FOR.replace("BODY", '^bb0(%i: index, %x: index): "affine.yield"() : () -> ()'),
        "expected the body to end with a yield",
    ),
    "more elements than an index counts": (
        "func.func @f(%x: tensor<1099511627776x1099511627776xf32>) {\n return\n}",
        "larger than any memory",
    ),
    "a size above 64 bits": (
        "func.func @f(%x: tensor<18446744073709551616x?xf32>) {\n return\n}",
        "larger than any memory",
    ),
    "a tensor of tensors": (
        "func.func @f(%x: tensor<4xtensor<4xf32>>) {\n return\n}", "invalid element type tensor",
    ),
    "a dim that the result of a concatenation lacks": (
        """func.func @f(%a: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %c = tensor.concat dim(-1) %a, %a : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  return %c : tensor<?x3xf32>
}""", r"concatenation dim must be in \[0, 2\)",
    ),
    "a load with too few indices": (
        """func.func @f(%x: memref<1x3xf32>, %i: index) -> f32 {
  %s = memref.load %x[%i] : memref<1x3xf32>
  return %s : f32
}""", "expected an index for each dimension",
    ),
    "an update of an argument that is not there": (
        updates(7, "%a", "tensor<4xf32>"), "must be the number of an argument",
    ),
    "two updates of one argument": (
        updates(0, "%a", "tensor<4xf32>"), "must be the number of an argument, without repeats",
    ),
    "an update of an argument of another type": (
        updates(1, "%a", "tensor<4xf32>"), "tensor type of argument 1",
    ),
    "a queue that no mask has": (
        "module attributes {a = #hal.device.affinity<@b, [1099511627776, 3]>} {\n}",
        r"a queue is a number in \[0, 64\), not 1099511627776",
    ),
    "a size that reads as a dynamic one": (
        """func.func @f(%x: tensor<1x4x4x8xf32>, %o: tensor<1x4x72xf32>) {
  %r = iree_linalg_ext.im2col strides = [1, 1] dilations = [1, 1] kernel_size = [3, 3]
      offsets = [0, 0, 0] output_sizes = [[1], [2, 2], [3, 9223372036854775808, 8]]
      batch_pos = [0] m_pos = [1, 2] k_pos = [3] input_k_perm = [0, 1, 2] output_perm = [0, 1, 2]
      ins(%x : tensor<1x4x4x8xf32>) outs(%o : tensor<1x4x72xf32>) -> tensor<1x4x72xf32>
  return
}""", "The number of dynamic positions",
    ),
    "a result of another type than its output": (
        generic("").replace("} -> tensor<4xf32>", "} -> tensor<5xf32>")
        .replace("return %r", "return %a"),
        r"expected type of operand #1 \(tensor<4xf32>\) to match type of corresponding result",
    ),
    "an update of what is no tensor": (updates(1, "%b", "index"), "tensor type of argument 1"),
}  # fmt: skip


@pytest.mark.parametrize("kind", INVALID)
def test_invalid_programs_are_refused_with_their_place(kind):
    text, message = INVALID[kind]
    for target in ("cpu", "reference"):
        with pytest.raises(irees.errors.IreesError, match=message) as error:
            irees.compile(text, target=target)
        assert str(error.value).startswith("<text>:")


def test_what_stands_before_or_dominates_is_visible():
    before = "%late = arith.constant 1.0 : f32"
    irees.compile(generic(USE, before=before))
    nested = f"scf.if %c {{\n {USE}\n scf.yield\n }}"
    irees.compile(generic(nested, before=before))
    # Blocks may stand in another order than that in which they run.
    irees.compile(f"""{HEAD}
  cf.br ^first
^second:
  %e = tensor.empty() : tensor<4xf32>
  {GENERIC.replace("BODY", USE)}
  return %r : tensor<4xf32>
^first:
  %late = arith.constant 1.0 : f32
  cf.br ^second
}}""")


def test_an_index_in_a_map():
    text = """func.func @f(%a: tensor<3x4xi32>) -> tensor<3x4xi32> {
  %e = tensor.empty() : tensor<3x4xi32>
  %r = linalg.map ins(%a : tensor<3x4xi32>) outs(%e : tensor<3x4xi32>) (%x: i32, %o: i32) {
    %i = linalg.index 1 : index
    %n = arith.index_cast %i : index to i32
    %y = arith.addi %x, %n : i32
    linalg.yield %y : i32
  }
  return %r : tensor<3x4xi32>
}"""
    a = np.ones((3, 4), np.int32)
    for target in ("reference", "cpu", "cuda-emulated"):
        np.testing.assert_array_equal(irees.compile(text, target=target)(a), a + np.arange(4))
    with pytest.raises(VerifyError, match=r"lower than the number of loops \(2\)"):
        irees.compile(text.replace("index 1 :", "index 2 :"))
