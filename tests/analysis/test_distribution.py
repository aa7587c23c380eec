"""Which loops of a group of ops can share a tile loop."""

from __future__ import annotations

import pytest
from xdsl.dialects import func

from irees.analysis.distribution import Group, classes_of, groups_of, loops_of
from irees.dialects.storage import root
from irees.frontends.mlir import import_mlir

BODY = """{{
  ^bb0({inside}):
    %r = arith.addf %a0, %a{last} : f32
    linalg.yield %r : f32
  }}"""


def op(operands: str, maps: str, reduced: str = "", loops: str = "i, j") -> str:
    """A generic on the named buffers, the last of which is written."""
    names = [name.strip() for name in operands.split(",")]
    exprs = [e.strip() for e in maps.split(";")]
    kinds = ", ".join(
        '"reduction"' if loop.strip() in reduced.split() else '"parallel"'
        for loop in loops.split(",")
    )
    indexing = ", ".join(f"affine_map<({loops}) -> ({e})>" for e in exprs)
    types = [BUFFERS[name] for name in names]
    inside = ", ".join(f"%a{i}: f32" for i in range(len(names)))
    ins = (
        f"ins({', '.join('%' + n for n in names[:-1])} : {', '.join(types[:-1])})"
        if names[1:]
        else ""
    )
    return f"""
  linalg.generic {{indexing_maps = [{indexing}], iterator_types = [{kinds}]}} {ins}
      outs(%{names[-1]} : {types[-1]}) {BODY.format(inside=inside, last=len(names) - 1)}"""


BUFFERS = {
    "x": "memref<64x32xf32>", "y": "memref<64x32xf32>", "z": "memref<64x32xf32>",
    "t": "memref<32x64xf32>", "m": "memref<64xf32>", "n": "memref<32xf32>", "s": "memref<f32>",
    "q": "memref<64x64xf32>", "d": "memref<?x32xf32>", "e": "memref<?x32xf32>",
}  # fmt: skip


def members(*ops: str):
    arguments = ", ".join(f"%{name}: {kind}" for name, kind in BUFFERS.items())
    module = import_mlir(f"func.func @f({arguments}) {{{''.join(ops)}\n  return\n}}")
    function = next(o for o in module.walk() if isinstance(o, func.FuncOp))
    return [o for o in function.body.block.ops if o.name == "linalg.generic"]


def classes(*ops: str) -> list[dict[int, int]] | None:
    found = [loops_of(o) for o in members(*ops)]
    assert None not in found
    return classes_of(found)  # pyright: ignore


def test_an_elementwise_op_has_all_its_loops():
    assert classes(op("x, y", "i, j; i, j")) == [{0: 0}, {0: 1}]


def test_a_reduction_has_its_parallel_loops():
    assert classes(op("x, m", "i, j; i", "j")) == [{0: 0}]
    assert classes(op("x, s", "i, j; ", "i j")) == []


@pytest.mark.parametrize(
    ("first", "second", "want"),
    [
        # every element that is read was written by the same tile
        (op("x, y", "i, j; i, j"), op("y, z", "i, j; i, j"), [{0: 0, 1: 0}, {0: 1, 1: 1}]),
        (op("x, t", "i, j; j, i"), op("t, z", "j, i; i, j"), [{0: 0, 1: 0}, {0: 1, 1: 1}]),
        # a row maximum and what is done with it share rows only
        (op("x, m", "i, j; i", "j"), op("x, m, z", "i, j; i; i, j"), [{0: 0, 1: 0}]),
        # a broadcast reads the same row in every column
        (op("m", "i", "", "i"), op("m, z", "i; i, j"), [{0: 0, 1: 0}]),
        # sums of rows, then of columns: no loop in common
        (op("x, y", "i, j; i, j"), op("y, n", "i, j; j", "i"), [{0: 1, 1: 1}]),
        (op("x, m", "i, j; i", "j"), op("m, s", "i; ", "i", "i"), []),
        # a shifted read reaches into the next tile
        (op("m", "i", "", "i"), op("m, n", "i * 2; i", "", "i"), []),
        # they only read the same buffer: nothing ties the loops together
        (op("x, y", "i, j; i, j"), op("x, z", "i, j; i, j"), []),
    ],
)  # fmt: skip
def test_two_ops(first, second, want):
    assert (classes(first, second) or []) == want


def test_a_diagonal_spoils_both_loops():
    assert not classes(op("m, q", "i; i, j"), op("q, m", "i, i; i", "", "i"))


def test_extents_and_parallelism():
    rows = loops_of(members(op("x, m", "i, j; i", "j"))[0])
    dynamic = loops_of(members(op("d, e", "i, j; i, j"))[0])
    assert rows is not None
    assert dynamic is not None
    group = Group([rows], classes_of([rows]) or [])
    assert (group.extents(), group.parallelism()) == ([64], 64)
    group = Group([dynamic], classes_of([dynamic]) or [])
    assert group.extents() == [-1, 32]
    assert group.parallelism() > 1000


def test_groups_are_cut_where_too_little_parallelism_is_left():
    softmax = [
        op("x, m", "i, j; i", "j"),
        op("x, m, y", "i, j; i; i, j"),
        op("y, m", "i, j; i", "j"),
        op("y, m, z", "i, j; i; i, j"),
    ]
    assert [len(g.members) for g in groups_of(members(*softmax), enough=8)] == [4]
    columns = [*softmax, op("z, n", "i, j; j", "i")]
    assert [len(g.members) for g in groups_of(members(*columns), enough=8)] == [4, 1]


def test_views_have_the_root_of_what_they_view():
    module = import_mlir(
        """
func.func @f(%x: memref<64x32xf32>) {
  %v = memref.subview %x[0, 0] [8, 32] [1, 1] : memref<64x32xf32> to memref<8x32xf32, strided<[32, 1]>>
  %c = memref.cast %v : memref<8x32xf32, strided<[32, 1]>> to memref<?x32xf32, strided<[32, 1]>>
  return
}
"""
    )
    function = next(o for o in module.walk() if isinstance(o, func.FuncOp))
    *_, cast, _ = function.body.block.ops
    assert root(cast.results[0]) is function.body.block.args[0]


def test_a_padded_buffer_shares_the_dims_that_its_inside_has_whole():
    """Rows are written and read tile by tile; the inside has fewer columns than the buffer."""
    inside, plain = "memref<64x8xf32, strided<[10, 1]>>", "affine_map<(i, j) -> (i, j)>"
    kinds = 'iterator_types = ["parallel", "parallel"]'
    copied = """{
      ^bb0(%a: f32, %b: f32):
        linalg.yield %a : f32
      }"""
    module = import_mlir(f"""func.func @f(%x: memref<64x8xf32>, %y: memref<64x10xf32>) {{
      %p = memref.alloc() : memref<64x10xf32>
      %i = memref.subview %p[0, 0] [64, 8] [1, 1] : memref<64x10xf32> to {inside}
      linalg.generic {{indexing_maps = [{plain}, {plain}], {kinds}}}
          ins(%x : memref<64x8xf32>) outs(%i : {inside}) {copied}
      linalg.generic {{indexing_maps = [{plain}, {plain}], {kinds}}}
          ins(%p : memref<64x10xf32>) outs(%y : memref<64x10xf32>) {copied}
      return
    }}""")
    copy, reader = (loops_of(o) for o in module.walk() if o.name == "linalg.generic")
    assert copy is not None
    assert reader is not None
    assert classes_of([copy, reader]) == [{0: 0, 1: 0}]
