"""The importer: weights, locations, and text that is hostile."""

from __future__ import annotations

import struct
import sys

import numpy as np
import pytest
from clock import at_most
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FileLineColLoc, TensorType, i1
from xdsl.parser import Parser

import irees
from irees.blobs import Blob
from irees.dialects import get_context
from irees.dialects.resources import blob_of, constant_array, resource_attr
from irees.errors import IreesError, LimitExceededError, ParseError, VerifyError
from irees.frontends.mlir import import_mlir, print_module


def text_with_resource(values: list[float], key: str = "w") -> str:
    data = struct.pack("<I", 64) + np.array(values, np.float32).tobytes()
    return f"""
func.func @f() -> tensor<{len(values)}xf32> {{
  %0 = arith.constant dense_resource<{key}> : tensor<{len(values)}xf32>
  return %0 : tensor<{len(values)}xf32>
}}
{{-#
  dialect_resources: {{
    builtin: {{
      {key}: "0x{data.hex().upper()}"
    }}
  }}
#-}}
"""


def constants(module):
    return [op.value for op in module.walk() if op.name == "arith.constant"]


def test_two_modules_with_equal_keys_keep_their_own_bytes():
    a, b = (import_mlir(text_with_resource(values)) for values in ([1.0, 2.0], [3.0, 4.0]))
    assert constant_array(constants(a)[0]).tolist() == [1.0, 2.0]
    assert constant_array(constants(b)[0]).tolist() == [3.0, 4.0]
    assert constants(a)[0].resource_handle.data == "w"
    assert constants(a)[0] != constants(b)[0]
    assert constants(a)[0] == constants(import_mlir(text_with_resource([1.0, 2.0])))[0]


def test_resources_survive_printing():
    module = import_mlir(text_with_resource([1.0, -2.5]))
    text = print_module(module, elide_resources=False)
    again = import_mlir(text)
    assert constant_array(constants(again)[0]).tolist() == [1.0, -2.5]
    assert print_module(again, elide_resources=False) == text
    assert "{-#" not in print_module(module)


def test_equal_keys_with_other_bytes_are_renamed_when_printed_together():
    a, b = (import_mlir(text_with_resource(values)) for values in ([1.0], [2.0]))
    other = next(iter(b.body.block.ops))
    other.detach()
    other.properties["sym_name"] = type(other.properties["sym_name"])("g")
    a.body.block.add_op(other)
    again = import_mlir(print_module(a, elide_resources=False))
    assert [constant_array(c).tolist() for c in constants(again)] == [[1.0], [2.0]]


def test_resources_in_a_file_are_read_lazily(tmp_path):
    path = tmp_path / "m.mlir"
    path.write_text(text_with_resource([5.0]))
    module = import_mlir(path)
    attr = constants(module)[0]
    blob = blob_of(attr)
    assert blob._data is None
    assert constant_array(attr).tolist() == [5.0]
    assert blob.alignment == 64
    assert not constant_array(attr).flags.writeable


def test_resources_that_stock_xdsl_parsed_resolve():
    module = Parser(get_context(), text_with_resource([7.0], "stock_key")).parse_module()
    assert constant_array(constants(module)[0]).tolist() == [7.0]


def test_blob_that_is_too_short_is_an_error():
    text = text_with_resource([1.0]).replace("tensor<1xf32>", "tensor<3xf32>")
    attr = constants(import_mlir(text))[0]
    with pytest.raises(ParseError, match=r"4 byte\(s\), but 3 element\(s\) of f32 take 12"):
        constant_array(attr)


def test_elided_resource_is_an_error_when_used():
    module = import_mlir("%0 = arith.constant dense_resource<__elided__> : tensor<2xf32>")
    with pytest.raises(ParseError, match="has no bytes"):
        constant_array(constants(module)[0])


def test_i1_blobs_are_bits_or_bytes():
    for data in (bytes([0b101]), bytes([1, 0, 1])):
        attr = resource_attr(Blob("k", data=data), TensorType(i1, [3]))
        assert constant_array(attr).tolist() == [True, False, True]


def test_blob_of_an_array_is_a_view():
    array = np.arange(6, dtype=np.float32)
    attr = resource_attr(
        Blob.from_array("p", array),
        import_mlir("%0 = tensor.empty() : tensor<2x3xf32>").body.block.first_op.results[0].type,
    )
    view = constant_array(attr)
    assert np.shares_memory(view, array)
    assert view.shape == (2, 3)


def test_a_huge_splat_is_one_element():
    with at_most(5):
        module = import_mlir("%0 = arith.constant dense<1> : tensor<1000000000xi32>")
        attr = constants(module)[0]
        assert isinstance(attr, DenseIntOrFPElementsAttr)
        assert len(attr.data.data) == 4
        assert constant_array(attr).shape == (1000000000,)
        assert "dense<1> : tensor<1000000000xi32>" in print_module(module)


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>", [[1, 2], [3, 4]]),
        ("dense<-1> : tensor<3xi64>", [-1, -1, -1]),
        ("dense<[true, false]> : tensor<2xi1>", [True, False]),
        ('dense<"0x05"> : tensor<3xi1>', [True, False, True]),
        ('dense<"0xFF"> : tensor<2xi1>', [True, True]),
        ('dense<"0x01000200"> : tensor<2xi16>', [1, 2]),
        ("dense<> : tensor<0x4xf32>", []),
        ("dense<1.5> : tensor<bf16>", 1.5),
        ("dense<0x7FC00000> : tensor<1xf32>", [np.nan]),
    ],
)
def test_dense_literals(literal, expected):
    value = constant_array(constants(import_mlir(f"%0 = arith.constant {literal}"))[0])
    np.testing.assert_array_equal(
        value.astype(float) if value.dtype.kind == "V" else value,
        np.array(expected).reshape(value.shape),
    )


def test_every_op_knows_its_place():
    module = import_mlir(
        "func.func @f() {\n  %c = arith.constant 1 : i32\n  return\n}\n", name="x.mlir"
    )
    constant = next(op for op in module.walk() if op.name == "arith.constant")
    assert isinstance(constant.location, FileLineColLoc)
    assert (constant.location.line.data, constant.location.column.data) == (2, 3)
    assert "loc(" not in print_module(module)


def test_debug_locations_of_jax_and_torch_mlir():
    text = """
#loc = loc(unknown)
func.func @f(%a: i32 loc("a"(#loc1))) -> i32 {
  %0 = arith.addi %a, %a : i32 loc(#loc3)
  return %0 : i32 loc(fused<"m">[#loc1, #loc2])
} loc(#loc)
#loc1 = loc("t.py":3:2 to :52)
#loc2 = loc("t.py":3:2 to 5:1)
#loc3 = loc("add"(callsite(#loc1 at #loc2)))
"""
    module = import_mlir(text)
    add = next(op for op in module.walk() if op.name == "arith.addi")
    assert '"add"' in str(add.location)
    assert '"t.py":3:2' in str(add.location)


def test_error_of_the_parser_names_the_place():
    with pytest.raises(ParseError) as info:
        import_mlir("func.func @f() {\n  %c = arith.nothing 1 : i32\n}\n", name="x.mlir")
    assert str(info.value).startswith("x.mlir:2:")


@pytest.mark.parametrize(
    ("op", "hint"),
    [
        ("arith.adf", "did you mean arith.addf"),
        ("linalg.matmull", "did you mean linalg.matmul"),
        ("acme.smooth", "no installed package has the dialect 'acme'; a plug-in can add it"),
        ("affine.parallel", 'write it in generic form: "affine.parallel"(...)'),
    ],
)
def test_an_op_that_is_not_known_has_a_way_out(op, hint):
    with pytest.raises(ParseError) as info:
        import_mlir(f"func.func @f(%a: f32) {{\n  {op} %a, %a : f32\n  return\n}}\n")
    assert hint in str(info.value)


def test_a_symbol_in_an_index_has_a_way_out():
    text = "func.func @f(%a: memref<8xf32>, %k: index) {\n %x = affine.load %a[symbol(%k)]"
    with pytest.raises(ParseError, match=r"2:22: .*write %k instead of symbol\(%k\)"):
        import_mlir(text + " : memref<8xf32>\n return }")
    import_mlir(text.replace("symbol(%k)", "%k") + " : memref<8xf32>\n return }")


def test_error_of_a_verifier_names_op_and_place():
    text = (
        "func.func @f(%a: tensor<4xf32>) {\n"
        "  %c = tensor.extract_slice %a[3] [2] [1] : tensor<4xf32> to tensor<2xf32>\n  return\n}"
    )
    with pytest.raises(VerifyError) as info:
        import_mlir(text, name="x.mlir")
    assert str(info.value).startswith("x.mlir:2:3: error: tensor.extract_slice: ")
    assert "out-of-bounds" in str(info.value)


FUNC = (
    "func.func @f(%%a: tensor<1x1x4x4xf32>, %%b: tensor<*xf32>, %%k: tensor<2x2xf32>) {\n"
    "%s  return\n}"
)
SECTION = "module {\n}\n{-#\n dialect_resources: { builtin: { %s } }\n#-}\n"
HOSTILE = {
    "empty": "",
    "blank": "\n \n",
    "garbage": "}{\n",
    "nul": "func.func @f() {\n\0}",
    "bad utf-8": b"func.func @f() {\n\xff\xfe}",
    "truncated": "func.func @f() {\n",
    "deep types": "%0 = tensor.empty() : " + "tensor<" * 100000 + "\n",
    "deep regions": "builtin.module {\n" * 20000,
    "deep arrays": "%0 = arith.constant dense<" + "[" * 5000 + "1" + "]" * 5000 + "> : i32\n",
    "deep attributes": "module attributes {a = " + "[" * 3000 + "]" * 3000 + "} {\n}",
    "deep locations": "module {\n} loc(" + "callsite(" * 3000,
    "deep affine": "#m = affine_map<(d0) -> (" + "(" * 3000 + "d0" + ")" * 3000 + ")>\nmodule {\n}",
    "digits": "%0 = arith.constant " + "9" * 10000 + " : i64\n",
    "hex digits": "%0 = arith.constant 0x" + "F" * 10000 + " : i64\n",
    "wide integer": "%0 = arith.constant 300 : i8\n",
    "iterator": '%0 = linalg.generic {indexing_maps = [], iterator_types = ["up"]} {\n^bb0:\n}',
    "no maps": "linalg.generic {\n}",
    "predicate": "func.func @f(%a: i32) {\n  %0 = arith.cmpi wrong, %a, %a : i32\n  return\n}",
    "use before def": FUNC % "  %1 = arith.addi %0, %0 : i32\n  %0 = arith.constant 1 : i32\n",
    "undefined": "func.func @f() {\n  return %0 : i32\n}",
    "redefinition": "func.func @f() {\n  return\n}\nfunc.func @f() {\n  return\n}",
    "unknown op": "\n  nowhere.op\n",
    "section end": "module {\n}\n{-#\n dialect_resources: {\n",
    "section string": 'module {\n}\n{-#\n dialect_resources: { builtin: { a: "0x',
    "section hex": 'module {\n}\n{-#\n dialect_resources: { builtin: { a: "hello" } }\n#-}\n',
    "section odd": 'module {\n}\n{-#\n dialect_resources: { builtin: { a: "0x123456789" } }\n#-}\n',
    "section twice": SECTION % 'a: "0x04000000", a: "0x04000000"',
    "section deep": "module {\n}\n{-#\n" + "{" * 10000,
    "unranked": FUNC % "  %0 = linalg.exp ins(%b : tensor<*xf32>) outs(%b : tensor<*xf32>)\n",
    "strides": FUNC % (
        "  %0 = linalg.pooling_nchw_sum {strides = dense<0> : tensor<2xi64>}"
        " ins(%a, %k : tensor<1x1x4x4xf32>, tensor<2x2xf32>) outs(%a : tensor<1x1x4x4xf32>)"
        " -> tensor<1x1x4x4xf32>\n"
    ),
    "missing file": "/nowhere/x.mlir",
    "a directory": "/",
}  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_a_typed_error(text):
    limit = sys.getrecursionlimit()
    with at_most(20), pytest.raises(IreesError) as info:
        import_mlir(text)
    assert len(str(info.value)) < 2000
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize("name", ["deep types", "deep regions", "digits", "deep attributes"])
def test_limits_are_named(name):
    with pytest.raises(LimitExceededError):
        import_mlir(HOSTILE[name])


def test_blocks_that_nothing_comes_to_do_not_count():
    """What they use is not asked, and what they go on to is dominated as without them (MLIR)."""
    text = """
func.func @main(%x: i32) -> i32 {
  %c = arith.constant 1 : i32
  cf.br ^a
^nowhere:
  %y = arith.addi %x, %c : i32
  cf.br ^a
^a:
  %z = arith.addi %x, %c : i32
  return %z : i32
}"""
    assert irees.compile(text)(np.int32(1)) == 2


UNDEFINED = {
    "load": "%g = util.global.load @nowhere : i32",
    "store": "util.global.store %x, @nowhere : i32",
    "ml_program load": "%g = ml_program.global_load @nowhere : tensor<4xi32>",
    "buffer": "%g = memref.get_global @nowhere : memref<4xi32>",
    "call": "%g = util.call @nowhere(%x) : (i32) -> i32",
    "in a region": "scf.if %c {\n  %g = util.global.load @nowhere : i32\n}",
}


@pytest.mark.parametrize("line", UNDEFINED.values(), ids=UNDEFINED)
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_a_global_that_is_not_defined(line, target):
    text = f"func.func @f(%x: i32, %c: i1) {{\n{line}\n  return\n}}"
    with pytest.raises(
        VerifyError, match=r"<text>:[23]:\d+: error: .*the (global|function) @nowhere is"
    ):
        irees.compile(text, target=target)
    module = import_mlir(
        f"util.global private @g = 1 : i32\n{text}".replace("@nowhere", "@g"), verify=False
    )
    assert module is not None


@pytest.mark.parametrize(
    ("begin", "words"),
    [(b"PK\x03\x04", "is an archive.*irees.load"), (b"ML\xefR", "is MLIR bytecode.*iree-opt")],
)
def test_a_file_of_another_kind_is_named(tmp_path, begin, words):
    path = tmp_path / "program"
    path.write_bytes(begin + bytes(range(256)))
    with pytest.raises(ParseError, match=words):
        import_mlir(path)
