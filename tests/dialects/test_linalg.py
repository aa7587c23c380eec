"""The named linalg ops against MLIR's own definitions of them, and what they compute."""

from __future__ import annotations

import pytest
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation

from irees.dialects import get_context
from irees.frontends.mlir import import_mlir, print_module


def linalg_ops():
    ctx = get_context()
    ctx.load_registered_dialect("linalg")
    return {op.name: op for op in ctx.loaded_ops if op.name.startswith("linalg.")}


def test_every_named_op_of_mlir_is_known():
    gen = pytest.importorskip("torch_mlir.dialects._linalg_ops_gen")
    names = {
        value.OPERATION_NAME for value in vars(gen).values() if hasattr(value, "OPERATION_NAME")
    }
    missing = sorted(names - set(linalg_ops()))
    assert missing == []


def structured_configs():
    """(name, maps, iterators) of MLIR's op definitions, with strides 2 and dilations 3."""
    ir = pytest.importorskip("torch_mlir.ir")
    core = pytest.importorskip("torch_mlir.dialects.linalg.opdsl.ops.core_named_ops")
    config = pytest.importorskip("torch_mlir.dialects.linalg.opdsl.lang.config")
    with ir.Context() as context:
        for name, value in vars(core).items():
            if type(value).__name__ != "DefinedOpCallable":
                continue
            for each in config.LinalgOpConfig.from_linalg_op_def(value.op_def, context=context):
                op = each.structured_op
                yield name, [str(m) for m in op.indexing_maps], [str(t) for t in op.iterator_types]


def test_maps_and_iterators_are_those_of_mlir():
    """
    Our table, evaluated on symbols, is MLIR's: the strides come before the dilations, pair by
    pair.
    """
    from irees.dialects.upstream.linalg.structured import (
        TableOperation,
        indexing_maps,
        iterator_types,
    )

    ops = linalg_ops()
    checked = 0
    for name, maps, iterators in structured_configs():
        cls = ops.get(f"linalg.{name}")
        if (
            cls is None
            or not issubclass(cls, TableOperation)
            or not cls.SPEC.maps
            or name == "fill_rng_2d"
        ):
            continue
        spec = cls.SPEC
        assert [it.data.value for it in iterator_types(spec.loops, spec.maps[-1])] == iterators, (
            name
        )
        count = spec.num_windows
        strides, dilations = tuple(range(101, 101 + count)), tuple(range(201, 201 + count))
        ours = [
            str(m.data).split("-> ")[1]
            for m in indexing_maps(spec.loops, spec.maps, strides, dilations)
        ]
        if not spec.strided:
            ours = [
                str(m.data).split("-> ")[1]
                for m in indexing_maps(spec.loops, spec.maps, (1,) * 3, (1,) * 3)
            ]
        theirs = [
            _substitute(m.split("-> ")[1].removesuffix(">"), strides, dilations) for m in maps
        ]
        assert [_normal(text) for text in ours] == [_normal(text) for text in theirs], name
        checked += 1
    assert checked > 40


def _substitute(text: str, strides, dilations) -> str:
    import re

    symbols = sorted({int(s) for s in re.findall(r"s(\d+)", text)})
    numbers = [number for pair in zip(strides, dilations) for number in pair]
    for symbol, number in reversed(list(zip(symbols, numbers))):
        text = re.sub(rf"\bs{symbol}\b", str(number), text)
    return text


def _normal(text: str) -> str:
    return text.replace("(", "").replace(")", "").replace(" ", "")


@pytest.mark.parametrize("name", sorted(linalg_ops()))
def test_named_ops_are_structured_ops(name):
    others = {"yield", "index", "softmax", "pack", "unpack", "winograd_filter_transform",
              "winograd_input_transform", "winograd_output_transform"}  # fmt: skip
    if name.removeprefix("linalg.") not in others:
        assert issubclass(linalg_ops()[name], LinalgStructuredOperation)
    assert (
        linalg_ops()[name].__doc__
        or name in ("linalg.generic", "linalg.yield", "linalg.index")
        or "xdsl" in linalg_ops()[name].__module__
    )


MULF = ["arith.mulf", "arith.addf", "linalg.yield"]
MULI = ["arith.muli", "arith.addi", "linalg.yield"]
MATMUL = "ins(%a, %b : {0}, {1}) outs(%c : {2}) -> {2}"


def body_of(text: str) -> list[str]:
    module = import_mlir(text)
    op = next(op for op in module.walk() if isinstance(op, LinalgStructuredOperation))
    return [inner.name for inner in op.body.block.ops]


@pytest.mark.parametrize(
    ("types", "attributes", "body"),
    [
        (("f32", "f32", "f32"), "", ["arith.mulf", "arith.addf", "linalg.yield"]),
        (("f16", "f16", "f32"), "", ["arith.extf"] * 2 + MULF),
        (("i8", "i8", "i32"), "", ["arith.extsi"] * 2 + MULI),
        (("i8", "i8", "i32"), "{cast = #linalg.type_fn<cast_unsigned>}",
         ["arith.extui", "arith.extui", "arith.muli", "arith.addi", "linalg.yield"]),
        (("i8", "i8", "f32"), "", ["arith.sitofp"] * 2 + MULF),
        (("i1", "i1", "i1"), "", ["arith.andi", "arith.ori", "linalg.yield"]),
    ],
)  # fmt: skip
def test_bodies_cast_as_mlir_does(types, attributes, body):
    a, b, c = types
    args = [f"tensor<2x3x4x{a}>", f"tensor<2x4x5x{b}>", f"tensor<2x3x5x{c}>"]
    text = f"""func.func @f(%a: {args[0]}, %b: {args[1]}, %c: {args[2]}) -> {args[2]} {{
      %0 = linalg.batch_matmul {attributes} {MATMUL.format(*args)}
      return %0 : {args[2]}
    }}"""
    assert body_of(text) == body


def test_short_forms_of_reduce_and_map():
    whole, row = "tensor<4x8xf32>", "tensor<4xf32>"
    text = f"""func.func @f(%a: {whole}, %r: {row}) -> ({row}, {whole}) {{
      %0 = linalg.reduce {{ arith.subf }} ins(%a : {whole}) outs(%r : {row}) dimensions = [1]
      %1 = linalg.map {{ arith.subf }} ins(%a, %a : {whole}, {whole}) outs(%a : {whole})
      return %0, %1 : {row}, {whole}
    }}"""
    module = import_mlir(text)
    reduce, map_ = (
        next(op for op in module.walk() if op.name == name)
        for name in ("linalg.reduce", "linalg.map")
    )
    element, accumulator = reduce.body.block.args
    assert list(reduce.body.block.first_op.operands) == [accumulator, element]
    assert list(map_.body.block.first_op.operands) == list(map_.body.block.args[:2])
    assert print_module(import_mlir(print_module(module))) == print_module(module)


def test_cast_of_matmul_is_honoured():
    a, c = "tensor<4x4xi8>", "tensor<4x4xi32>"
    text = f"""func.func @f(%a: {a}, %b: {a}, %c: {c}) -> {c} {{
      %0 = linalg.matmul {{cast = #linalg.type_fn<cast_unsigned>}} {MATMUL.format(a, a, c)}
      return %0 : {c}
    }}"""
    assert body_of(text)[0] == "arith.extui"


def test_equal_ops_on_tensors_are_merged_and_dead_ones_dropped():
    from xdsl.transforms.canonicalize import CanonicalizePass
    from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

    t = "tensor<4x4xf32>"
    text = f"""func.func @f(%a: {t}, %b: {t}, %c: {t}) -> ({t}, {t}) {{
      %0 = linalg.matmul {MATMUL.format(t, t, t)}
      %1 = linalg.matmul {MATMUL.format(t, t, t)}
      %2 = linalg.exp ins(%a : {t}) outs(%a : {t}) -> {t}
      return %0, %1 : {t}, {t}
    }}"""
    module = import_mlir(text)
    for each in (CommonSubexpressionElimination(), CanonicalizePass()):
        each.apply(get_context(), module)
    assert [
        op.name
        for op in module.walk()
        if op.name.startswith("linalg.") and op.name != "linalg.yield"
    ] == ["linalg.matmul"]
