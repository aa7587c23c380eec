"""Reductions that take in what stands around them: each case was wrong once, and none is random."""

from __future__ import annotations

import numpy as np
import pytest

import irees
from irees.frontends.mlir import import_mlir
from irees.testing.oracles import Case, compiled_agrees, interpret

ADD = "%s = arith.addf %acc, %a : f32\nlinalg.yield %s : f32"
SUM = "%p = arith.mulf %a, %b : f32\n%s = arith.addf %acc, %p : f32\nlinalg.yield %s : f32"


def generic(loops: str, reads: str, ins: str, out: str, init: str, body: str) -> str:
    """loops: `mn/k`; reads: the maps of all operands, `m, k; k, n; m, n`."""
    parallel, reduced = loops.split("/")
    dims = ", ".join(parallel + reduced)
    maps = ", ".join(f"affine_map<({dims}) -> ({r})>" for r in reads.split("; "))
    kinds = ", ".join(['"parallel"'] * len(parallel) + ['"reduction"'] * len(reduced))
    count = reads.count(";")
    arguments = ", ".join(f"%{x}: f32" for x in [*"ab"[:count], "acc"])
    return (
        f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} ins({ins})"
        f" outs({init} : {out}) {{\n^bb0({arguments}):\n{body}\n}} -> {out}"
    )


def filled(out: str, number: str) -> str:
    return (
        f"%z = arith.constant {number} : f32\n%e = tensor.empty() : {out}\n"
        f"%f = linalg.fill ins(%z : f32) outs(%e : {out}) -> {out}\n"
    )


def whole(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(-3, 4, shape).astype(np.float32)


def check(text: str, *inputs: np.ndarray, **options) -> None:
    module, case = import_mlir(text), Case("main", inputs)
    found = compiled_agrees(module, [case], interpret(module, [case]), opt_level=0, **options)
    assert found == []


@pytest.mark.parametrize("number", ["0.0", "-0.0", "1.0"])
@pytest.mark.parametrize("consumer", [True, False])
def test_an_empty_sum_is_the_fill(number, consumer):
    out = "tensor<9x32xf32>"
    relu = "%s = arith.maximumf %a, %z : f32\nlinalg.yield %s : f32"
    product = generic(
        "mn/k", "m, k; k, n; m, n", "%x, %y : tensor<9x0xf32>, tensor<0x32xf32>", out, "%f", SUM
    )
    after = generic("mn/", "m, n; m, n", f"%r : {out}", out, "%e", relu)
    result = "%q" if consumer else "%r"
    text = (
        f"func.func @main(%x: tensor<9x0xf32>, %y: tensor<0x32xf32>) -> {out} {{\n"
        f"{filled(out, number)}%r = {product}\n%q = {after}\nreturn {result} : {out}\n}}\n"
    )
    check(text, whole(9, 0), whole(0, 32))


@pytest.mark.parametrize(
    ("loops", "reads", "shape", "out"),
    [
        ("hc/k", "h, k, c; h * 2, c", (5, 6, 32), (10, 32)),
        ("hc/k", "h, k, c; h, h, c", (5, 6, 32), (5, 5, 32)),
        ("c/k", "k, c; 2, c", (6, 32), (5, 32)),
    ],
)
def test_what_a_sum_skips_is_filled(loops, reads, shape, out):
    source, target = (f"tensor<{'x'.join(map(str, s))}xf32>" for s in (shape, out))
    total = generic(loops, reads, f"%x : {source}", target, "%f", ADD)
    text = (
        f"func.func @main(%x: {source}) -> {target} {{\n{filled(target, '1.0')}"
        f"%r = {total}\nreturn %r : {target}\n}}\n"
    )
    check(text, whole(*shape))


@pytest.mark.parametrize(
    ("written", "out"), [("m * 2, n", (10, 32)), ("m, m, n", (5, 5, 32)), ("m, n * 2", (5, 64))]
)
def test_what_a_contraction_skips_is_filled(written, out):
    target = f"tensor<{'x'.join(map(str, out))}xf32>"
    kinds = "tensor<5x7xf32>, tensor<7x32xf32>"
    total = generic("mn/k", f"m, k; k, n; {written}", f"%x, %y : {kinds}", target, "%f", SUM)
    text = (
        f"func.func @main(%x: tensor<5x7xf32>, %y: tensor<7x32xf32>) -> {target} {{\n"
        f"{filled(target, '0.0')}%r = {total}\nreturn %r : {target}\n}}\n"
    )
    check(text, whole(5, 7), whole(7, 32))


@pytest.mark.parametrize("loop", [0, 1])
def test_a_body_without_a_vector_form_starts_from_the_fill(loop):
    """That it has none is found when its loops are being built."""
    body = (
        f"%i = linalg.index {loop} : index\n%j = arith.index_cast %i : index to i32\n"
        "%three = arith.constant 3 : i32\n%m = arith.remsi %j, %three : i32\n"
        "%g = arith.sitofp %m : i32 to f32\n%t = arith.addf %a, %g : f32\n"
        "%s = arith.addf %acc, %t : f32\nlinalg.yield %s : f32"
    )
    out = "tensor<4x32xf32>"
    total = generic("hc/k", "h, k, c; h, c", "%x : tensor<4x6x32xf32>", out, "%f", body)
    text = (
        f"func.func @main(%x: tensor<4x6x32xf32>) -> {out} {{\n{filled(out, '1.0')}"
        f"%r = {total}\nreturn %r : {out}\n}}\n"
    )
    check(text, whole(4, 6, 32))


@pytest.mark.parametrize("block", [4, 8, 16])
def test_an_unknown_number_of_blocks(block):
    columns, out = f"tensor<?x5x{block}xf32>", f"tensor<?x6x{block}xf32>"
    total = generic(
        "bmn/k", "m, k; b, k, n; b, m, n", f"%x, %y : tensor<6x5xf32>, {columns}", out, "%z", SUM
    )
    text = (
        f"func.func @main(%x: tensor<6x5xf32>, %y: {columns}, %z: {out}) -> {out} {{\n"
        f"%r = {total}\nreturn %r : {out}\n}}\n"
    )
    for count in (0, 1, 2, 3, 5):
        check(text, whole(6, 5), whole(count, 5, block), whole(count, 6, block))


@pytest.mark.parametrize("lhs", ["m, k, l", "m, l, k"])
@pytest.mark.parametrize("rhs", ["k, l, n", "l, n, k"])
def test_strict_sums_run_as_their_loops_do(lhs, rhs):
    sizes = {"m": 9, "n": 32, "k": 5, "l": 7}
    shapes = [[sizes[d] for d in read.split(", ")] for read in (lhs, rhs)]
    kinds = [f"tensor<{'x'.join(map(str, s))}xf32>" for s in shapes]
    out = "tensor<9x32xf32>"
    total = generic("mn/kl", f"{lhs}; {rhs}; m, n", f"%x, %y : {', '.join(kinds)}", out, "%z", SUM)
    text = (
        f"func.func @main(%x: {kinds[0]}, %y: {kinds[1]}, %z: {out}) -> {out} {{\n"
        f"%r = {total}\nreturn %r : {out}\n}}\n"
    )
    random = np.random.default_rng(3)
    inputs = [random.standard_normal(s).astype(np.float32) for s in [*shapes, [9, 32]]]
    check(text, *inputs, fp="strict")


@pytest.mark.parametrize(
    ("loops", "reads", "shapes", "body"),
    [
        ("mn/k", "m, k; k, n; m, n", [(9, 7), (7, 32)], SUM),
        ("mn/k", "m, k, n; m, n", [(9, 5, 32)], ADD),
    ],
)
def test_what_two_read_is_stored(loops, reads, shapes, body):
    """The first reader takes the sum from registers, the second from memory that no one returns."""
    out, names = "tensor<9x32xf32>", ["%x", "%y"][: len(shapes)]
    kinds = [f"tensor<{'x'.join(map(str, s))}xf32>" for s in shapes]
    total = generic(loops, reads, f"{', '.join(names)} : {', '.join(kinds)}", out, "%f", body)
    first = generic(
        "mn/", "m, n; m, n", f"%r : {out}", out, "%e",
        "%s = arith.negf %a : f32\nlinalg.yield %s : f32",
    )  # fmt: skip
    second = generic(
        "mn/", "m, n; m, n; m, n", f"%q, %r : {out}, {out}", out, "%e",
        "%t = arith.maximumf %a, %b : f32\n%s = arith.addf %t, %b : f32\nlinalg.yield %s : f32",
    )  # fmt: skip
    arguments = ", ".join(f"{n}: {k}" for n, k in zip(names, kinds, strict=True))
    text = (
        f"func.func @main({arguments}) -> ({out}, {out}) {{\n{filled(out, '1.0')}%r = {total}\n"
        f"%q = {first}\n%p = {second}\nreturn %q, %p : {out}, {out}\n}}\n"
    )
    check(text, *[whole(*s) for s in shapes])
    check(text, *[whole(*s) for s in shapes], disable_pass=("irees-fuse-elementwise-ops",))


@pytest.mark.parametrize("kept", [True, False])
def test_what_a_sum_reads_is_made_beside_it(kept):
    """As the powers of a softmax: what the last op reads, and maybe the caller, is stored too."""
    whole_kind, out = "tensor<64x40xf32>", "tensor<64xf32>"
    largest = "%s = arith.maximumf %acc, %a : f32\nlinalg.yield %s : f32"
    less = "%s = arith.subf %a, %b : f32\nlinalg.yield %s : f32"
    times = "%s = arith.mulf %a, %b : f32\nlinalg.yield %s : f32"
    steps = {
        "%most": generic("m/k", "m, k; m", f"%x : {whole_kind}", out, "%low", largest),
        "%less": generic(
            "mk/", "m, k; m; m, k", f"%x, %most : {whole_kind}, {out}", whole_kind, "%into", less
        ),
        "%r": generic("m/k", "m, k; m", f"%less : {whole_kind}", out, "%f", ADD),
        "%q": generic(
            "mk/", "m, k; m; m, k", f"%less, %r : {whole_kind}, {out}", whole_kind, "%into", times
        ),
    }
    lines = "\n".join(f"{name} = {text}" for name, text in steps.items())
    kinds, results = ([whole_kind] * 2, "%q, %less") if kept else ([whole_kind], "%q")
    text = (
        f"func.func @main(%x: {whole_kind}) -> ({', '.join(kinds)}) {{\n{filled(out, '0.0')}"
        "%bottom = arith.constant 0xFF800000 : f32\n"
        f"%low = linalg.fill ins(%bottom : f32) outs(%e : {out}) -> {out}\n"
        f"%into = tensor.empty() : {whole_kind}\n{lines}\n"
        f"return {results} : {', '.join(kinds)}\n}}\n"
    )
    check(text, whole(64, 40))


def test_what_is_computed_in_a_frame_is_done_in_registers():
    """The frame is filled after it, so that the sum and what reads it stay side by side."""
    out, around = "tensor<4x7x32xf32>", "tensor<4x9x32xf32>"
    product = generic(
        "bmn/k", "b, m, k; k, n; b, m, n", "%x, %y : tensor<4x7x24xf32>, tensor<24x32xf32>", out,
        "%f", SUM,
    )  # fmt: skip
    relu = "%s = arith.maximumf %a, %z : f32\nlinalg.yield %s : f32"
    after = generic("bmn/", "b, m, n; b, m, n", f"%r : {out}", out, "%e", relu)
    text = (
        f"func.func @main(%x: tensor<4x7x24xf32>, %y: tensor<24x32xf32>) -> {around} {{\n"
        f"{filled(out, '0.0')}%r = {product}\n%q = {after}\n%g = tensor.empty() : {around}\n"
        f"%h = linalg.fill ins(%z : f32) outs(%g : {around}) -> {around}\n"
        f"%i = tensor.insert_slice %q into %h[0, 1, 0] [4, 7, 32] [1, 1, 1] : {out} into {around}\n"
        f"return %i : {around}\n}}\n"
    )
    check(text, whole(4, 7, 24), whole(24, 32))
    kernels = irees.compile(text).sources
    assert not any("rt->alloc(" in t for name, t in kernels.items() if name.startswith("irees_k"))
