"""
Random integer programs: every bound and divisor holds of what the interpreter computes, and the
program still computes it after optimize-int-arithmetic.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context

from irees.analysis.divisibility import IntegerDivisibility
from irees.analysis.integer_ranges import IntegerRanges, width_of
from irees.analysis.value_bounds import ValueBounds
from irees.frontends.mlir import import_mlir
from irees.interpreters.interpreter import Interpreter
from irees.testing import profiles
from irees.transforms import load_pass

FACTOR = profiles.load()
BINARY = (
    "addi", "subi", "muli", "divsi", "divui", "floordivsi", "ceildivsi", "ceildivui", "remsi",
    "remui", "minsi", "maxsi", "minui", "maxui", "shli", "shrsi", "shrui", "andi", "ori", "xori",
)  # fmt: skip
KINDS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}
COMPARISONS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
MAPS = ("d0 + d1", "d0 - d1 * 2", "d0 floordiv 3", "d0 mod 8 + d1 mod 4", "d0 ceildiv 4 * 4")


def numbers(width: int):
    half = 1 << (width - 1)
    edges = [
        v for v in (0, 1, -1, 2, 3, 7, 8, 12, -12, half - 1, -half, half // 2) if -half <= v < half
    ]
    return st.sampled_from(edges) | st.integers(-half, half - 1)


@st.composite
def programs(draw):
    """Text of a function that returns all its values, and arguments for it."""
    kinds = [draw(st.sampled_from(list(KINDS))) for _ in range(3)]
    values = [(f"%a{i}", kind) for i, kind in enumerate(kinds)]
    arguments = [draw(numbers(KINDS[kind])) for kind in kinds]
    lines: list[str] = []
    conditions: list[str] = []

    def define(text: str, kind: str, indent: str = "  ") -> tuple[str, str]:
        name = f"%v{len(lines)}"
        lines.append(f"{indent}{name} = {text}")
        return name, kind

    def constant(kind: str) -> tuple[str, str]:
        return define(f"arith.constant {draw(numbers(KINDS[kind]))} : {kind}", kind)

    def operand(kind: str) -> tuple[str, str]:
        same = [each for each in values if each[1] == kind]
        if not same or draw(st.integers(0, 3)) == 0:
            values.append(constant(kind))
            return values[-1]
        return draw(st.sampled_from(same))

    for _ in range(draw(st.integers(1, 8))):
        a, kind = draw(st.sampled_from(values))
        what = draw(st.sampled_from(["binary"] * 6 + ["cast", "cmpi", "select", "map", "loop"]))
        if what == "binary":
            b, _ = operand(kind)
            op = draw(st.sampled_from(BINARY))
            values.append(define(f"arith.{op} {a}, {b} : {kind}", kind))
        elif what == "cmpi":
            b, _ = operand(kind)
            predicate = draw(st.sampled_from(COMPARISONS))
            conditions.append(define(f"arith.cmpi {predicate}, {a}, {b} : {kind}", "i1")[0])
        elif what == "select" and conditions:
            b, _ = operand(kind)
            condition = draw(st.sampled_from(conditions))
            values.append(define(f"arith.select {condition}, {a}, {b} : {kind}", kind))
        elif what == "cast":
            target = draw(st.sampled_from([each for each in KINDS if each != kind]))
            if "index" in (kind, target):
                op = draw(st.sampled_from(["index_cast", "index_castui"]))
            elif KINDS[target] < KINDS[kind]:
                op = "trunci"
            else:
                op = draw(st.sampled_from(["extsi", "extui"]))
            values.append(define(f"arith.{op} {a} : {kind} to {target}", target))
        elif what == "map" and kind == "index":
            b, _ = operand(kind)
            expr = draw(st.sampled_from(MAPS))
            op = draw(st.sampled_from(["apply", "min", "max"]))
            results = expr if op == "apply" else f"{expr}, d0"
            # Of small numbers: an affine expression that overflows has no meaning.
            c, d = (
                define(f"arith.remsi {v}, {_thousand(define)} : index", kind)[0] for v in (a, b)
            )
            text = f"affine.{op} affine_map<(d0, d1) -> ({results})>({c}, {d})"
            values.append(define(text, kind))
        elif what == "loop":
            b, _ = operand(kind)
            op = draw(st.sampled_from(BINARY))
            low, high, step = (
                define(f"arith.constant {draw(s)} : index", "index")[0]
                for s in (st.integers(-3, 3), st.integers(-3, 9), st.integers(1, 4))
            )
            name = f"%v{len(lines)}"
            lines.append(
                f"  {name} = scf.for %i{name[1:]} = {low} to {high} step {step} "
                f"iter_args(%c{name[1:]} = {a}) -> ({kind}) {{\n"
                f"    %n{name[1:]} = arith.{op} %c{name[1:]}, {b} : {kind}\n"
                f"    scf.yield %n{name[1:]} : {kind}\n  }}"
            )
            values.append((name, kind))
    results = values + [(each, "i1") for each in conditions]
    types = ", ".join(kind for _, kind in results)
    head = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(kinds))
    body = "\n".join(lines)
    names = ", ".join(name for name, _ in results)
    text = f"func.func @main({head}) -> ({types}) {{\n{body}\n  func.return {names} : {types}\n}}\n"
    return text, arguments, kinds


def _thousand(define) -> str:
    return define("arith.constant 1000 : index", "index")[0]


def run(module, arguments, kinds):
    types = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64}
    given = [types[kind](value) for value, kind in zip(arguments, kinds)]
    return [int(each) for each in Interpreter(module).call("main", *given)]


@settings(max_examples=150 * FACTOR)
@given(programs())
def test_bounds_hold(program):
    text, arguments, kinds = program
    module = import_mlir(text)
    actual = run(module, arguments, kinds)
    last = next(op for op in module.walk() if op.name == "func.return")
    ranges = IntegerRanges()
    divisors = IntegerDivisibility(ranges)
    bounds = ValueBounds(ranges=ranges)
    for value, number in zip(last.operands, actual, strict=True):
        width = width_of(value.type)
        assert width is not None
        bits = number % (1 << width)
        signed = bits - (1 << width) if bits >> (width - 1) else bits
        assert ranges.of(value).contains(number), f"{ranges.of(value)} of {number}\n{text}"
        found = divisors.of(value)
        for divisor, each in ((found.udiv, bits), (found.sdiv, signed)):
            assert each % divisor == 0 if divisor else each == 0, f"{found} of {number}\n{text}"
        if width > 1:
            low, high = bounds.constant_bounds(value)
            inside = (low is None or low <= signed) and (high is None or signed <= high)
            assert inside, f"[{low}, {high}] of {signed}\n{text}"
    numbers_of = dict(zip(last.operands, actual))
    for a, x in list(numbers_of.items())[:6]:
        for b, y in numbers_of.items():
            if a.type == b.type:
                assert bounds.are_equal(a, b) in (None, x == y), text


@settings(max_examples=100 * FACTOR)
@given(programs(), st.booleans(), st.booleans())
def test_optimized_programs_agree(program, narrow, wide):
    text, arguments, kinds = program
    module = import_mlir(text)
    before = run(module, arguments, kinds)
    options = {"narrow_to_i32": narrow, "index_is_i64": wide}
    load_pass("irees-optimize-int-arithmetic")(**options).apply(Context(), module)
    module.verify()
    assert run(module, arguments, kinds) == before, f"{text}\n{module}"
