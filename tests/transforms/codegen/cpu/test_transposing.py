"""Transposes and what reads along one loop and writes along another, compiled, against numpy."""

from __future__ import annotations

from math import prod

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irees
from irees.target import Target
from irees.testing import profiles
from irees.transforms.utils.shapes import constant_value

FACTOR = profiles.load()
SIZES = st.sampled_from((1, 2, 7, 8, 15, 16, 17, 31, 33, 48, 130))
TYPES = {"f32": "f4", "f64": "f8", "i32": "i4", "i64": "i8", "i8": "i1", "i16": "i2"}


def text(shape, order, element: str, dynamic: bool, also: bool) -> str:
    """out[d0, d1, ..] = x[order] + y[d0, d1, ..], or x alone without `also`"""
    out = tuple(shape[order.index(d)] for d in range(len(shape)))

    def tensor(sizes) -> str:
        return "tensor<" + "".join(f"{'?' if dynamic else s}x" for s in sizes) + f"{element}>"

    loops = ", ".join(f"d{d}" for d in range(len(shape)))
    place = ", ".join(f"d{d}" for d in order)
    add = "arith.addf" if element.startswith("f") else "arith.addi"
    x, o = tensor(shape), tensor(out)
    sizes = [f"%n{d} = tensor.dim %x, %c{order.index(d)} : {x}" for d in range(len(out))]
    indices = [f"%c{d} = arith.constant {d} : index" for d in range(len(out))]
    lines = indices + sizes if dynamic else []
    names = ", ".join(f"%n{d}" for d in range(len(out))) if dynamic else ""
    second = f", %y : {x}, {o}" if also else f" : {x}"
    maps = [f"affine_map<({loops}) -> ({place})>"]
    maps += [f"affine_map<({loops}) -> ({loops})>"] * (2 if also else 1)
    body = f"%s = {add} %a, %b : {element}\n    linalg.yield %s" if also else "linalg.yield %a"
    joined = "\n  ".join(lines)
    return f"""func.func @main(%x: {x}{f", %y: {o}" if also else ""}) -> {o} {{
  {joined}
  %e = tensor.empty({names}) : {o}
  %r = linalg.generic {{indexing_maps = [{", ".join(maps)}],
      iterator_types = [{", ".join(['"parallel"'] * len(shape))}]}} ins(%x{second}) outs(%e : {o}) {{
  ^bb0(%a: {element}{f", %b: {element}" if also else ""}, %o: {element}):
    {body} : {element}
  }} -> {o}
  return %r : {o}
}}"""


@pytest.mark.parametrize("target", ["cpu", "cpu:generic"])
def test_transposes(target):
    @settings(max_examples=15 * FACTOR, deadline=None)
    @given(st.data())
    def agree(data):
        rank = data.draw(st.integers(2, 4))
        shape = tuple(
            data.draw(SIZES if rank < 4 else st.sampled_from((1, 3, 16, 17))) for _ in range(rank)
        )
        order = data.draw(st.permutations(range(rank)))
        element = data.draw(st.sampled_from(sorted(TYPES)))
        also = data.draw(st.booleans())
        dynamic = data.draw(st.booleans())
        source = text(shape, order, element, dynamic, also)
        program = irees.compile(source, target=target, opt_level=1)
        rng = np.random.default_rng(0)
        x = rng.integers(-50, 50, shape).astype(TYPES[element])
        expected = x.transpose([order.index(d) for d in range(rank)])
        y = rng.integers(-50, 50, expected.shape).astype(TYPES[element])
        actual = program(x, y) if also else program(x)
        np.testing.assert_array_equal(actual, expected + y if also else expected)

    agree()


@pytest.mark.parametrize("element", ["f32", "f16", "bf16"])
def test_a_transpose_is_turned_in_registers(element):
    module = irees.compile(text((64, 48), (1, 0), element, False, False), to="codegen")
    names = [op.name for op in module.walk()]
    assert "vector.shuffle" in names
    assert "memref.load" not in names


@pytest.mark.parametrize(("element", "vector_bytes"), [("f32", 64), ("f32", 32), ("i64", 16)])
def test_lines_are_written_whole(element, vector_bytes):
    """Stores to the parts of a line follow each other, for as many columns as are whole lines."""
    target = Target(vector_bytes=vector_bytes)
    module = irees.compile(
        text((56, 48), (1, 0), element, False, False), to="codegen", target=target
    )
    lanes = vector_bytes // (4 if element == "f32" else 8)
    beside = 64 // vector_bytes
    loops = [op for op in module.walk() if op.name == "scf.for"]
    counts = [sum(o.name == "vector.store" for o in loop.body.block.ops) for loop in loops]
    # 56 columns are no multiple of a line of f32, but of a vector of eight.
    rest = [lanes] if beside > 1 and 56 % (lanes * beside) else []
    assert [n for n in counts if n] == [lanes * beside, *rest]
    stores = [o for o in loops[counts.index(lanes * beside)].body.block.ops if "store" in o.name]
    for number, store in enumerate(stores):
        same = store.indices[0] is stores[number - number % beside].indices[0]
        assert same, "a line is left before it is whole"


@pytest.mark.parametrize(
    ("element", "also"), [("f32", False), ("f64", False), ("i8", False), ("f32", True)]
)
@pytest.mark.parametrize("columns", [192, 2048, 130])
def test_tiles_begin_where_lines_do(element, also, columns):
    """Where all rows lie alike in their lines; a point that is read where it is written is not done
    twice."""
    source, rows = text((37, columns), (1, 0), element, False, also), 37
    target = Target(vector_bytes=32)
    found = "extract_aligned_pointer" in str(irees.compile(source, to="codegen", target=target))
    assert found == (columns != 130 and not also)
    program = irees.compile(source, target=target)
    kind, random = np.dtype(TYPES[element]), np.random.default_rng(0)
    room = random.integers(-50, 50, (rows + 1) * columns + 64).astype(kind)
    line = -room.ctypes.data % 64 // kind.itemsize
    y = random.integers(-50, 50, (columns, rows)).astype(kind)
    for shift in range(0, 64 // kind.itemsize, 3):
        x = room[line + shift :][: rows * columns].reshape(rows, columns)
        assert x.ctypes.data % 64 == shift * kind.itemsize
        actual = program(x, y) if also else program(x)
        np.testing.assert_array_equal(actual, x.T + y if also else x.T)


@pytest.mark.parametrize(
    ("shape", "lines"),
    [
        pytest.param((768, 800), 16, id="a cache holds it and its rows"),
        pytest.param((512, 800), 1, id="rows that are written share a set"),
        pytest.param((4112, 1040), 16, id="no cache holds it, and lines are whole"),
        pytest.param((4099, 1040), 1, id="no cache holds it, and lines are not whole"),
    ],
)
def test_strips_are_as_wide_as_lines_keep_their_places(shape, lines):
    target = Target(vector_bytes=64, l3_bytes=32 << 20)
    source = text(shape, (1, 0), "f32", False, False)
    module = irees.compile(source, to="codegen", target=target)
    steps = [constant_value(op.step) for op in module.walk() if op.name == "scf.for"]
    assert steps[:3] == [lines, 16, 1]
    x = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    np.testing.assert_array_equal(irees.compile(source)(x), x.T)


@pytest.mark.parametrize(
    ("shape", "hints"),
    [
        pytest.param((4112, 1040), 16, id="each row of a tile"),
        pytest.param((768, 800), 0, id="a cache holds it"),
        pytest.param((4099, 1040), 0, id="the next tile is read at once"),
    ],
)
def test_rows_that_no_cache_holds_are_asked_for(shape, hints):
    target = Target(vector_bytes=64, l3_bytes=32 << 20)
    module = irees.compile(text(shape, (1, 0), "f32", False, False), to="codegen", target=target)
    asked = [op for op in module.walk() if op.name == "memref.prefetch"]
    loads = [op for op in module.walk() if op.name == "vector.load"]
    assert len(asked) == hints
    assert len(loads) == 16
    for hint, load in zip(asked, loads, strict=False):
        # Sixteen rows further, at the same place of the row.
        assert hint.memref is load.base
        assert hint.indices[1] is load.indices[1]
    for hint in asked[:1]:
        assert hint.indices[0].owner.operands[0] is loads[0].indices[0]
        assert constant_value(hint.indices[0].owner.operands[1]) == 16


@pytest.mark.parametrize(
    ("shape", "counts"),
    [
        pytest.param((4096, 4096), 16, id="long runs are written"),
        pytest.param((1024, 1024), 16, id="threads have enough tiles"),
        pytest.param((64, 4096), 4, id="few rows are cut"),
        pytest.param((4097, 4099), 34, id="no tile of a few columns"),
    ],
)
def test_tiles_of_transposes(shape, counts):
    module = irees.compile(text(shape, (1, 0), "f32", False, False), to="codegen")
    found = [op for op in module.walk() if op.name == "scf.forall"]
    tiles = [
        -(-stop // step)
        for op in found
        for stop, step in zip(op.staticUpperBound.get_values(), op.staticStep.get_values())
    ]
    assert prod(tiles) == counts


def test_a_transpose_of_nothing_has_no_loop():
    source = text((3, 0), (1, 0), "f32", False, False)
    module = irees.compile(source, to="codegen")
    assert not any(op.name in ("scf.forall", "scf.for") for op in module.walk())
    assert irees.compile(source)(np.empty((3, 0), np.float32)).shape == (0, 3)


@pytest.mark.parametrize("element", ["complex<f32>", "complex<f64>", "f16", "bf16", "i1", "index"])
def test_what_is_no_f32_is_moved_right(element):
    module = irees.compile(text((33, 20), (1, 0), element, False, False), to="codegen")
    shuffled = element in ("f16", "bf16", "i1", "index")
    assert "vector.shuffle" not in [op.name for op in module.walk()] or shuffled
    if element == "index":
        return  # no array of Python has that type
    program = irees.compile(text((33, 20), (1, 0), element, False, False))
    kinds = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "i1": np.bool_}
    kinds |= {"complex<f32>": np.complex64, "complex<f64>": np.complex128}
    x = np.random.default_rng(0).integers(0, 2, (33, 20)).astype(kinds[element])
    np.testing.assert_array_equal(program(x), x.T)
