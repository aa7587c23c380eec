"""
Expands exp, log, expm1, log1p, tanh, erf, small powers and the like into arithmetic, on f32 and
f64.

libm calls do not vectorize here, and their results differ between machines. A polynomial vectorizes
at every width and, unless contracted to FMAs, has the same bits everywhere. Ops that are not listed
stay one call per lane.

| op | method | largest error seen on f32, f64, ULP |
|---|---|---|
| exp | 2^n times a polynomial on [-ln2/2, ln2/2] (minimax, 3e-9; 6e-20) | 1, 1 |
| exp, with table | 2^n, by 16 powers, times a degree 3 polynomial (minimax, 2e-9) | 1 |
| exp2 | 2^n times a polynomial, as exp | 1, 1 |
| expm1 | 2^n q + (2^n - 1) with a polynomial q | 2, 2 |
| log | exponent and polynomial of m, m / (2 + m) on [sqrt(1/2), sqrt(2)] (Cephes; fdlibm) | 1, 1 |
| log2, log10 | the same, scaled; the logarithms of powers of two are exact in log2 | 2, 3 |
| log1p | log(1 + x), and the rounding error of 1 + x over it (Kahan) | 2, 1 |
| tanh | odd polynomial below 0.625 (Cephes), else through exp; through expm1 | 2, 2 |
| erf | rational on [-4, 4]; polynomial on [-1, 1], else 1 - erfc | 37 (4 above 1e-30), 1 |
| erfc | exp(-x^2) and a polynomial of (x - 2.5) / (x + 2.5), 1 - erf below 1/2 | 4, 4 |
| rsqrt | 1 / sqrt | 1, 1 |
| isnan, isinf, isfinite | comparisons of x with itself, of abs(x) with infinity | 0, 0 |
| powf with exponent 2, 3; fpowi with 2, 3 | products | 1, 1 |
| powf on f32 | exp2(y log2(abs(x))) in f64 | 1 |
| sin, cos | polynomials after Cody and Waite's reduction; libm beyond 4,096, 2^20 | 2, 1 |
| tan | an odd polynomial after the same reduction (Cephes); sin / cos | 4, 2 |
| sinh, cosh | through expm1, exp | 4, 2 |
| asin, acos, atan, atan2 | odd polynomials (Cephes; minimax) | 4, 2 |
| asinh, acosh, atanh | through log1p | 2, 2 |
| remf of vectors | x - trunc(x / y) y, fused; libm for quotients above 2^23, 2^52 | 0, 0 |
| maxnumf, minnumf with a second operand that is not NaN | compare and select | 0 |

    %y = math.exp %x : vector<16xf32>
  =>
    %t = %x * log2(e) + 1.5 * 2^23 ; %n = %t - 1.5 * 2^23 ; %r = %x - %n * ln2 ; p(%r) * 2^n

The table form of exp is for CPU targets that look up lanes of a vector and scale by a power of two
in one instruction each (`looks_up_lanes` of `#irees.target`: AVX-512). There %n is a multiple of
1/16, and a register holds sixteen powers of two (after Tang, "Table-driven implementation of the
exponential function", 1989). It takes 7 FMA-unit operations instead of 9, and no clamping.

    %m = fma(%x, log2(e), 1.5 * 2^19) ; %n = %m - 1.5 * 2^19 ; %r = %n - %x * log2(e) in two fma
    irees.scalef %t * 2^-%r, %n with %t = irees.lookup %powers[bits of %m]

Scaling overflows and underflows correctly for any %n if the polynomial is positive: an `andi`
clears the top exponent bit of %r, so |%r| < 2 always. `fp=strict` does not use the table, since its
bits must not depend on the target.

On GPUs, the ops in `native_math` of the target are kept: CUDA computes `expf` in 8 instructions
instead of 18, with the special function unit, and each lane takes its own way through `sinf` (CUDA
C++ Programming Guide, "Mathematical Functions"). `fp=strict` expands them there too, so that their
bits match a CPU; angles above 4,096 are the exception.

NaNs, infinities and overflow are handled as in libm. The table is checked over samples of all
exponents by `tests/transforms/codegen/common/test_expand_math.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    ModuleOp,
    VectorType,
)
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects.irees_target import is_strict, target_of
from irees.dialects.upstream.arith import RemFOp
from irees.transforms.codegen.common.expand_math.errors import erf, erfc
from irees.transforms.codegen.common.expand_math.exponentials import (
    cosh,
    exp,
    exp2,
    expm1,
    sinh,
    tanh,
)
from irees.transforms.codegen.common.expand_math.float_facts import is_number
from irees.transforms.codegen.common.expand_math.logarithms import (
    acosh,
    asinh,
    atanh,
    log,
    log1p,
    log2,
    log10,
)
from irees.transforms.codegen.common.expand_math.powers import power, small_power
from irees.transforms.codegen.common.expand_math.remainders import remainder
from irees.transforms.codegen.common.expand_math.trigonometry import (
    acos,
    asin,
    atan,
    atan2,
    cos,
    for_small,
    sin,
    tan,
)
from irees.transforms.utils.formula import Formula


def pick(op: Operation) -> SSAValue | None:
    """maxnumf(x, y)  =>  x > y ? x : y if y is not NaN; minnumf likewise"""
    x, y = op.operands
    if not is_number(y):
        return None
    f = Formula(op)
    return f.select(f.less(y, x) if isinstance(op, arith.MaxnumfOp) else f.less(x, y), x, y)


FORMULAS: dict[str, Callable[[Formula, SSAValue], SSAValue]] = {
    "math.acos": acos,
    "math.acosh": acosh,
    "math.asin": asin,
    "math.asinh": asinh,
    "math.atan": atan,
    "math.atanh": atanh,
    "math.cosh": cosh,
    "math.exp": exp,
    "math.exp2": exp2,
    "math.expm1": expm1,
    "math.log": log,
    "math.log10": log10,
    "math.log1p": log1p,
    "math.log2": log2,
    "math.sinh": sinh,
    "math.tanh": tanh,
    "math.erf": erf,
    "math.erfc": erfc,
    "math.rsqrt": lambda f, x: f.div(f.number(1.0), f.sqrt(x)),
    "math.isnan": Formula.is_nan,
    "math.isinf": lambda f, x: f.equal(f.absolute(x), inf),
    "math.isfinite": lambda f, x: f.less(f.absolute(x), inf),
}


PERIODIC = {"math.cos": cos, "math.sin": sin, "math.tan": tan}
"""Formulas for angles of few turns."""


@dataclass(frozen=True)
class Abilities:
    """
    Whether a target looks up lanes in a vector, whether it has fused multiply-adds, and the size of
    a vector of f64 in bytes, 0 if f64 is slow.
    """

    lookups: bool = False
    fuses: bool = False
    vector_bytes: int = 0


def is_double(op: Operation) -> bool:
    """Whether the first operand of an op is f64 or a vector of it."""
    kind = op.operands[0].type
    element = kind.element_type if isinstance(kind, VectorType) else kind
    return isinstance(element, Float64Type)


def expand(op: Operation, able: Abilities) -> SSAValue | None:
    """Expands one op; returns its replacement, or None to keep the op."""
    if isinstance(op, RemFOp):
        return remainder(op) if able.fuses else None
    if isinstance(op, arith.MaxnumfOp | arith.MinnumfOp):
        return pick(op)
    if op.name not in (*FORMULAS, *PERIODIC, "math.atan2", "math.powf", "math.fpowi"):
        return None
    kind = op.operands[0].type
    element = kind.element_type if isinstance(kind, VectorType) else kind
    if not isinstance(element, Float32Type | Float64Type):
        return None
    if op.name in FORMULAS:
        return FORMULAS[op.name](Formula(op, able.lookups), op.operands[0])
    if op.name in PERIODIC:
        return for_small(op, PERIODIC[op.name])
    if op.name == "math.atan2":
        return atan2(Formula(op), *op.operands)
    small = small_power(op)
    return power(op, able.vector_bytes) if small is None and op.name == "math.powf" else small


@dataclass(frozen=True)
class ExpandMathPass(ModulePass):
    """Expands transcendental functions on f32 to polynomials."""

    name = "irees-expand-math"

    @staticmethod
    def _stays(op: Operation, native: tuple[str, ...]) -> bool:
        """
        Whether the target has a native form of an op: on a GPU all of f64, of maxima those with the
        `nsz` flag.
        """
        if isinstance(op, arith.MaxnumfOp | arith.MinnumfOp):
            flags = op.fastmath.data if op.fastmath else ()
            return op.name in native and arith.FastMathFlag.NO_SIGNED_ZEROS in flags
        return op.name in native or (bool(native) and bool(op.operands) and is_double(op))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target, strict = target_of(op), is_strict(op)
        native = target.gpu.native_math if target.gpu is not None and not strict else ()
        abilities = Abilities(
            lookups=target.gpu is None and target.looks_up_lanes and not strict,
            fuses=target.gpu is None and target.fuses_multiply_adds,
            vector_bytes=target.vector_bytes if target.gpu is None or strict else 0,
        )
        for inner in list(op.walk()):
            result = None if self._stays(inner, native) else expand(inner, abilities)
            if result is not None:
                Rewriter.replace_op(inner, [], [result])
