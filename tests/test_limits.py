"""The limits of a compilation: hostile text is refused in time, with the construct and its place."""

from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
import pytest
from clock import at_most
from xdsl.dialects import test
from xdsl.dialects.builtin import AffineMapAttr, IntegerType, ModuleOp
from xdsl.ir.affine import AffineExpr, AffineMap

import irees
from irees import limits
from irees.dialects import get_context
from irees.errors import ArgumentError, IreesError, LimitExceededError, ParseError, VerifyError
from irees.frontends.mlir import import_mlir, print_module
from irees.limits import COSTS, LIMITS, TABLE, budgeted, canonical_limits, spend
from irees.options import Options

SECONDS = 5.0
"""No text may take longer to be refused, on a slow machine with other work."""

LETTERS = "a" * 5000
COMMENTS = "//" + " " * 50 + "\n"

MALFORMED = {
    "unclosed string": f'module attributes {{a = "{LETTERS}',
    "unclosed first token": f'"{LETTERS}',
    "unclosed symbol": f'\nfunc.func @"{LETTERS}',
    "unclosed at the end of a line": f'module attributes {{a = "{LETTERS}\n}} {{}}',
    "unknown escape": f'module attributes {{a = "{LETTERS}\\q"}} {{}}',
    "cut escape": f'module attributes {{a = "{LETTERS}\\4',
    "vertical tab": f'module attributes {{a = "{LETTERS}\v"}} {{}}',
    "unclosed after a closed one": f'module attributes {{a = "b", c = "{LETTERS}',
    "comments in a section": "module {\n}\n{-#\n" + COMMENTS * 40 + "\x01",
    "unclosed in a type": f'func.func @f(!nowhere.type<"{LETTERS}',
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_strings_and_comments_take_linear_time(text):
    with at_most(SECONDS), pytest.raises(ParseError) as info:
        irees.compile(text)
    assert info.value.location is not None


def test_a_string_that_does_not_end_is_named_at_its_quote():
    with pytest.raises(ParseError, match=r"<text>:2:5: error: the string does not end"):
        import_mlir('module {\n  a "bcd\n}')


@pytest.mark.parametrize("text", [r'"a\22b"', '"a\t "', '""', r'"\\"', '"// no comment"', '"("'])
def test_strings_that_mlir_reads_are_read(text):
    assert import_mlir(f"module attributes {{a = {text}}} {{\n}}").attributes["a"] is not None


def doubling(count: int, first: str, pattern: str) -> str:
    lines = [f"{pattern[0]}a0 = {first}"]
    lines += [
        f"{pattern[0]}a{i} = " + pattern[1:].replace("X", f"{pattern[0]}a{i - 1}")
        for i in range(1, count)
    ]
    return "\n".join(lines)


FUNCTION = "func.func private @f({})\n"
SUM = " + ".join(f"d{i}" for i in range(3000))
DIMS = ", ".join(f"d{i}" for i in range(3000))
LARGE = {
    "types": (doubling(60, "tuple<i32, i32>", "!tuple<X, X>"), "alias_tokens"),
    "types without spaces": (doubling(60, "tuple<i32>", "!tuple<X,X,X>"), "alias_tokens"),
    "function types": (doubling(60, "() -> ()", "!(X) -> X"), "alias_tokens"),
    "attributes": (doubling(60, "[1]", "#[X, X]"), "alias_tokens"),
    "dictionaries": (doubling(60, "{a}", "#{b = X, c = X}"), "alias_tokens"),
    "locations": (
        doubling(60, 'loc("a")', "#loc(fused[X, X])").replace("#a", "#loc"),
        "alias_tokens",
    ),
    "many uses": (
        doubling(13, "tuple<i32, i32>", "!tuple<X, X>")
        + "\n"
        + "".join(f"func.func private @f{i}(!a12)\n" for i in range(3000)),
        "work",
    ),
    "integer": (FUNCTION.format("i16777215"), "integer_bits"),
    "signed integer": (FUNCTION.format("si129"), "integer_bits"),
    "integer of a tensor": (FUNCTION.format("tensor<4xi129>"), "integer_bits"),
    "integer of a vector": (FUNCTION.format("vector<4x4xi99999999999>"), "integer_bits"),
    "integer of a complex": (FUNCTION.format("complex<i4096>"), "integer_bits"),
    "integer of a memref": (FUNCTION.format("memref<?xui200>"), "integer_bits"),
    "constant": ("%0 = arith.constant 1 : i16777215", "integer_bits"),
    "sum in a map": (f"#m = affine_map<({DIMS}) -> ({SUM})>\nmodule {{\n}}", "map_terms"),
    "sum in a set": (f"#m = affine_set<({DIMS}) : ({SUM} == 0)>\nmodule {{\n}}", "map_terms"),
    "digits": ("%0 = arith.constant " + "9" * 5000 + " : i64", "digits"),
    "hexadecimal digits": ("%0 = arith.constant 0x" + "f" * 5000 + " : i64", "digits"),
    "brackets": ("module attributes {a = " + "[" * 5000, "nesting"),
}


@pytest.mark.parametrize(("text", "name"), LARGE.values(), ids=LARGE)
def test_text_above_a_limit_is_refused_by_its_name(text, name):
    with at_most(SECONDS), pytest.raises(LimitExceededError, match=f"limit '{name}': ") as info:
        irees.compile(text)
    assert info.value.location is not None or info.value.op is not None
    assert "limits={" in str(info.value)


@pytest.mark.parametrize(
    "expr", ["d0 floordiv 0", "d0 mod 0", "d0 ceildiv 0", "d0 mod -2", "(d0 + 1) floordiv (1 - 1)"]
)
def test_a_map_does_not_divide_by_zero(expr):
    with pytest.raises((VerifyError, ParseError), match=r"<text>:1:\d+: error: .*divi"):
        import_mlir(f"#m = affine_map<(d0) -> ({expr})>\nmodule {{\n}}")


def test_limits_of_texts_are_those_of_modules():
    """A module that Python built has had no scan."""
    wide = ModuleOp([test.TestOp(result_types=[IntegerType(129)])])
    with pytest.raises(LimitExceededError, match="'integer_bits'"):
        irees.compile(wide)
    total = AffineExpr.constant(0)
    for i in range(limits.limit("map_terms") + 2):
        total = AffineExpr.dimension(i) + total
    large = test.TestOp(attributes={"map": AffineMapAttr(AffineMap(9999, 0, (total,)))})
    with pytest.raises(LimitExceededError, match="'map_terms'"):
        irees.compile(ModuleOp([large]))
    divided = AffineMap(1, 0, (AffineExpr.dimension(0) // 0,))
    with pytest.raises(VerifyError, match="floordiv 0"):
        irees.compile(ModuleOp([test.TestOp(attributes={"map": AffineMapAttr(divided)})]))


TEN = (
    "func.func @f() {\n"
    + "".join(f"  %{i} = arith.constant {i} : i32\n" for i in range(10))
    + "  return\n}"
)


@pytest.mark.parametrize("source", [TEN, import_mlir(TEN)], ids=["text", "module"])
def test_limits_are_options(source):
    with pytest.raises(LimitExceededError, match=r"too many ops \(limit 'ops': 9 ops\)"):
        irees.compile(source, limits={"ops": 9})
    assert irees.compile(source, limits={"ops": 99}).functions


@pytest.mark.parametrize(
    "wrong",
    [
        {"oops": 1},
        {"ops": 0},
        {"ops": -1},
        {"ops": True},
        {"ops": "9"},
        {"ops": 1 << 63},
        [1],
        5,
        "[",
        '["a"]',
        "[" * 9999,
    ],
)
def test_wrong_limits(wrong):
    with pytest.raises(ArgumentError, match="limit"):
        Options.make(limits=wrong)


def test_limits_are_kept_as_sorted_json():
    assert Options.make(limits={}).limits is None
    assert Options.make(limits={"work": 5, "ops": 7}).limits == '{"ops": 7, "work": 5}'
    assert canonical_limits('{"ops": 7}') == '{"ops": 7}'
    assert Options.make(limits={"ops": 7}).limit_overrides() == {"ops": 7}


def test_all_constructs_draw_on_one_budget():
    with budgeted({"work": COSTS["inlining"].steps + 1}):
        spend("inlining", 1)
        with budgeted():  # a compilation inside of another
            spend("folding", 1)
        with pytest.raises(
            LimitExceededError, match=r"printing takes too much work .*limit 'work'"
        ):
            spend("printing", 1)
    spend("inlining", 1 << 60)  # nobody compiles


def test_the_table_is_complete():
    assert len(LIMITS) == len(TABLE)
    assert all(each.default > 0 and each.unit and each.bounds for each in TABLE)
    assert all(cost.steps > 0 and cost.per for cost in COSTS.values())


def test_no_type_of_a_program_is_beyond_the_widest_integer():
    assert import_mlir(FUNCTION.format("i128, si128, tensor<4xi128>")) is not None


def test_errors_of_limits_are_irees_errors():
    assert issubclass(LimitExceededError, IreesError)


KIND = "tensor<4xf32>"
CALL = f"func.call @{{}}(%{{}}) : ({KIND}) -> {KIND}"


def calls(depth: int, twice: bool) -> str:
    """`depth` functions, each of which calls the next once or twice."""
    lines = []
    for i in range(depth):
        second = f"%b = {CALL.format(f'f{i + 1}', 'a')}" if twice else ""
        lines += [
            f"func.func private @f{i}(%x: {KIND}) -> {KIND} {{",
            f"  %a = {CALL.format(f'f{i + 1}', 'x')}\n  {second}",
            f"  return %{'b' if twice else 'a'} : {KIND}\n}}",
        ]
    return "\n".join(
        [
            *lines,
            f"func.func private @f{depth}(%x: {KIND}) -> {KIND} {{",
            f"  %a = arith.addf %x, %x : {KIND}\n  return %a : {KIND}\n}}",
            f"func.func @main(%x: {KIND}) -> {KIND} {{",
            f"  %a = {CALL.format('f0', 'x')}\n  return %a : {KIND}\n}}",
        ]
    )


@pytest.mark.parametrize("depth", [14, 20, 60])
def test_calls_that_double_are_refused(depth):
    with (
        at_most(SECONDS),
        pytest.raises(LimitExceededError, match="call: inlining takes too much work") as info,
    ):
        irees.compile(calls(depth, twice=True))
    assert info.value.location is not None


def test_calls_that_do_not_multiply_cost_nothing():
    """A chain of calls is no growth, and needs no stack."""
    program = irees.compile(calls(1100, twice=False), limits={"work": 1})
    assert program(np.ones(4, np.float32)).tolist() == [2.0] * 4


def test_a_few_calls_are_inlined():
    program = irees.compile(calls(3, twice=True))
    assert program(np.ones(4, np.float32)).tolist() == [256.0] * 4


INITIALIZER = """
util.global private @g : i32
util.initializer {{
  %n = arith.constant {} : index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %c = arith.constant 1 : i32
  %true = arith.constant true
  {}
}}
func.func @main() -> i32 {{
  %g = util.global.load @g : i32
  return %g : i32
}}
"""
STORE = "util.global.store %r, @g : i32\n  util.return"
FOR = """%r = scf.for %i = %zero to %n step %one iter_args(%a = %c) -> (i32) {
    %b = arith.addi %a, %c : i32
    scf.yield %b : i32
  }
  """
LOOPS = {
    "branch": "cf.br ^a\n^a:\n  cf.br ^a",
    "branches": "cf.br ^a\n^a:\n  cf.br ^b\n^b:\n  cf.cond_br %true, ^a, ^b",
    "for": FOR + STORE,
    "while": "%r = scf.while (%a = %c) : (i32) -> i32 { scf.condition(%true) %a : i32 } do {\n"
    "  ^bb0(%a: i32):\n    scf.yield %a : i32\n  }\n  " + STORE,
    "nested": """%r = scf.for %i = %zero to %n step %one iter_args(%a = %c) -> (i32) {
    %b = scf.for %j = %zero to %n step %one iter_args(%d = %a) -> (i32) {
      scf.yield %d : i32
    }
    scf.yield %b : i32
  }
  """
    + STORE,
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_initializers_end(loop):
    with (
        at_most(SECONDS),
        pytest.raises(LimitExceededError, match="initializers takes too much work") as info,
    ):
        irees.compile(INITIALIZER.format(10**9, loop), limits={"work": 10**6})
    assert info.value.location is not None


def test_an_initializer_may_loop():
    assert irees.compile(INITIALIZER.format(1000, FOR + STORE))() == 1001


def test_a_tensor_of_an_initializer_has_a_limit():
    body = (
        "%e = tensor.empty() : tensor<100000000000xi32>\n"
        "  %f = linalg.fill ins(%c : i32) outs(%e : tensor<100000000000xi32>)"
        " -> tensor<100000000000xi32>\n"
        "  %r = tensor.extract %f[%one] : tensor<100000000000xi32>\n  " + STORE
    )
    with pytest.raises(LimitExceededError, match="limit 'constant_bytes'"):
        irees.compile(INITIALIZER.format(1, body))


SUMS = """
func.func @main() -> tensor<4xf32> {{
  %c = arith.constant dense<1.0> : tensor<{0}xf32>
  %k = arith.constant dense<2.0> : tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {{
    indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  }} ins(%k, %c : tensor<4xf32>, tensor<{0}xf32>) outs(%e : tensor<4xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }} -> tensor<4xf32>
  return %r : tensor<4xf32>
}}
"""


@pytest.mark.parametrize(("size", "folded"), [(16, True), (1 << 33, False)])
def test_what_takes_long_is_not_folded(size, folded):
    """It runs when the program does; a fold is no reason to refuse a program."""
    with at_most(SECONDS):
        module = irees.compile(import_mlir(SUMS.format(size)), to="global-opt")
    assert folded != any(op.name == "linalg.generic" for op in module.walk())


IOTA = """
func.func @main(%k: index) -> (i64, tensor<3xi64>) {
  %e = tensor.empty() : tensor<268435456xi64>
  %t = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%e : tensor<268435456xi64>) {
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %c = arith.index_cast %i : index to i64
    linalg.yield %c : i64
  } -> tensor<268435456xi64>
  %x = tensor.extract %t[%k] : tensor<268435456xi64>
  %s = tensor.extract_slice %t[7] [3] [100000000] : tensor<268435456xi64> to tensor<3xi64>
  return %x, %s : i64, tensor<3xi64>
}
"""


def test_a_large_iota_stays_a_formula():
    program = irees.compile(IOTA)
    assert program.memory_analysis()["arena_bytes"]["main"] < 1 << 20
    for index, want in ((5, 5), (-3, 0), (1 << 40, (1 << 28) - 1)):
        x, s = program(index)
        assert (x, s.tolist()) == (want, [7, 100000007, 200000007])


def test_printing_takes_work():
    module = import_mlir(TEN)
    with budgeted({"work": 5}), pytest.raises(LimitExceededError, match="printing"):
        print_module(module)
    assert print_module(module)


SPLATS = {
    "filter": """
func.func @main(%x: tensor<1x4x6x6xf32>) -> tensor<1x100000000x4x4xf32> {
  %w = arith.constant dense<0.5> : tensor<100000000x4x3x3xf32>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x100000000x4x4xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<1x100000000x4x4xf32>) -> tensor<1x100000000x4x4xf32>
  %r = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x4x6x6xf32>, tensor<100000000x4x3x3xf32>)
       outs(%f : tensor<1x100000000x4x4xf32>) -> tensor<1x100000000x4x4xf32>
  return %r : tensor<1x100000000x4x4xf32>
}""",
    "weight": """
func.func @main(%x: tensor<4x100000xf32>) -> tensor<4x100000xf32> {
  %w = arith.constant dense<0.5> : tensor<100000x100000xf32>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x100000xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x100000xf32>) -> tensor<4x100000xf32>
  %r = linalg.matmul ins(%x, %w : tensor<4x100000xf32>, tensor<100000x100000xf32>)
       outs(%f : tensor<4x100000xf32>) -> tensor<4x100000xf32>
  %s = arith.constant dense<2.0> : tensor<4x100000xf32>
  %t = arith.mulf %r, %s : tensor<4x100000xf32>
  return %t : tensor<4x100000xf32>
}""",
    "summand": """
func.func @main(%x: tensor<10000000000xf32>) -> tensor<10000000000xf32> {
  %a = arith.constant dense<0.5> : tensor<10000000000xf32>
  %b = arith.constant dense<0.25> : tensor<10000000000xf32>
  %c = arith.addf %a, %b : tensor<10000000000xf32>
  %d = arith.mulf %x, %c : tensor<10000000000xf32>
  return %d : tensor<10000000000xf32>
}""",
}


@pytest.mark.parametrize("text", SPLATS.values(), ids=SPLATS)
def test_a_large_splat_is_never_made(text):
    """A pass that makes 40 GB of equal numbers fails here, and on most machines."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = 4096 * int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (used + (3 << 30), hard))
    try:
        with at_most(6 * SECONDS):
            assert irees.compile(text).functions
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_a_file_is_measured_before_it_is_read(tmp_path):
    (tmp_path / "x.mlir").write_text(TEN + "//" + " " * 1000)
    with pytest.raises(LimitExceededError, match="limit 'text_bytes': 999 bytes"):
        irees.compile(tmp_path / "x.mlir", limits={"text_bytes": 999})
    # Weights are no text.
    section = '\n{-# dialect_resources: { builtin: { w: "0x04000000' + "00" * 4000 + '" } } #-}\n'
    assert irees.compile(TEN + section, limits={"text_bytes": 999}).functions


def test_a_pass_alone_has_a_budget(monkeypatch):
    from irees.universe import UNIVERSE

    monkeypatch.setitem(limits._DEFAULTS.limits, "work", 1000)
    monkeypatch.setattr(
        limits,
        "TABLE",
        tuple(
            limits.Limit(x.name, 1000, x.unit, x.bounds) if x.name == "work" else x for x in TABLE
        ),
    )
    module = import_mlir(INITIALIZER.format(10**9, LOOPS["branch"]))
    for name in ("irees-evaluate-initializers", "irees-pipeline"):
        with pytest.raises(LimitExceededError, match="initializers takes too much work"):
            UNIVERSE.all_passes[name]()().apply(get_context(), module.clone())
