"""Every scalar op on every type: the compiled program gives what the interpreter gives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from irees.frontends.mlir import import_mlir
from irees.testing.oracles import Case, compiled_agrees, interpret, phases_agree
from irees.testing.strategies import DTYPES
from irees.testing.tolerances import EXACT, Tolerance, ulps

BIT_REDUCERS = "addi muli andi ori xori maxsi minsi maxui minui".split()
INTEGERS = ("i1", "i8", "i16", "i32", "i64")
FLOATS = ("f16", "bf16", "f32", "f64")
BITS = {
    "bf16": 16,
    **{k: int(k[1:]) for k in ("i1", "i8", "i16", "i32", "i64", "f16", "f32", "f64")},
}
INTEGER_OPS = (
    "addi", "subi", "muli", "divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi",
    "ceildivui", "andi", "ori", "xori", "shli", "shrsi", "shrui", "maxsi", "minsi", "maxui",
    "minui",
)  # fmt: skip
COMPARISONS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_OPS = (
    "addf", "subf", "mulf", "divf", "remf", "maximumf", "minimumf", "maxnumf", "minnumf",
)  # fmt: skip
FLOAT_COMPARISONS = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule",
    "une", "uno", "true",
)  # fmt: skip
EXACT_UNARY = ("absf", "ceil", "floor", "round", "roundeven", "trunc", "sqrt")
UNARY = {
    "exp": 4, "exp2": 4, "expm1": 8, "log": 4, "log2": 4, "log10": 4, "log1p": 4, "tanh": 8,
    "erf": 8, "sin": 4, "cos": 4, "tan": 8, "atan": 8, "asin": 4, "acos": 4, "sinh": 4, "cosh": 4,
    "asinh": 4, "acosh": 4, "atanh": 4, "cbrt": 4, "rsqrt": 4,
}  # fmt: skip
SIZE = 251
"""Not a multiple of a vector, so that the remainder runs too."""


def values(element: str, seed: int = 0) -> np.ndarray:
    """Edges first, then anything."""
    random = np.random.default_rng(seed)
    dtype = DTYPES[element]
    if element == "i1":
        return random.integers(0, 2, SIZE).astype(bool)
    if element in INTEGERS:
        info = np.iinfo(dtype)
        edges = [0, 1, -1, 2, -2, 7, info.bits - 1, info.bits, info.min, info.max, info.min + 1]
        rest = random.integers(info.min, info.max, SIZE, endpoint=True, dtype=dtype)
        return np.where(random.random(SIZE) < 0.7, random.choice(edges, SIZE), rest).astype(dtype)
    edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        np.inf,
        -np.inf,
        np.nan,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        127.5,
        -129.0,
    ]
    with np.errstate(all="ignore"):
        rest = random.normal(size=SIZE) * 10.0 ** random.integers(-3, 4, SIZE)
        return np.where(random.random(SIZE) < 0.4, random.choice(edges, SIZE), rest).astype(dtype)


def function(name: str, op: str, inputs: list[str], result: str) -> str:
    """`op` on every element, with operands named $0, $1."""
    arguments = ", ".join(f"%a{i}: tensor<{SIZE}x{e}>" for i, e in enumerate(inputs))
    body = ", ".join(f"%x{i}: {e}" for i, e in enumerate(inputs))
    for i in range(len(inputs)):
        op = op.replace(f"${i}", f"%x{i}")
    maps = ", ".join(["affine_map<(d0) -> (d0)>"] * (len(inputs) + 1))
    names = ", ".join(f"%a{i}" for i in range(len(inputs)))
    types = ", ".join(f"tensor<{SIZE}x{e}>" for e in inputs)
    return f"""
func.func @{name}({arguments}) -> tensor<{SIZE}x{result}> {{
  %e = tensor.empty() : tensor<{SIZE}x{result}>
  %0 = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
      ins({names} : {types}) outs(%e : tensor<{SIZE}x{result}>) {{
  ^bb0({body}, %o: {result}):
    %r = {op}
    linalg.yield %r : {result}
  }} -> tensor<{SIZE}x{result}>
  return %0 : tensor<{SIZE}x{result}>
}}"""


def integer_ops(element: str) -> Iterator[tuple[str, str, list[str], str, Tolerance]]:
    """Name, op, operand types, result type and class."""
    for op in INTEGER_OPS:
        yield op, f"arith.{op} $0, $1 : {element}", [element] * 2, element, EXACT
    for p in COMPARISONS:
        yield p, f"arith.cmpi {p}, $0, $1 : {element}", [element] * 2, "i1", EXACT
    if element != "i1":
        for op in ("absi", "ctpop", "ctlz", "cttz"):
            yield op, f"math.{op} $0 : {element}", [element], element, EXACT


def float_ops(element: str) -> Iterator[tuple[str, str, list[str], str, Tolerance]]:
    """Name, op, operand types, result type and class."""
    for op in FLOAT_OPS:
        yield op, f"arith.{op} $0, $1 : {element}", [element] * 2, element, EXACT
    for p in FLOAT_COMPARISONS:
        yield f"cmp_{p}", f"arith.cmpf {p}, $0, $1 : {element}", [element] * 2, "i1", EXACT
    yield "negf", f"arith.negf $0 : {element}", [element], element, EXACT
    yield "copysign", f"math.copysign $0, $1 : {element}", [element] * 2, element, EXACT
    for op in EXACT_UNARY:
        yield op, f"math.{op} $0 : {element}", [element], element, EXACT
    for op, bound in UNARY.items():
        yield op, f"math.{op} $0 : {element}", [element], element, ulps(bound)


def casts(element: str) -> Iterator[tuple[str, str, list[str], str, Tolerance]]:
    """Name, op, operand types, result type and class."""
    for target in (*INTEGERS, *FLOATS):
        bits, other = BITS[element], BITS[target]
        if element in INTEGERS and target in INTEGERS:
            names = ["trunci"] if bits > other else ["extsi", "extui"] if bits < other else []
        elif element in INTEGERS:
            names = ["sitofp", "uitofp"]
        elif target in INTEGERS:
            names = ["fptosi", "fptoui"]
        else:
            names = ["truncf"] if bits > other else ["extf"] if bits < other else []
        if bits == other and element != target:
            names = [*names, "bitcast"]
        for op in names:
            yield (
                f"{op}_{target}",
                f"arith.{op} $0 : {element} to {target}",
                [element],
                target,
                EXACT,
            )


GROUPS: dict[str, list] = {
    **{f"{e}": list(integer_ops(e)) for e in INTEGERS},
    **{f"{e}": list(float_ops(e)) for e in FLOATS},
    **{f"cast_{e}": list(casts(e)) for e in (*INTEGERS, *FLOATS)},
}


@pytest.mark.parametrize("name", GROUPS)
def test_scalar_ops(name: str):
    ops = GROUPS[name]
    module = import_mlir("\n".join(function(n, op, ins, out) for n, op, ins, out, _ in ops))
    cases = [
        Case(n, tuple(values(e, i) for i, e in enumerate(ins)), (tolerance,))
        for n, _, ins, _, tolerance in ops
    ]
    expected = interpret(module, cases)
    found = phases_agree(module.clone(), cases, expected)
    found += compiled_agrees(module, cases, expected)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("op", BIT_REDUCERS)
def test_bits_reduce_to_a_bit(op):
    module = import_mlir(
        f"""
        func.func @main(%a: tensor<4x77xi1>, %o: tensor<4xi1>) -> tensor<4xi1> {{
          %r = linalg.reduce {{ arith.{op} }} ins(%a : tensor<4x77xi1>) outs(%o : tensor<4xi1>)
              dimensions = [1]
          return %r : tensor<4xi1>
        }}"""
    )
    rare = np.arange(4 * 77).reshape(4, 77) % 76 == 75
    cases = [
        Case("main", (bits, np.full(4, start)))
        for bits in (rare, ~rare, rare & ~rare, rare | ~rare)
        for start in (False, True)
    ]
    expected = interpret(module, cases)
    assert not compiled_agrees(module, cases, expected)
