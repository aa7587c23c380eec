"""
C expressions for value ops: one op, one expression.

There is one table per kind of op, indexed by op name. Scalars and vectors share a table where
their C is the same. Where it differs (vector comparisons yield masks, vector selects are bit
logic), the vector form is next to the scalar one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from math import isinf, isnan

from xdsl.dialects import arith, complex, vector
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    VectorType,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from irees.backends.common import types
from irees.backends.common.complex_ops import COMPLEX, complex_expression, complex_literal
from irees.backends.common.forms import extreme_of, is_multiple
from irees.backends.common.types import (
    c_type,
    int_width,
    is_bool,
    is_float,
    scalar,
    short,
    vector_name,
)
from irees.errors import UnsupportedError

Names = list[str]
"""C of the operands of an op."""

INFIX = {
    "arith.addf": "+",
    "arith.subf": "-",
    "arith.mulf": "*",
    "arith.divf": "/",
    "arith.addi": "+",
    "arith.subi": "-",
    "arith.muli": "*",
    "arith.andi": "&",
    "arith.ori": "|",
    "arith.xori": "^",
}

HELPERS = {
    "arith.divsi": "divs",
    "arith.remsi": "rems",
    "arith.divui": "divu",
    "arith.remui": "remu",
    "arith.floordivsi": "floordiv",
    "arith.ceildivsi": "ceildiv",
    "arith.ceildivui": "ceildivu",
    "arith.shli": "shl",
    "arith.shrsi": "shrs",
    "arith.shrui": "shru",
}

FLOAT_PICKS = {
    "arith.maximumf": "maximum",
    "arith.minimumf": "minimum",
    "arith.maxnumf": "maxnum",
    "arith.minnumf": "minnum",
}

INT_PICKS = {
    "arith.maxsi": (">", False),
    "arith.minsi": ("<", False),
    "arith.maxui": (">", True),
    "arith.minui": ("<", True),
}

LIBM = {
    "math.exp": "exp",
    "math.exp2": "exp2",
    "math.expm1": "expm1",
    "math.log": "log",
    "math.log2": "log2",
    "math.log10": "log10",
    "math.log1p": "log1p",
    "math.sqrt": "sqrt",
    "math.tanh": "tanh",
    "math.erf": "erf",
    "math.erfc": "erfc",
    "math.sin": "sin",
    "math.cos": "cos",
    "math.tan": "tan",
    "math.atan": "atan",
    "math.asin": "asin",
    "math.acos": "acos",
    "math.sinh": "sinh",
    "math.cosh": "cosh",
    "math.asinh": "asinh",
    "math.acosh": "acosh",
    "math.atanh": "atanh",
    "math.absf": "fabs",
    "math.floor": "floor",
    "math.ceil": "ceil",
    "math.round": "round",
    "math.trunc": "trunc",
    "math.powf": "pow",
    "math.atan2": "atan2",
    "math.cbrt": "cbrt",
    "math.copysign": "copysign",
    "arith.remf": "fmod",
    "math.fma": "fma",
}

CMPF_SCALAR = (
    "0", "{a} == {b}", "{a} > {b}", "{a} >= {b}", "{a} < {b}", "{a} <= {b}",
    "({a} < {b}) | ({a} > {b})", "({a} == {a}) & ({b} == {b})",
    "!(({a} < {b}) | ({a} > {b}))", "!({a} <= {b})", "!({a} < {b})", "!({a} >= {b})",
    "!({a} > {b})", "{a} != {b}", "({a} != {a}) | ({b} != {b})", "1",
)  # fmt: skip

CMPI = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")


def element(kind: Attribute) -> Attribute:
    """The lane type of a vector, or the type itself."""
    return kind.element_type if isinstance(kind, VectorType) else kind


def lanes(kind: Attribute) -> int:
    """Lanes of a vector, 0 for a scalar."""
    return kind.get_shape()[0] if isinstance(kind, VectorType) else 0


MASK_DEPTH = 3
"""Maximum depth of a tree of comparisons that is printed again in wider lanes."""


def mask_bits(lane: Attribute) -> int:
    """Bits of a mask lane in the result of a vector comparison."""
    if is_bool(lane) or is_float(lane):
        return 64 if isinstance(lane, Float64Type) else 32
    return int_width(lane)


def float_literal(value: float, kind: Attribute) -> str:
    """A float constant in C: hexadecimal, to be exact; NaN and Inf as bit patterns."""
    if isinstance(kind, BFloat16Type):
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        rounded = (
            (bits >> 16) | 0x40 if isnan(value) else (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        )
        return f"UINT16_C({rounded & 0xFFFF})"
    if isinstance(kind, Float16Type):
        return f"((irees_f16){float_literal(value, Float32Type())})"
    if isnan(value) or isinf(value):
        if isinstance(kind, Float64Type):
            return f"f64_of(UINT64_C({struct.unpack('<Q', struct.pack('<d', value))[0]}))"
        return f"f32_of(UINT32_C({struct.unpack('<I', struct.pack('<f', value))[0]}))"
    if isinstance(kind, Float32Type):
        value = struct.unpack("<f", struct.pack("<f", value))[0]
        return f"{value.hex()}f"
    return value.hex()


def int_literal(value: int, kind: Attribute) -> str:
    """An integer constant in C."""
    if is_bool(kind):
        return str(value & 1)
    width = int_width(kind)
    value &= (1 << width) - 1
    if value >> (width - 1):
        value -= 1 << width
    if value == -(1 << 63):
        return "(-INT64_C(9223372036854775807)-1)"
    if -(1 << 31) < value < (1 << 31):
        return str(value) if value >= 0 else f"({value})"
    return f"INT64_C({value})"


def _lane_literal(value: float, lane: Attribute) -> str:
    """A lane of a vector; one of a mask is -1."""
    if is_float(lane):
        return float_literal(value, lane)
    text = int_literal(int(value), lane)
    return f"-({text})" if is_bool(lane) else text


def constant(op: arith.ConstantOp | complex.ConstantOp) -> str:
    """The C of a constant of scalar or vector type. Raises UnsupportedError."""
    if isinstance(op, complex.ConstantOp):
        parts = [float_literal(part.value.data, part.type) for part in op.value]
        return complex_literal(*parts, op.complex.type)
    value, kind = op.value, op.result.type
    if isinstance(value, IntegerAttr):
        return int_literal(value.value.data, value.type)
    if isinstance(value, FloatAttr):
        return float_literal(value.value.data, value.type)
    if isinstance(value, DenseIntOrFPElementsAttr) and isinstance(kind, VectorType):
        same, values = value.is_splat(), value.get_values()
        texts = [_lane_literal(v, element(kind)) for v in (values[:1] if same else values)]
        if same:
            return f"{c_type(kind)}_splat({texts[0]})"
        return f"IREES_LITERAL({c_type(kind)}, {', '.join(texts)})"
    raise UnsupportedError("only scalar and vector constants have a C form", op=op)


SHIFTS = {"arith.shli": "<<", "arith.shrsi": ">>", "arith.shrui": ">>"}

WIDENED = frozenset(
    ((4, 32, 64), (8, 8, 32), (8, 16, 32), (8, 8, 64), (8, 16, 64), (8, 32, 64), (16, 8, 16))
    + ((16, 8, 32), (16, 16, 32), (32, 8, 16))
)
"""The conversions of `irees_widen.h`: lanes, and the width before and after."""


class Expressions:
    """Prints value ops; records the vector types and the optional headers that the text needs."""

    streams = True
    """Whether the target has non-temporal stores; where not, they are plain ones."""
    widens = True
    """Whether `irees_widen.h` is part of the text."""

    def __init__(self) -> None:
        self.vectors: dict[str, None] = {}
        self.dots = False
        self.halves = False
        self.headers: dict[str, None] = {}
        """Texts to print before the kernel, such as declarations of instructions."""
        self.compared: dict[SSAValue, str] = {}
        """Masks of comparisons whose lanes have not 32 bits, in lanes as wide as the operands."""

    def vector(self, name: str) -> str:
        """Records a vector type as used; returns its name."""
        self.vectors[name] = None
        return name

    def mask(self, count: int) -> str:
        """The vector type of masks of `count` lanes."""
        return self.vector(vector_name("i32", count))

    def converted(self, text: str, widths: Sequence[int], count: int, sign: str = "i") -> str:
        """The conversion of `count` integers to each of some widths, one after the other."""
        for width in widths:
            text = f"IREES_CONVERT({self.vector(vector_name(f'{sign}{width}', count))}, {text})"
        return text

    def widened(self, text: str, widths: Sequence[int], count: int, sign: str = "i") -> str:
        """
        The conversion of `count` integers of the first of some widths to signless ones of the last,
        which is larger, by one instruction if there is one, else through all widths.
        """
        first, *between, last = widths
        target = self.vector(vector_name(f"i{last}", count))
        if (count, first, last) not in WIDENED or not self.widens:
            return f"IREES_CONVERT({target}, {self.converted(text, between, count, sign)})"
        for width in between:
            self.vector(vector_name(f"{sign}{width}", count))
        return f"irees_{target}_of_{vector_name(f'{sign}{first}', count)}({text})"

    def type(self, kind: Attribute) -> str:
        """C type of a value; vector types are recorded as used."""
        return self.vector(c_type(kind)) if isinstance(kind, VectorType) else c_type(kind)

    def print(self, op: Operation, names: Names) -> str | None:
        """The expression for a single-result op, or None when it is not a value op."""
        build = VALUE_OPS.get(op.name)
        return None if build is None else build(self, op, names)

    def constant(self, op: Operation, names: Names) -> str:
        assert isinstance(op, arith.ConstantOp | complex.ConstantOp)
        self.type(op.results[0].type)
        return constant(op)

    def _float(self, lane: Attribute, count: int, build: Callable[..., str], names: Names) -> str:
        """Float arithmetic; 16-bit types are computed in f32 and rounded."""
        if isinstance(lane, BFloat16Type):
            return f"irees_to_bf16({build(*(f'irees_from_bf16({n})' for n in names))})"
        if isinstance(lane, Float16Type):
            return f"(irees_f16)({build(*(f'(float){n}' for n in names))})"
        return build(*names)

    def negated(self, op: Operation, names: Names) -> str:
        """Flips the sign bit: gcc rewrites -(a * b + c) to (-a * b) - c, whose zero is positive."""
        kind = op.results[0].type
        wide = "f64" if isinstance(element(kind), Float64Type) else "f32"
        if not isinstance(kind, VectorType):
            return self._float(kind, 0, lambda a: f"irees_neg_{wide}({a})", names)
        bits = self.vector(vector_name(f"i{wide[1:]}", lanes(kind)))
        return f"({self.type(kind)})(({bits}){names[0]} ^ INT{wide[1:]}_MIN)"

    def infix(self, op: Operation, names: Names) -> str:
        symbol, kind = INFIX[op.name], op.results[0].type
        lane = element(kind)
        if is_float(lane):
            if is_multiple(op):
                return self._product(kind, names)
            return self._float(lane, lanes(kind), lambda a, b: f"{a} {symbol} {b}", names)
        if isinstance(kind, VectorType):
            if is_bool(lane):
                return self._bool_infix(symbol, names, "-", "~0")
            return f"{names[0]} {symbol} {names[1]}"
        if is_bool(lane):
            return self._bool_infix(symbol, names, "", "1")
        return f"({scalar(lane)})({names[0]} {symbol} {names[1]})"

    def _product(self, kind: Attribute, names: Names) -> str:
        """A product that no compiler contracts into a multiply-add."""
        name, zero = short(element(kind)), float_literal(-0.0, element(kind))
        fma = f"irees_fma_{name}"
        if isinstance(kind, VectorType):
            fma, zero = f"{self.type(kind)}_fma", f"{self.type(kind)}_splat({zero})"
        return f"IREES_PRODUCT({fma}, {zero}, {names[0]}, {names[1]})"

    @staticmethod
    def _bool_infix(symbol: str, names: Names, minus: str, ones: str) -> str:
        # On one bit, addition and subtraction are xor and multiplication is and.
        symbol = {"+": "^", "-": "^", "*": "&"}.get(symbol, symbol)
        return f"{names[0]} {symbol} {names[1]}"

    def helper(self, op: Operation, names: Names) -> str:
        kind = op.results[0].type
        if op.name == "arith.shrsi" and is_bool(element(kind)):
            # An arithmetic shift of i1 replicates its only bit, the sign.
            return names[0]
        if op.name in SHIFTS and self._shifts_wide(op):
            return self._wide_shift(op, names)
        return self._mapped(f"irees_{HELPERS[op.name]}_{short(element(kind))}", kind, names)

    def _shifts_wide(self, op: Operation) -> bool:
        """Whether lanes are shifted in lanes of i32: by other amounts each, which none has."""
        kind, amounts = op.results[0].type, op.operands[1].owner
        if not isinstance(kind, VectorType) or is_bool(element(kind)):
            return False
        if isinstance(amounts, arith.ConstantOp | vector.BroadcastOp):
            value = amounts.value if isinstance(amounts, arith.ConstantOp) else None
            if not isinstance(value, DenseIntOrFPElementsAttr) or value.is_splat():
                return False
        return self.widens and (lanes(kind), int_width(element(kind)), 32) in WIDENED

    def _wide_shift(self, op: Operation, names: Names) -> str:
        kind = op.results[0].type
        first, count, symbol = int_width(element(kind)), lanes(kind), SHIFTS[op.name]
        steps, wide = [first, *types.widths_between(element(kind), i32), 32], self.mask(count)
        unsigned = self.vector(vector_name(f"u{first}", count))
        amount = self.widened(f"({unsigned}){names[1]}", steps, count, "u")
        sign = "i" if op.name == "arith.shrsi" else "u"
        value = names[0] if sign == "i" else f"({unsigned}){names[0]}"
        value = self.widened(value, steps, count, sign)
        shifted = f"IREES_SHIFT({wide}, {value}, {symbol}, {amount})"
        return self.converted(shifted, steps[-2::-1], count)

    def _mapped(self, function: str, kind: Attribute, names: Names) -> str:
        if not isinstance(kind, VectorType):
            call = f"{function}({', '.join(names)})"
            return f"{call} & 1" if is_bool(kind) else call
        macro = f"IREES_MAP{len(names)}"
        return f"{macro}({self.type(kind)}, {lanes(kind)}, {function}, {', '.join(names)})"

    def pick(self, op: Operation, names: Names) -> str:
        which, kind = FLOAT_PICKS[op.name], op.results[0].type
        lane = element(kind)
        if isinstance(kind, VectorType):
            v, m = (
                self.type(kind),
                self.vector(
                    vector_name("i64" if isinstance(lane, Float64Type) else "i32", lanes(kind))
                ),
            )
            a, b = names
            if which in ("maximum", "minimum"):
                return f"{v}_{which}({a}, {b})"
            sign = ">" if which == "maxnum" else "<"
            return f"IREES_SELECT({v}, {m}, ({a} {sign} {b}) | ({b} != {b}), {a}, {b})"
        wide = "f64" if isinstance(lane, Float64Type) else "f32"
        return self._float(lane, 0, lambda a, b: f"irees_{which}_{wide}({a}, {b})", names)

    def int_pick(self, op: Operation, names: Names) -> str:
        (sign, unsigned), kind = INT_PICKS[op.name], op.results[0].type
        a, b = names
        lane = element(kind)
        if is_bool(lane):
            # signed: true is -1, so the maximum is the conjunction
            either = (sign == ">") == unsigned
            return f"{a} {'|' if either else '&'} {b}"
        if isinstance(kind, VectorType):
            v = self.type(kind)
            cast = (
                f"({self.vector(vector_name('u' + short(lane)[1:], lanes(kind)))})"
                if unsigned
                else ""
            )
            m = v
            return f"IREES_SELECT({v}, {m}, ({m})({cast}{a} {sign} {cast}{b}), {a}, {b})"
        cast = f"(u{scalar(lane)})" if unsigned else ""
        return f"{cast}{a} {sign} {cast}{b} ? {a} : {b}"

    def _as_mask(self, text: str, lane: Attribute, count: int) -> str:
        """A comparison result as 32-bit lanes."""
        m = self.mask(count)
        return text if mask_bits(lane) == 32 else f"IREES_CONVERT({m}, {text})"

    def cmpf(self, op: Operation, names: Names) -> str:
        predicate = op.properties["predicate"].value.data
        kind = op.operands[0].type
        lane = element(kind)
        template = CMPF_SCALAR[predicate]
        if isinstance(kind, VectorType):
            count = lanes(kind)
            if predicate in (0, 15):
                return f"{self.mask(count)}_splat({0 if predicate == 0 else -1})"
            text = f"({template.format(a=names[0], b=names[1]).replace('!(', '~(')})"
            if mask_bits(lane) != 32:
                self.compared[op.results[0]] = text
            return self._as_mask(text, lane, count)
        wide = [f"irees_from_bf16({n})" if isinstance(lane, BFloat16Type) else n for n in names]
        return template.format(a=wide[0], b=wide[1])

    def cmpi(self, op: Operation, names: Names) -> str:
        predicate = op.properties["predicate"].value.data
        kind = op.operands[0].type
        lane = element(kind)
        a, b = names
        if is_bool(lane):
            # True is -1 in signed i1, so signed predicates compare with swapped operands.
            if 2 <= predicate <= 5:
                a, b = b, a
            if isinstance(kind, VectorType):
                a, b = f"-{a}", f"-{b}"
        if isinstance(kind, VectorType):
            cast = ""
            if predicate >= 6 and not is_bool(lane):
                cast = f"({self.vector(vector_name('u' + short(lane)[1:], lanes(kind)))})"
            text = f"({cast}{a} {CMPI[predicate]} {cast}{b})"
            if mask_bits(lane) != 32:
                self.compared[op.results[0]] = text
            return self._as_mask(text, lane, lanes(kind))
        cast = f"(u{scalar(lane)})" if predicate >= 6 and not is_bool(lane) else ""
        return f"{cast}{a} {CMPI[predicate]} {cast}{b}"

    def select(self, op: Operation, names: Names) -> str:
        kind = op.results[0].type
        if not isinstance(kind, VectorType):
            return f"{names[0]} ? {names[1]} : {names[2]}"
        if not isinstance(op.operands[0].type, VectorType):
            return f"{names[0]} ? {names[1]} : {names[2]}"
        if (extreme := extreme_of(op)) is not None:
            return f"{self.type(kind)}_{extreme}({names[1]}, {names[2]})"
        lane, count = element(kind), lanes(kind)
        width = mask_bits(lane)
        m = self.vector(vector_name(f"i{width}", count))
        mask = names[0]
        if width != 32:
            wide = self._wide_mask(op.operands[0], width, op.parent)
            mask = f"IREES_CONVERT({m}, {wide or mask})"
        return f"IREES_SELECT({self.type(kind)}, {m}, {mask}, {names[1]}, {names[2]})"

    def _wide_mask(
        self, mask: SSAValue, width: int, block: Block | None, depth: int = MASK_DEPTH
    ) -> str | None:
        """
        A mask of comparisons in the same block, if their own lanes are that wide: compilers do not
        see that narrowing a mask and widening it again changes nothing.
        """
        owner = mask.owner
        if depth == 0 or not isinstance(owner, Operation) or owner.parent is not block:
            return None
        if isinstance(owner, arith.AndIOp | arith.OrIOp):
            sides = [self._wide_mask(x, width, block, depth - 1) for x in owner.operands]
            return None if None in sides else f"({sides[0]} {INFIX[owner.name]} {sides[1]})"
        if not isinstance(owner, arith.CmpfOp | arith.CmpiOp):
            return None
        if mask_bits(element(owner.lhs.type)) != width:
            return None
        return self.compared.get(mask)

    def math(self, op: Operation, names: Names) -> str:
        name, kind = op.name, op.results[0].type
        lane = element(kind)
        double = isinstance(lane, Float64Type)
        if name in ("math.rsqrt", "math.roundeven"):
            function = f"irees_{name[5:]}_{'f64' if double else 'f32'}"
        else:
            function = LIBM[name] + ("" if double else "f")
        if isinstance(kind, VectorType):
            if name == "math.fma" and isinstance(lane, Float32Type | Float64Type):
                return f"{self.type(kind)}_fma({', '.join(names)})"
            return self._mapped(function, kind, names)
        return self._float(lane, 0, lambda *a: f"{function}({', '.join(a)})", names)

    def scaled(self, op: Operation, names: Names) -> str:
        kind = op.results[0].type
        function = op.name.removeprefix("irees.")
        if isinstance(kind, VectorType):
            return f"{self.type(kind)}_{function}({', '.join(names)})"
        suffix = "_f64" if isinstance(kind, Float64Type) else ""
        return f"irees_{function}{suffix}({', '.join(names)})"


Build = Callable[[Expressions, Operation, Names], str]
"""Returns the C of an op, given that of its operands."""

_SIGNED_CASTS = ("arith.sitofp", "arith.extsi", "arith.index_cast")
_UNSIGNED_CASTS = ("arith.uitofp", "arith.extui", "arith.index_castui")


def _convert(e: Expressions, op: Operation, names: Names) -> str:
    """A cast between number types that has the semantics of a C conversion."""
    source, target = op.operands[0].type, op.results[0].type
    if not isinstance(target, VectorType):
        return _convert_scalar(op, names[0])
    ends = {type(element(source)), type(element(target))}
    if BFloat16Type in ends:
        return _convert_bf16_lanes(e, op, names[0])
    if Float16Type in ends and lanes(target) in (8, 16):
        e.halves = True
        return _convert_by_function(e, op, names[0])
    return _convert_lanes(e, op, names[0])


def _convert_scalar(op: Operation, a: str) -> str:
    lane, out = op.operands[0].type, op.results[0].type
    if isinstance(lane, BFloat16Type):
        a = f"irees_from_bf16({a})"
    if isinstance(lane, Float16Type):
        a = f"irees_from_f16({a})"
    if is_bool(lane) and op.name in _SIGNED_CASTS:
        a = f"-(int){a}"
    elif op.name in _UNSIGNED_CASTS and not is_bool(lane):
        a = f"(u{scalar(lane)}){a}"
    if isinstance(out, BFloat16Type):
        return f"irees_to_bf16((float)({a}))"
    if is_bool(out):
        return f"{a} & 1"
    return f"({scalar(out)})({a})"


def _convert_by_function(e: Expressions, op: Operation, a: str) -> str:
    """A conversion of vectors by a function that uses instructions of the target."""
    return f"irees_{e.type(op.results[0].type)}_of_{e.type(op.operands[0].type)}({a})"


def _convert_bf16_lanes(e: Expressions, op: Operation, a: str) -> str:
    """A conversion of vectors from or to bf16, by shifts or by a function for 16 lanes."""
    source, target = op.operands[0].type, op.results[0].type
    wide = e.vector(vector_name("u32", lanes(target)))
    if lanes(target) == 16:
        e.halves = True
        return _convert_by_function(e, op, a)
    if isinstance(element(source), BFloat16Type):
        return f"({e.type(target)})(IREES_CONVERT({wide}, {a}) << 16)"
    return f"IREES_CONVERT({e.type(target)}, IREES_TO_BF16({wide}, {a}))"


def _convert_lanes(e: Expressions, op: Operation, a: str) -> str:
    """A conversion of vectors, through the widths between those of both types."""
    source, target = op.operands[0].type, op.results[0].type
    lane, count, sign = element(source), lanes(target), "i"
    if is_bool(lane) and op.name not in _SIGNED_CASTS:
        a = f"(-{a})"
    elif op.name in _UNSIGNED_CASTS:
        sign = "u"
        a = f"({e.vector(vector_name('u' + short(lane)[1:], lanes(source)))}){a}"
    widths, out = types.widths_between(lane, element(target)), element(target)
    if not is_float(lane) and not is_bool(lane) and not is_bool(out):
        first = int_width(lane)
        steps = [first, *widths] if is_float(out) else [first, *widths, int_width(out)]
        if len(steps) > 1 and steps[-1] > first:
            a = e.widened(a, steps, count, sign)
            return f"IREES_CONVERT({e.type(target)}, {a})" if is_float(out) else a
    a = e.converted(a, widths, count, sign)
    if is_bool(out):
        return f"-IREES_CONVERT({e.mask(count)}, {a} & 1)"
    if count == 8 and isinstance(lane, Float32Type) and op.name == "arith.extf":
        return _convert_by_function(e, op, a)
    return f"IREES_CONVERT({e.type(target)}, {a})"


def _from_float(e: Expressions, op: Operation, names: Names) -> str:
    """
    Saturating `arith.fptosi` and `arith.fptoui` of scalars. `irees-expand-casts` has clamped the
    vectors that it leaves.
    """
    source, target = op.operands[0].type, op.results[0].type
    out = element(target)
    function = f"irees_{op.name[6:]}_{short(out)}"
    if isinstance(target, VectorType):
        return f"IREES_CONVERT({e.type(target)}, {names[0]})"
    a = (
        f"irees_from_bf16({names[0]})"
        if isinstance(element(source), BFloat16Type)
        else f"(double){names[0]}"
    )
    if is_bool(out):
        # i1 holds -1 and 0 (signed) or 0 and 1 (unsigned): the rest saturates, NaN gives 0.
        return f"{a} <= -1.0" if op.name == "arith.fptosi" else f"{a} >= 1.0"
    return f"({scalar(out)}){function}({a})"


def _bitcast(e: Expressions, op: Operation, names: Names) -> str:
    source, target = op.operands[0].type, op.results[0].type
    if isinstance(target, VectorType):
        return f"({e.type(target)}){names[0]}"
    return f"IREES_BITCAST({scalar(target)}, {scalar(source)}, {names[0]})"


def _absi(e: Expressions, op: Operation, names: Names) -> str:
    kind = op.results[0].type
    a = names[0]
    if isinstance(kind, VectorType):
        v = e.type(kind)
        return f"IREES_SELECT({v}, {v}, ({v})({a} < 0), -{a}, {a})"
    return f"({scalar(kind)})({a} < 0 ? -{a} : {a})"


def _bit_count(function: str) -> Build:
    def build(e: Expressions, op: Operation, names: Names) -> str:
        kind = op.results[0].type
        width = int_width(kind)
        u = f"(uint64_t)(uint{width}_t){names[0]}"
        if function == "ctpop":
            return f"({scalar(kind)})IREES_POPCOUNT({u})"
        if function == "ctlz":
            zeros = f"IREES_LEADING_ZEROS({u}) - {64 - width}"
            return f"({scalar(kind)})({names[0]} == 0 ? {width} : {zeros})"
        return f"({scalar(kind)})({names[0]} == 0 ? {width} : IREES_TRAILING_ZEROS({u}))"

    return build


def _classify(template: str) -> Build:
    def build(e: Expressions, op: Operation, names: Names) -> str:
        lane = op.operands[0].type
        a = (
            f"irees_from_bf16({names[0]})"
            if isinstance(lane, BFloat16Type)
            else f"(double){names[0]}"
        )
        return template.format(a=a)

    return build


def _clampf(e: Expressions, op: Operation, names: Names) -> str:
    lane = op.results[0].type
    wide = "f64" if isinstance(lane, Float64Type) else "f32"
    return e._float(
        lane,
        0,
        lambda v, lo, hi: f"irees_minimum_{wide}(irees_maximum_{wide}({v}, {lo}), {hi})",
        names,
    )


def _fpowi(e: Expressions, op: Operation, names: Names) -> str:
    wide = "double" if isinstance(op.results[0].type, Float64Type) else "float"
    return e._float(
        op.results[0].type,
        0,
        lambda a: f"({wide})irees_fpowi({a}, {names[1]})",
        names[:1],
    )


VALUE_OPS: dict[str, Build] = {
    **dict.fromkeys(("arith.constant", "complex.constant"), lambda e, op, n: e.constant(op, n)),
    **dict.fromkeys(INFIX, lambda e, op, n: e.infix(op, n)),
    "arith.negf": lambda e, op, n: e.negated(op, n),
    **dict.fromkeys(HELPERS, lambda e, op, n: e.helper(op, n)),
    **dict.fromkeys(FLOAT_PICKS, lambda e, op, n: e.pick(op, n)),
    **dict.fromkeys(INT_PICKS, lambda e, op, n: e.int_pick(op, n)),
    "arith.cmpf": lambda e, op, n: e.cmpf(op, n),
    "arith.cmpi": lambda e, op, n: e.cmpi(op, n),
    "arith.select": lambda e, op, n: e.select(op, n),
    **dict.fromkeys((*LIBM, "math.rsqrt", "math.roundeven"), lambda e, op, n: e.math(op, n)),
    **dict.fromkeys(COMPLEX, lambda e, op, n: complex_expression(op, n)),
    **dict.fromkeys(
        (
            "arith.extf", "arith.truncf", "arith.extsi", "arith.extui", "arith.trunci",
            "arith.sitofp", "arith.uitofp", "arith.index_cast", "arith.index_castui",
        ),
        _convert,
    ),
    "arith.fptosi": _from_float,
    "arith.fptoui": _from_float,
    "arith.bitcast": _bitcast,
    "irees.ldexp": lambda e, op, n: e.scaled(op, n),
    "irees.scalef": lambda e, op, n: e.scaled(op, n),
    "irees.keep": lambda e, op, n: n[0],
    "math.absi": _absi,
    "math.ctpop": _bit_count("ctpop"),
    "math.ctlz": _bit_count("ctlz"),
    "math.cttz": _bit_count("cttz"),
    "math.isnan": _classify("isnan({a}) != 0"),
    "math.isinf": _classify("isinf({a}) != 0"),
    "math.isfinite": _classify("isfinite({a}) != 0"),
    "math.fpowi": _fpowi,
    "math.ipowi": lambda e, op, n: f"({scalar(op.results[0].type)})irees_ipowi({n[0]}, {n[1]})",
    "math.clampf": _clampf,
}  # fmt: skip
"""How each value op is printed."""
