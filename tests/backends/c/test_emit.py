"""Every value op in C against the interpreter, undefined cases included; and what C never holds."""

from __future__ import annotations

import re
from functools import cache

import ml_dtypes
import numpy as np
import pytest

import irees
from irees.backends.c.backend import emit_program
from irees.backends.common.program_text import host_support
from irees.dialects import get_context
from irees.errors import UnsupportedError
from irees.frontends.mlir import import_mlir
from irees.options import Options
from irees.pipeline import run_phases

DTYPES = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
INTEGERS = ("i8", "i16", "i32", "i64")
FLOATS = ("f16", "bf16", "f32", "f64")

INT_BINARY = [
    f"arith.{name}"
    for name in (
        *("addi subi muli andi ori xori maxsi minsi maxui minui shli shrsi shrui").split(),
        *("divsi divui remsi remui floordivsi ceildivsi ceildivui").split(),
    )
]
BOOL_BINARY = [
    f"arith.{name}" for name in "addi subi muli andi ori xori maxsi minsi maxui minui".split()
]
INT_UNARY = ["math.absi", "math.ctpop", "math.ctlz", "math.cttz"]
CMPI = "eq ne slt sle sgt sge ult ule ugt uge".split()
CMPF = "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split()
FLOAT_BINARY = [
    f"arith.{name}" for name in "addf subf mulf divf remf maximumf minimumf maxnumf minnumf".split()
] + ["math.copysign"]
FLOAT_UNARY = ["arith.negf"] + [
    f"math.{name}" for name in "absf ceil floor round roundeven trunc sqrt".split()
]
CLASSIFY = ["math.isnan", "math.isinf", "math.isfinite"]
LIBM = {
    "exp2": np.exp2, "expm1": np.expm1, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "cbrt": np.cbrt, "exp": np.exp, "log": np.log,
    "tanh": np.tanh, "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip


def function(name: str, inputs: list[str], bodies: list[tuple[str, str]]) -> str:
    """One generic over the inputs with one result per body, `(its text, its type)`; value %r<i>."""
    count = len(inputs) + len(bodies)
    maps = ", ".join(["affine_map<(i) -> (i)>"] * count)
    ins = ", ".join(f"%x{i}" for i in range(len(inputs)))
    tensors = [f"tensor<?x{t}>" for t in (*inputs, *(t for _, t in bodies))]
    outs = [f"%e{i}" for i in range(len(bodies))]
    inside = ", ".join(
        [f"%a{i}: {t}" for i, t in enumerate(inputs)]
        + [f"%o{i}: {t}" for i, (_, t) in enumerate(bodies)]
    )
    results = tensors[len(inputs) :]
    arguments = ", ".join(f"%x{i}: {t}" for i, t in enumerate(tensors[: len(inputs)]))
    empties = "\n".join(f"  %e{i} = tensor.empty(%n) : {t}" for i, t in enumerate(results))
    body = "\n".join(f"    %r{i} = {text}" for i, (text, _) in enumerate(bodies))
    values = ", ".join(f"%r{i}" for i in range(len(bodies)))
    types = ", ".join(t for _, t in bodies)
    names = ", ".join(f"%g#{i}" for i in range(len(bodies))) if len(bodies) > 1 else "%g"
    several = f"%g:{len(bodies)}" if len(bodies) > 1 else "%g"
    return f"""
func.func @{name}({arguments}) -> ({", ".join(results)}) {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x0, %c0 : {tensors[0]}
{empties}
  {several} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
      ins({ins} : {", ".join(tensors[: len(inputs)])})
      outs({", ".join(outs)} : {", ".join(results)}) {{
  ^bb0({inside}):
{body}
    linalg.yield {values} : {types}
  }} -> ({", ".join(results)})
  return {names} : {", ".join(results)}
}}
"""


def scalar_function(name: str, inputs: list[str], bodies: list[tuple[str, str]]) -> str:
    """The same on scalars, computed by the host program."""
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(inputs))
    body = "\n".join(f"  %r{i} = {text}" for i, (text, _) in enumerate(bodies))
    types = ", ".join(t for _, t in bodies)
    values = ", ".join(f"%r{i}" for i in range(len(bodies)))
    return (
        f"func.func @{name}({arguments}) -> ({types}) {{\n{body}\n  return {values} : {types}\n}}\n"
    )


def chunks(bodies: list, size: int = 8) -> list[list]:
    return [bodies[i : i + size] for i in range(0, len(bodies), size)]


def specials(element: str) -> np.ndarray:
    if element == "i1":
        return np.array([False, True])
    if element in INTEGERS:
        low, high = np.iinfo(DTYPES[element]).min, np.iinfo(DTYPES[element]).max
        width = np.iinfo(DTYPES[element]).bits
        return np.array(
            [0, 1, -1, 2, -2, 7, -7, width - 1, width, width + 1, low, low + 1, high, high // 3],
            DTYPES[element],
        )
    finite = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.3, -0.3, 1e-3, 100.0, -129.0, 300.0]
    wide = [] if element == "f16" else [2.2e9, -2.2e9, 1e19, -1e19, 1e30]
    with np.errstate(all="ignore"):
        return np.array([*finite, *wide, np.inf, -np.inf, np.nan], np.float64).astype(
            DTYPES[element]
        )


def pairs(element: str) -> list[np.ndarray]:
    """Every special value with every other; an odd number of them."""
    values = specials(element)
    left, right = np.repeat(values, len(values)), np.tile(values, len(values))
    if len(left) % 2 == 0:
        left, right = np.append(left, left[:1]), np.append(right, right[:1])
    return [left, right]


def same(got: np.ndarray, want: np.ndarray) -> bool:
    """Equal bits, but any NaN for a NaN."""
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return False
    if got.dtype.kind not in "fV":
        return np.array_equal(got, want)
    wide, other = got.astype(np.float64), want.astype(np.float64)
    equal = (wide == other) & (np.signbit(wide) == np.signbit(other))
    return bool(np.all(equal | (np.isnan(wide) & np.isnan(other))))


def cases(element: str) -> list[tuple[str, str]]:
    """(op text on %a0 and %a1, result type) for every op on an element type."""
    found: list[tuple[str, str]] = []
    if element in INTEGERS:
        found += [(f"{op} %a0, %a1 : {element}", element) for op in INT_BINARY]
        found += [(f"{op} %a0 : {element}", element) for op in INT_UNARY]
    if element == "i1":
        found += [(f"{op} %a0, %a1 : i1", "i1") for op in BOOL_BINARY]
    if element in ("i1", *INTEGERS):
        found += [(f"arith.cmpi {p}, %a0, %a1 : {element}", "i1") for p in CMPI]
    if element in FLOATS:
        found += [(f"{op} %a0, %a1 : {element}", element) for op in FLOAT_BINARY]
        found += [(f"{op} %a0 : {element}", element) for op in FLOAT_UNARY]
        found += [(f"arith.cmpf {p}, %a0, %a1 : {element}", "i1") for p in CMPF]
        found += [(f"{op} %a0 : {element}", "i1") for op in CLASSIFY]
        found += [(f"math.clampf %a0 to [%a1, %a1] : {element}", element)]
    return found


def casts(element: str) -> list[tuple[str, str]]:
    """Every cast from an element type."""
    width = 16 if element == "bf16" else int(element[1:])
    found: list[tuple[str, str]] = []
    if element in ("i1", *INTEGERS):
        for other in ("i1", *INTEGERS):
            if int(other[1:]) > width:
                found += [
                    (f"arith.{op} %a0 : {element} to {other}", other) for op in ("extsi", "extui")
                ]
            if int(other[1:]) < width:
                found.append((f"arith.trunci %a0 : {element} to {other}", other))
        for other in FLOATS:
            found += [
                (f"arith.{op} %a0 : {element} to {other}", other) for op in ("sitofp", "uitofp")
            ]
    else:
        for other in FLOATS:
            size = 16 if other == "bf16" else int(other[1:])
            if size > width:
                found.append((f"arith.extf %a0 : {element} to {other}", other))
            if size < width:
                found.append((f"arith.truncf %a0 : {element} to {other}", other))
        for other in INTEGERS:
            found += [
                (f"arith.{op} %a0 : {element} to {other}", other) for op in ("fptosi", "fptoui")
            ]
    return found


@cache
def both(element: str):
    """The ops of an element type on tensors and on scalars: compiled, and interpreted."""
    groups = [*chunks(cases(element)), *chunks(casts(element))]
    text = "".join(
        function(f"t{i}", [element] * 2, group) + scalar_function(f"s{i}", [element] * 2, group)
        for i, group in enumerate(groups)
    )
    compiled = irees.compile(text, opt_level=1)
    return groups, compiled, irees.compile(text, target="reference")


@pytest.mark.parametrize("element", DTYPES)
def test_ops_on_tensors(element):
    groups, compiled, reference = both(element)
    left, right = pairs(element)
    wrong = []
    for number, group in enumerate(groups):
        got = compiled.functions[f"t{number}"](left, right)
        want = reference.functions[f"t{number}"](left, right)
        if len(group) == 1:
            got, want = (got,), (want,)
        wrong += [text for (text, _), a, b in zip(group, got, want) if not same(a, b)]
    assert not wrong


@pytest.mark.parametrize("element", DTYPES)
def test_ops_on_scalars(element):
    groups, compiled, reference = both(element)
    wrong = []
    for left, right in list(zip(*pairs(element)))[:: 1 if element == "i1" else 3]:
        for number, group in enumerate(groups):
            got = compiled.functions[f"s{number}"](left, right)
            want = reference.functions[f"s{number}"](left, right)
            if len(group) == 1:
                got, want = (got,), (want,)
            wrong += [
                (text, left, right, a, b)
                for (text, kind), a, b in zip(group, got, want)
                if not same(np.asarray(a, DTYPES[kind]), np.asarray(b, DTYPES[kind]))
            ]
    assert not wrong


def check(name: str, body: str, arguments: list[np.ndarray], element: str, want: list) -> None:
    inputs = [next(k for k, v in DTYPES.items() if v == a.dtype) for a in arguments]
    got = irees.compile(function(name, inputs, [(body, element)]))(*arguments)
    assert same(got, np.array(want, DTYPES[element])), got


@pytest.mark.parametrize("element", INTEGERS)
def test_division_has_a_result_for_every_input(element):
    dtype = DTYPES[element]
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([5, -5, 0, low, low, high, 7, -7], dtype)
    y = np.array([0, 0, 0, -1, 0, -1, -2, 2], dtype)
    for op, want in {
        "divsi": [-1, -1, -1, low, -1, -high, -3, -3],
        "remsi": [5, -5, 0, 0, low, 0, 1, -1],
        "floordivsi": [-1, -1, -1, low, -1, -high, -4, -4],
        "ceildivsi": [-1, -1, -1, low, -1, -high, -3, -3],
    }.items():
        check("main", f"arith.{op} %a0, %a1 : {element}", [x, y], element, want)


@pytest.mark.parametrize("element", INTEGERS)
def test_shifts_by_the_width_and_more(element):
    dtype = DTYPES[element]
    width = np.iinfo(dtype).bits
    x = np.array([-3, -3, 3, 3, -3, 3, -3], dtype)
    y = np.array([width, width + 1, width, -1, -1, 1, 1], dtype)
    logical = int(np.array(-3, dtype).view(f"u{dtype.__name__}")) >> 1
    for op, want in {
        "shli": [0, 0, 0, 0, 0, 6, -6],
        "shrui": [0, 0, 0, 0, 0, 1, logical],
        "shrsi": [-1, -1, 0, 0, -1, 1, -2],
    }.items():
        check("main", f"arith.{op} %a0, %a1 : {element}", [x, y], element, want)


@pytest.mark.parametrize("element", INTEGERS)
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_floats_out_of_range_saturate(element, source):
    dtype = DTYPES[element]
    signed, unsigned = np.iinfo(dtype), np.iinfo(f"u{dtype.__name__}")
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, -1.5, 1.5], DTYPES[source])
    top, all_ones = signed.max, -1
    check("main", f"arith.fptosi %a0 : {source} to {element}", [x], element,
          [0, top, signed.min, top, signed.min, -1, 1])  # fmt: skip
    assert unsigned.max == (1 << unsigned.bits) - 1
    check("main", f"arith.fptoui %a0 : {source} to {element}", [x], element,
          [0, all_ones, 0, all_ones, 0, 0, 1])  # fmt: skip


def test_signed_overflow_wraps():
    x = np.array([2**31 - 1, -(2**31)], np.int32)
    check("main", "arith.addi %a0, %a0 : i32", [x], "i32", [-2, 0])
    check("main", "arith.muli %a0, %a0 : i32", [x], "i32", [1, 0])
    check("main", "math.absi %a0 : i32", [x], "i32", [2**31 - 1, -(2**31)])


LIMITS = {"math.log10": {"f64": 3.0}}
"""Errors in ULP above 2.5 that the table of irees-expand-math declares."""


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_libm(element):
    bodies = [(f"math.{name} %a0 : {element}", element) for name in LIBM]
    groups = chunks(list(zip(bodies, LIBM.values())), 6)
    text = "".join(
        function(f"f{i}", [element], [body for body, _ in group]) for i, group in enumerate(groups)
    )
    functions = irees.compile(text).functions
    random = np.random.default_rng(0)
    x = np.concatenate([random.uniform(-6, 6, 500), random.uniform(0, 1, 501), [0.0, 1.0]])
    x = x.astype(DTYPES[element])
    wrong = []
    for number, group in enumerate(groups):
        for got, (body, exact) in zip(functions[f"f{number}"](x), group):
            with np.errstate(all="ignore"):
                want = exact(x.astype(np.longdouble))
                spacing = np.spacing(np.abs(want.astype(x.dtype))).astype(np.longdouble)
            finite = np.isfinite(want.astype(x.dtype))
            error = np.abs(got[finite].astype(np.longdouble) - want[finite]) / spacing[finite]
            same_kind = np.array_equal(np.isnan(got), np.isnan(want))
            limit = LIMITS.get(body[0].split()[0], {}).get(element, 2.5)
            if error.max() > limit or not same_kind:
                wrong.append((body[0], float(error.max()), same_kind))
    assert not wrong


@pytest.mark.parametrize("fp", ["default", "strict"])
@pytest.mark.parametrize("element", FLOATS)
def test_a_negated_zero_is_negative(element, fp):
    """gcc made -(x * x + x) a (-x * x) - x where it may contract: of x = -1 that is +0."""
    kind = f"tensor<19x{element}>"
    text = f"""
    func.func @main(%x: {kind}, %o: {kind}) -> {kind} {{
      %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}} ins(%x : {kind}) outs(%o : {kind}) {{
      ^bb0(%a: {element}, %b: {element}):
        %m = arith.mulf %a, %a : {element}
        %s = arith.addf %m, %a : {element}
        %n = arith.negf %s : {element}
        linalg.yield %n : {element}
      }} -> {kind}
      return %r : {kind}
    }}
    """
    x = np.full(19, -1, DTYPES[element])
    assert np.signbit(irees.compile(text, fp=fp)(x, x).astype(np.float64)).all()


def test_float_constants_keep_every_bit():
    numbers = {
        "f32": [0x7FC00001, 0x7F800000, 0xFF800000, 0x80000000, 0x00000001, 0x3DCCCCCD, 0x7F7FFFFF],
        "f64": [0x7FF8000000000001, 0xFFF0000000000000, 1 << 63, 1, 0x3FB999999999999A],
        "f16": [0x7C00, 0x8000, 0x0001, 0x3555],
        "bf16": [0x7F80, 0x8000, 0x0001, 0x3EAB],
    }
    for element, values in numbers.items():
        digits = {"f32": 8, "f64": 16}.get(element, 4)
        lines = [
            f"  %{i} = arith.constant 0x{v:0{digits}X} : {element}" for i, v in enumerate(values)
        ]
        names = ", ".join(f"%{i}" for i in range(len(values)))
        types = ", ".join([element] * len(values))
        text = "func.func @main() -> ({}) {{\n{}\n  return {} : {}\n}}".format(
            types, "\n".join(lines), names, types
        )
        got = [
            np.asarray(r, DTYPES[element]).view(f"u{digits // 2}").item()
            for r in irees.compile(text)()
        ]
        assert [hex(v) for v in got] == [hex(v) for v in values]


PLAIN = """
func.func @{function}({argument}: tensor<?xf32> {{{attribute}}}) -> tensor<?xf32> {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim {argument}, %c0 : tensor<?xf32>
  %ok = arith.cmpi slt, %n, %c0 : index
  %yes = arith.constant true
  %not = arith.xori %ok, %yes : i1
  cf.assert %not, {message}
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"], doc = {doc}}} ins({argument} : tensor<?xf32>) outs(%e : tensor<?xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %b = arith.negf %a : f32 loc({location}:1:2)
    linalg.yield %b : f32
  }} -> tensor<?xf32> loc({location}:3:4)
  return %r : tensor<?xf32>
}}
"""  # fmt: skip

WEIRD = [
    '"*/ int evil; /*"', '"#define x"', '"a\\\\\\nb"', '"??/"', '"%s%n"', '"\\22; system(0); \\22"',
    '"naïve ☃ 名"', '"\\00"', '"' + "x" * 500 + '"', '"//"', '"\\n#error"',
]  # fmt: skip


def c_of(text: str) -> dict[str, str]:
    module = import_mlir(text)
    run_phases(get_context(), module, Options(target="cpu:generic"))
    return emit_program(module).texts


@cache
def plain() -> dict[str, str]:
    return c_of(
        PLAIN.format(
            function="main", argument="%x", attribute="", message='"m"', doc='"d"', location='"f"'
        )
    )


@pytest.mark.parametrize("text", WEIRD)
def test_no_byte_of_the_program_reaches_the_c(text):
    filled = PLAIN.format(
        function=f"{text}", argument="%some.$name_-1", attribute=f"irees.x = {text}", message=text,
        doc=text, location=text,
    )  # fmt: skip
    assert c_of(filled) == plain()


def test_every_identifier_is_of_a_closed_set():
    support = host_support()
    own = "".join(text.removeprefix(support) for text in plain().values())
    names = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"/\*.*?\*/", "", own, flags=re.S)))
    ours = re.compile(r"[acinpvsx]\d+|v\d+[fiu]\d+\w*|(irees|IREES)_\w+|result_\d+|[a-z]+_")
    assert not {name for name in names if not ours.fullmatch(name)} - C_WORDS


C_WORDS = set(
    """
    static void const int int32_t int64_t uint8_t INT32_MIN INT64_MIN float for if else goto done d
    workgroup scratch buffers
    scalars rt pool parallel status trap failed call args arg_dims results result_dims owned alloc
    free NULL __attribute__ visibility default return
    """.split()
)


def test_the_text_is_the_same_every_time():
    again = c_of(
        PLAIN.format(
            function="main", argument="%x", attribute="", message='"m"', doc='"d"', location='"f"'
        )
    )
    assert again == plain()


def test_what_has_no_place_in_a_program_is_refused():
    """It would be dropped without a word, and the program would do something else."""
    text = "func.func @main() { return }\nutil.initializer { util.return }"
    with pytest.raises(
        UnsupportedError, match=r"2:1: .*util.initializer: unsupported op at the top level"
    ):
        emit_program(import_mlir(text))
