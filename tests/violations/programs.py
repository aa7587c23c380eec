"""
Programs whose shapes may break what they declare, and the sizes to try them with.

`LISTED` are those that once read or wrote outside of an array; `random_program` makes others: ops of
every kind that relates sizes, over a pool of tensors whose dims are static or dynamic as it comes, so
that about half of them can only work for some sizes. Data are small whole numbers: no sum of them
depends on its order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

SIZES = (0, 1, 2, 3, 5, 8)
"""Sizes of dims that nothing asks for."""
NUMBERS = (-1, 0, 1, 2, 3, 7, 1 << 62, -(1 << 62))
"""Offsets, sizes and strides that a program is called with."""


@dataclass
class Program:
    """A program of one function `f`, and what its arguments are: shapes (-1 is dynamic) or index."""

    text: str
    arguments: list[tuple[int, ...] | str]

    def calls(self, rng: np.random.Generator, count: int) -> Iterator[list[np.ndarray | int]]:
        """Arguments to call it with: dims are mostly of one size, so that some calls work."""
        for _ in range(count):
            usual = int(rng.integers(1, 5))
            yield [self._argument(kind, usual, rng) for kind in self.arguments]

    def _argument(
        self, kind: tuple[int, ...] | str, usual: int, rng: np.random.Generator
    ) -> np.ndarray | int:
        if isinstance(kind, str):
            return int(rng.choice(NUMBERS)) if rng.random() < 0.5 else usual
        shape = [
            n if n >= 0 else usual if rng.random() < 0.75 else int(rng.choice(SIZES)) for n in kind
        ]
        return rng.integers(-4, 5, shape).astype(np.float32)


# --- what was found ---------------------------------------------------------------------------


def tensor_type(shape: tuple[int, ...], element: str = "f32") -> str:
    return f"tensor<{''.join('?x' if n < 0 else f'{n}x' for n in shape)}{element}>"


def _generic(
    maps: list[str], kinds: str, types: list[str], result: str, body: str = "%s = arith.addf %a, %a"
) -> str:
    names = ["%a", "%b", "%c"][: len(types)]
    iterators = ", ".join('"parallel"' if k == "p" else '"reduction"' for k in kinds)
    arguments = ", ".join(f"{n}: f32" for n in names)
    inputs = ", ".join(f"%x{i}" for i in range(len(types) - 1))
    return f"""%r = linalg.generic {{
    indexing_maps = [{", ".join(f"affine_map<{m}>" for m in maps)}], iterator_types = [{iterators}]}}
    ins({inputs} : {", ".join(types[:-1])}) outs(%x{len(types) - 1} : {types[-1]}) {{
  ^bb0({arguments}):
    {body} : f32
    linalg.yield %s : f32
  }} -> {result}"""


def _function(body: str, arguments: list[tuple[int, ...] | str], result: str) -> Program:
    signature = ", ".join(
        f"%x{i}: {a if isinstance(a, str) else tensor_type(a)}" for i, a in enumerate(arguments)
    )
    text = f"func.func @f({signature}) -> {result} {{\n  {body}\n  return %r : {result}\n}}\n"
    return Program(text, arguments)


INDICES = (
    "1099511627776", "i - 1", "2 - i", "9", "0", "i mod 3", "i mod 3 + 5", "i floordiv 2",
    "i floordiv 2 + 7", "i ceildiv 2", "i * 3 mod 6", "(i * 2) floordiv 3 + i mod 2", "i * 2 - i",
    "-i", "i * 288230376151711743", "(i - 3) floordiv 2 + 2", "(i - 3) mod 4",
    "(2 - i) ceildiv 2 + 1", "(i * -3 + 7) mod 5", "(i mod 2) * 3 - i floordiv 2 + 1",
    "(i + 5) mod 8 - 5",
)  # fmt: skip
"""Indices of one loop, most of which leave some operand."""


def _by_maps() -> Iterator[tuple[str, Program]]:
    line, one = "tensor<?xf32>", (-1,)
    for index in INDICES:
        maps = [f"(i) -> ({index})", "(i) -> (i)"]
        body = _generic(maps, "p", [line, line], line)
        yield f"read {index}", _function(body, [one, one], line)
        yield (
            f"write {index}",
            _function(_generic(maps[::-1], "p", [line, line], line), [one, one], line),
        )
        maps = [f"(i) -> ({index})", "(i) -> (i)", "(i) -> ()"]
        for body in ("%t = arith.addf %a, %b : f32\n    %s = arith.addf %t, %c",
                     "%s = arith.addf %a, %b"):  # fmt: skip
            text = _generic(maps, "r", [line, line, "tensor<f32>"], "tensor<f32>", body)
            yield f"sum {index} {len(body)}", _function(text, [one, one, ()], "tensor<f32>")
    body = _generic(["(i) -> (i, 0)", "(i) -> (i)"], "p", ["tensor<3x?xf32>", "tensor<3xf32>"],
                    "tensor<3xf32>")  # fmt: skip
    yield "a column of none", _function(body, [(3, -1), (3,)], "tensor<3xf32>")


COMPARE = """{
  ^bb0(%a: f32, %b: f32):
    %more = arith.cmpf ogt, %a, %b : f32
    iree_linalg_ext.yield %more : i1
  }"""
_PAD = "{\n  ^bb0(%i: index):\n    tensor.yield %zero : f32\n  }"


def _by_moves() -> Iterator[tuple[str, Program]]:
    line, square = (-1,), (-1, -1)
    a, b, r2 = "tensor<?xf32>", "tensor<?x?xf32>", (-1, -1)
    zero = "%zero = arith.constant 0.0 : f32\n  "
    yield "cast", _function(f"%r = tensor.cast %x0 : {a} to tensor<4xf32>", [line], "tensor<4xf32>")
    text = f"%r = tensor.expand_shape %x0 [[0, 1]] output_shape [%x1, 4] : {a} into tensor<?x4xf32>"
    yield "expand", _function(text, [line, "index"], "tensor<?x4xf32>")
    text = f"%r = tensor.expand_shape %x0 [[0, 1]] output_shape [%x1, %x2] : {a} into {b}"
    yield "expand by two", _function(text, [line, "index", "index"], b)
    text = f"%q = tensor.collapse_shape %x0 [[0, 1]] : {b} into {a}\n  "
    yield "collapse", _function(text + f"%r = tensor.cast %q : {a} to tensor<8xf32>", [r2],
                                "tensor<8xf32>")  # fmt: skip
    text = "%s = tensor.from_elements %x1, %x2 : tensor<2xindex>\n  "
    text += f"%r = tensor.reshape %x0(%s) : ({a}, tensor<2xindex>) -> {b}"
    yield "reshape", _function(text, [line, "index", "index"], b)
    for dim in (0, 1):
        text = f"%r = tensor.concat dim({dim}) %x0, %x1 : ({b}, {b}) -> {b}"
        yield f"concat {dim}", _function(text, [square, square], b)
    text = f"%r = tensor.concat dim(0) %x0, %x1 : ({a}, {a}) -> tensor<7xf32>"
    yield "concat to a size", _function(text, [line, line], "tensor<7xf32>")
    text = f"{zero}%r = tensor.pad %x0 low[%x1] high[%x2] {_PAD} : {a} to {a}"
    yield "pad", _function(text, [line, "index", "index"], a)
    text = f"{zero}%r = tensor.pad %x0 low[1] high[2] {_PAD} : {a} to tensor<7xf32>"
    yield "pad to a size", _function(text, [line], "tensor<7xf32>")
    text = f"%r = tensor.extract_slice %x0[%x1] [%x2] [%x3] : {a} to {a}"
    yield "slice", _function(text, [line, "index", "index", "index"], a)
    text = f"%r = tensor.insert_slice %x0 into %x1[%x2] [%x3] [%x4] : {a} into {a}"
    yield "insert", _function(text, [line, line, "index", "index", "index"], a)
    text = f"{zero}%r = linalg.pack %x0 padding_value(%zero : f32) inner_dims_pos = [0] "
    text += f"inner_tiles = [%x2] into %x1 : {a} -> {b}"
    yield "pack by a tile", _function(text, [line, square, "index"], b)
    text = "%e = tensor.empty() : tensor<4xf32>\n  %r = iree_linalg_ext.topk_v2 dimension(0) "
    text += f"ins(%x0 : {a}) outs(%e : tensor<4xf32>) {COMPARE} -> tensor<4xf32>"
    yield "topk", _function(text, [line], "tensor<4xf32>")


def _by_kinds() -> Iterator[tuple[str, Program]]:
    """Ops of other kinds, and results of other types."""
    yield 'unpack', Program("""func.func @f(%x0: tensor<?x4xf32>, %x1: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.unpack %x0 inner_dims_pos = [0] inner_tiles = [4] into %x1 : tensor<?x4xf32> -> tensor<?xf32>
  return %r : tensor<?xf32>
}
""", [(-1, 4), (-1,)])  # fmt: skip
    yield "two outputs", Program("""func.func @f(%x0: tensor<?xf32>, %x1: tensor<?xf32>, %x2: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i floordiv 2 + 1)>], iterator_types = ["parallel"]} ins(%x0 : tensor<?xf32>) outs(%x1, %x2 : tensor<?xf32>, tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s, %a : f32, f32
  } -> (tensor<?xf32>, tensor<?xf32>)
  return %r#0, %r#1 : tensor<?xf32>, tensor<?xf32>
}
""", [(-1,), (-1,), (-1,)])  # fmt: skip
    yield 'switch of casts', Program("""func.func @f(%x0: tensor<?xf32>, %x1: index) -> tensor<4xf32> {
  %c = arith.constant 2 : index
  %p = arith.cmpi slt, %x1, %c : index
  %r = scf.if %p -> (tensor<4xf32>) {
    %a = tensor.cast %x0 : tensor<?xf32> to tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  } else {
    %e = tensor.extract_slice %x0[%x1] [4] [1] : tensor<?xf32> to tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
""", [(-1,), 'index'])  # fmt: skip
    yield 'halves f16', Program("""func.func @f(%x0: tensor<?xf32>, %x1: tensor<?xf32>) -> tensor<?xf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x1, %c0 : tensor<?xf32>
  %z = arith.constant 3.0 : f16
  %e = tensor.empty(%n) : tensor<?xf16>
  %o = linalg.fill ins(%z : f16) outs(%e : tensor<?xf16>) -> tensor<?xf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i floordiv 2)>], iterator_types = ["parallel"]} ins(%x0 : tensor<?xf32>) outs(%o : tensor<?xf16>) {
  ^bb0(%a: f32, %b: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<?xf16>
  return %r : tensor<?xf16>
}
""", [(-1,), (-1,)])  # fmt: skip
    yield 'scatter', Program("""func.func @f(%x0: tensor<?x?xf32>, %x1: tensor<?x?xf32>, %x2: tensor<?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x2, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?x1xi32>
  %i = linalg.generic {indexing_maps = [affine_map<(i,j) -> (i)>, affine_map<(i,j) -> (i,j)>], iterator_types = ["parallel","parallel"]} ins(%x2 : tensor<?xf32>) outs(%e : tensor<?x1xi32>) {
  ^bb0(%a: f32, %b: i32):
    %t = arith.fptosi %a : f32 to i32
    linalg.yield %t : i32
  } -> tensor<?x1xi32>
  %r = iree_linalg_ext.scatter dimension_map = [0] unique_indices(false) ins(%x0, %i : tensor<?x?xf32>, tensor<?x1xi32>) outs(%x1 : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    iree_linalg_ext.yield %s : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
""", [(-1, -1), (-1, -1), (-1,)])  # fmt: skip
    for kind, least, most in (("index", (1 << 63) - 101, (1 << 63) - 1), ("i8", -128, 127)):
        step = "%x1" if kind == "index" else "%q"
        cast = "" if kind == "index" else "%q = arith.trunci %w : i64 to i8"
        yield f"steps of {kind}", Program(f"""func.func @f(%x0: tensor<?xf32>, %x1: index) -> tensor<?xf32> {{
  %lb = arith.constant {least} : {kind}
  %ub = arith.constant {most} : {kind}
  %w = arith.index_cast %x1 : index to i64
  {cast}
  %r = scf.for %i = %lb to %ub step {step} iter_args(%t = %x0) -> tensor<?xf32> : {kind} {{
    %y = arith.addf %t, %x0 : tensor<?xf32>
    scf.yield %y : tensor<?xf32>
  }}
  return %r : tensor<?xf32>
}}
""".replace(" : index {", " {"), [(-1,), "index"])  # fmt: skip
        yield f"steps of {kind} in a kernel", Program(f"""func.func @f(%x0: tensor<?xf32>, %x1: index) -> tensor<?xf32> {{
  %lb = arith.constant {least} : {kind}
  %ub = arith.constant {most} : {kind}
  %w = arith.index_cast %x1 : index to i64
  {cast}
  %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}} outs(%x0 : tensor<?xf32>) {{
  ^bb0(%a: f32):
    %s = scf.for %i = %lb to %ub step {step} iter_args(%t = %a) -> f32 : {kind} {{
      %y = arith.addf %t, %a : f32
      scf.yield %y : f32
    }}
    linalg.yield %s : f32
  }} -> tensor<?xf32>
  return %r : tensor<?xf32>
}}
""".replace(" : index {", " {"), [(-1,), "index"])  # fmt: skip


def _by_sizes() -> Iterator[tuple[str, Program]]:
    """Sizes that only seem to be equal, empty loops, and numbers that nothing bounds."""
    yield "window of a unit loop", Program("""func.func @f(%x0: tensor<?x?x4xf32>, %x1: tensor<?xf32>, %x2: tensor<?x1x4xf32>) -> tensor<?x1x4xf32> {
  %r = linalg.pooling_nwc_max ins(%x0, %x1 : tensor<?x?x4xf32>, tensor<?xf32>) outs(%x2 : tensor<?x1x4xf32>) -> tensor<?x1x4xf32>
  return %r : tensor<?x1x4xf32>
}
""", [(-1, -1, 4), (-1,), (-1, 1, 4)])  # fmt: skip
    yield "points of an empty nest", Program("""func.func @f(%x0: tensor<2xf32>, %x1: tensor<?x?xf32>, %x2: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> ((j + j) mod 5)>, affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (j)>], iterator_types = ["parallel", "reduction", "parallel"]} ins(%x0, %x1 : tensor<2xf32>, tensor<?x?xf32>) outs(%x2 : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %t = arith.addf %a, %b : f32
    %s = arith.addf %t, %c : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
""", [(2,), (-1, -1), (-1,)])  # fmt: skip
    yield "window that is the image", Program("""func.func @f(%x0: tensor<?x?xf32>, %x1: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = linalg.conv_2d ins(%x0, %x0 : tensor<?x?xf32>, tensor<?x?xf32>) outs(%x1 : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
""", [(-1, -1), (-1, -1)])  # fmt: skip
    yield "pad of a given shape", Program("""func.func @f(%x0: tensor<?xf32>, %x1: index, %x2: index) -> tensor<?x?xf32> {
  %e = tensor.expand_shape %x0 [[0, 1]] output_shape [%x1, %x2] : tensor<?xf32> into tensor<?x?xf32>
  %c = arith.constant 0 : index
  %d = tensor.dim %x0, %c : tensor<?xf32>
  %z = arith.constant 7.0 : f32
  %r = tensor.pad %e low[1, 0] high[1, %d] {
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  } : tensor<?x?xf32> to tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
""", [(-1,), "index", "index"])  # fmt: skip
    yield "extract at a remainder", Program("""func.func @f(%x0: tensor<?xf32>, %x1: tensor<1xf32>) -> (tensor<2xf32>, tensor<?xf32>) {
  %c = arith.constant 2 : index
  %e = tensor.empty() : tensor<2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<2xf32>) {
  ^bb0(%a: f32):
    %i = linalg.index 0 : index
    %j = arith.remui %i, %c : index
    %v = tensor.extract %x1[%j] : tensor<1xf32>
    linalg.yield %v : f32
  } -> tensor<2xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%x0 : tensor<?xf32>) {
  ^bb0(%a: f32):
    %i = linalg.index 0 : index
    %j = arith.muli %i, %c : index
    %v = tensor.extract %r[%j] : tensor<2xf32>
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %r, %s : tensor<2xf32>, tensor<?xf32>
}
""", [(-1,), (1,)])  # fmt: skip
    yield "remainder between the ends", Program("""func.func @f(%x0: tensor<f32>, %x1: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> ((i + 1) mod 3, i)>], iterator_types = ["parallel"]} ins(%x0 : tensor<f32>) outs(%x1 : tensor<2x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}
""", [(), (2, 4)])  # fmt: skip
    yield "collapse of what may be empty", Program("""func.func @f(%x0: tensor<f32>, %x1: index, %x2: index, %x3: index) -> tensor<?x?xf32> {
  %c = arith.constant 1.0 : f32
  %e = tensor.empty(%x1, %x2, %x3) : tensor<?x?x?xf32>
  %o = linalg.fill ins(%c : f32) outs(%e : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %r = tensor.collapse_shape %o [[0, 1], [2]] : tensor<?x?x?xf32> into tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
""", [(), "index", "index", "index"])  # fmt: skip
    yield "flow reshape to other sizes", Program("""func.func @f(%x0: tensor<?x?xf32>, %x1: index, %x2: index) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tensor.dim %x0, %c0 : tensor<?x?xf32>
  %b = tensor.dim %x0, %c1 : tensor<?x?xf32>
  %r = flow.tensor.reshape %x0 : tensor<?x?xf32>{%a, %b} -> tensor<?x?xf32>{%x1, %x2}
  return %r : tensor<?x?xf32>
}
""", [(-1, -1), "index", "index"])  # fmt: skip
    for then in (
        "",
        "  %r = linalg.exp ins(%y : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>\n",
    ):
        yield "reshape to other sizes" + ", read" * bool(then), Program(f"""func.func @f(%x0: tensor<?x?xf32>, %x1: index, %x2: index) -> tensor<?x?xf32> {{
  %s = tensor.from_elements %x1, %x2 : tensor<2xindex>
  %y = tensor.reshape %x0(%s) : (tensor<?x?xf32>, tensor<2xindex>) -> tensor<?x?xf32>
  %e = tensor.empty(%x1, %x2) : tensor<?x?xf32>
{then}  return {"%r" if then else "%y"} : tensor<?x?xf32>
}}
""", [(-1, -1), "index", "index"])  # fmt: skip
    for count in (3, 50):
        slices = "".join(
            f"  %y{i + 1} = tensor.extract_slice %y{i}[1] [%n{i}] [1] : "
            "tensor<?xf32> to tensor<?xf32>\n"
            for i in range(count)
        )
        sizes = "".join(f", %n{i}: index" for i in range(count))
        text = f"""func.func @f(%y0: tensor<?xf32>{sizes}) -> tensor<?xf32> {{
{slices}  return %y{count} : tensor<?xf32>
}}
"""
        yield f"{count} slices", Program(text, [(-1,), *["index"] * count])


def _by_branch() -> Iterator[tuple[str, Program]]:
    """What is asserted in a branch, or of a window in a buffer of which two sizes are numbers."""
    yield "reshape to other sizes in a branch", Program("""func.func @f(%x0: tensor<?x?xf32>, %x1: index, %x2: index) -> tensor<?x?xf32> {
  %c = arith.cmpi slt, %x2, %x1 : index
  %r = scf.if %c -> tensor<?x?xf32> {
    %s = tensor.from_elements %x1, %x2 : tensor<2xindex>
    %y = tensor.reshape %x0(%s) : (tensor<?x?xf32>, tensor<2xindex>) -> tensor<?x?xf32>
    scf.yield %y : tensor<?x?xf32>
  } else {
    scf.yield %x0 : tensor<?x?xf32>
  }
  return %r : tensor<?x?xf32>
}
""", [(-1, -1), "index", "index"])  # fmt: skip
    yield "convolution of which a filter's width is not known", Program("""func.func @f(%x0: tensor<?x?x?x?xf32>, %x1: tensor<?x3x4x?xf32>, %x2: tensor<4x?x3x4xf32>) -> tensor<4x?x3x4xf32> {
  %r = linalg.conv_2d_nchw_fchw {dilations = dense<[2, 2]> : tensor<2xi64>, strides = dense<[2, 3]> : tensor<2xi64>} ins(%x0, %x1 : tensor<?x?x?x?xf32>, tensor<?x3x4x?xf32>) outs(%x2 : tensor<4x?x3x4xf32>) -> tensor<4x?x3x4xf32>
  return %r : tensor<4x?x3x4xf32>
}
""", [(4, 3, 11, 14), (4, 3, 4, -1), (4, 4, 3, 4)])  # fmt: skip


def _by_use() -> Iterator[tuple[str, Program]]:
    """Operands and results that nothing reads: their sizes are those that the op demands still."""
    yield "input that no body reads", Program("""func.func @f(%x0: tensor<?xf32>, %x1: tensor<?xf32>, %x2: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x0, %x1 : tensor<?xf32>, tensor<?xf32>) outs(%x2 : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
""", [(-1,), (-1,), (-1,)])  # fmt: skip
    yield "result that nothing reads", Program("""func.func @f(%x0: tensor<?xf32>, %x1: tensor<?xf32>, %x2: tensor<?xf32>) -> tensor<?xf32> {
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x0 : tensor<?xf32>) outs(%x1, %x2 : tensor<?xf32>, tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s, %a : f32, f32
  } -> (tensor<?xf32>, tensor<?xf32>)
  return %r#0 : tensor<?xf32>
}
""", [(-1,), (-1,), (-1,)])  # fmt: skip
    yield "values of a sort that nothing reads", Program("""func.func @f(%x0: tensor<?xf32>, %x1: tensor<?xf32>) -> tensor<?xf32> {
  %r:2 = iree_linalg_ext.sort dimension(0) outs(%x0, %x1 : tensor<?xf32>, tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    %s = arith.cmpf olt, %a, %b : f32
    iree_linalg_ext.yield %s : i1
  } -> tensor<?xf32>, tensor<?xf32>
  return %r#0 : tensor<?xf32>
}
""", [(-1,), (-1,)])  # fmt: skip


def _by_host() -> Iterator[tuple[str, Program]]:
    """Ops of `flow.tensor`: what they state of their operands, and places outside."""
    one = "tensor<?xf32>"
    for name, line, more in (
        ("splat", f"flow.tensor.splat %c : {one}{{%m}}", ()),
        ("slice", f"flow.tensor.slice %x[%i for %m] : {one}{{%n}} -> {one}{{%m}}", ()),
        ("update", f"flow.tensor.update %u, %x[%i] : {one}{{%m}} -> %x as {one}{{%n}}", ((-1,),)),
        ("store", f"flow.tensor.store %c, %x[%i] : {one}{{%n}}", ()),
    ):
        given = f", %u: {one}" if more else ""
        text = f"""func.func @f(%x: {one}, %n: index, %m: index, %i: index{given}) -> {one} {{
  %c = arith.constant 7.0 : f32
  %y = {line}
  return %y : {one}
}}
"""
        yield f"{name} of the host", Program(text, [(-1,), "index", "index", "index", *more])
    text = f"""func.func @f(%x: {one}, %n: index, %m: index) -> f32 {{
  %y = flow.tensor.load %x[%m] : {one}{{%n}}
  return %y : f32
}}
"""
    yield "load of the host", Program(text, [(-1,), "index", "index"])
    text = """func.func @f(%x: tensor<?xf32>, %n: index, %m: index) -> tensor<?x?xf32> {
  %c = arith.constant 7.0 : f32
  %y = tensor.splat %c[%n, %m] : tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
"""
    yield "splat", Program(text, [(-1,), "index", "index"])


def _by_blocks() -> Iterator[tuple[str, Program]]:
    """Stages of a transform, images of which tiles are cut, reductions of nothing."""
    one, two = "tensor<?xf32>", "tensor<?x?xf32>"
    yield "stage of a transform", Program(f"""func.func @f(%x: {one}, %y: {one}, %s: index) -> {one} {{
  %r:2 = iree_linalg_ext.fft ins(%s : index) outs(%x, %y : {one}, {one}) : {one}, {one}
  return %r#0 : {one}
}}
""", [(-1,), (-1,), "index"])  # fmt: skip
    yield "image of which tiles are cut", Program("""func.func @f(%x: tensor<1x?x?x3xf32>, %o: tensor<8x8x1x?x?x3xf32>) -> tensor<8x8x1x?x?x3xf32> {
  %r = iree_linalg_ext.winograd.input_transform output_tile_size(6) kernel_size(3) image_dimensions([1, 2]) ins(%x : tensor<1x?x?x3xf32>) outs(%o : tensor<8x8x1x?x?x3xf32>) -> tensor<8x8x1x?x?x3xf32>
  return %r : tensor<8x8x1x?x?x3xf32>
}
""", [(1, -1, -1, 3), (8, 8, 1, -1, -1, 3)])  # fmt: skip
    image = "tensor<1x?x?x2xf32>"
    yield "columns of an image", Program(f"""func.func @f(%x: {image}, %o: tensor<1x?x?xf32>) -> tensor<1x?x?xf32> {{
  %r = iree_linalg_ext.im2col strides = [1, 1] dilations = [1, 1] kernel_size = [2, 2] offsets = [0, 0, 0] output_sizes = [[1], [2, 2], [2, 2, 2]] batch_pos = [0] m_pos = [1, 2] k_pos = [3] input_k_perm = [0, 1, 2] output_perm = [0, 1, 2] ins(%x : {image}) outs(%o : tensor<1x?x?xf32>) -> tensor<1x?x?xf32>
  return %r : tensor<1x?x?xf32>
}}
""", [(1, -1, -1, 2), (1, -1, -1)])  # fmt: skip
    yield "last of a row", Program(f"""func.func @f(%x: {two}, %o: {one}) -> {one} {{
  %r = linalg.reduce ins(%x : {two}) outs(%o : {one}) dimensions = [1] (%a: f32, %b: f32) {{
    linalg.yield %a : f32
  }}
  return %r : {one}
}}
""", [(-1, -1), (-1,)])  # fmt: skip
    kinds = ", ".join(f"#iree_linalg_ext.iterator_type<{k}>" for k in ("parallel", "reduction"))
    yield "last exponential of a row", Program(f"""func.func @f(%x: {two}, %m: {one}, %s: {one}) -> ({one}, {one}) {{
  %r:2 = iree_linalg_ext.exp_reduction {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], iterator_types = [{kinds}], exp_reduced_operands = [1]}} ins(%x : {two}) outs(%m, %s : {one}, {one}) {{
  ^bb0(%e: f32, %a: f32, %b: f32):
    %t = arith.addf %b, %e : f32
    iree_linalg_ext.yield %e, %t : f32, f32
  }} -> {one}, {one}
  return %r#0, %r#1 : {one}, {one}
}}
""", [(-1, -1), (-1,), (-1,)])  # fmt: skip


LISTED: dict[str, Program] = {
    **dict(_by_maps()),
    **dict(_by_moves()),
    **dict(_by_kinds()),
    **dict(_by_sizes()),
    **dict(_by_branch()),
    **dict(_by_use()),
    **dict(_by_host()),
    **dict(_by_blocks()),
}
"""Programs that once read or wrote outside of an array, or differed from the interpreter."""
