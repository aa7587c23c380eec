"""C expressions of arithmetic on complex numbers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ComplexType, Float32Type
from xdsl.ir import Attribute, Operation

COMPLEX = {
    "complex.create": "irees_complex_{c}({0}, {1})",
    "complex.re": "IREES_REAL({0})",
    "complex.im": "IREES_IMAGINARY({0})",
    "complex.abs": "irees_cabs_{c}({0})",
    "complex.angle": "irees_carg_{c}({0})",
    "complex.add": "{0} + {1}",
    "complex.sub": "{0} - {1}",
    "complex.mul": "irees_cmul_{c}({0}, {1})",
    "complex.div": "irees_cdiv_{c}({0}, {1})",
    "complex.neg": "-{0}",
    "complex.conj": "irees_conj_{c}({0})",
    "complex.exp": "irees_cexp_{c}({0})",
    "complex.log": "irees_clog_{c}({0})",
    "complex.sqrt": "irees_csqrt_{c}({0})",
    "complex.sin": "irees_csin_{c}({0})",
    "complex.cos": "irees_ccos_{c}({0})",
    "complex.tanh": "irees_ctanh_{c}({0})",
    "complex.pow": "irees_cpow_{c}({0}, {1})",
    "complex.eq": "{0} == {1}",
    "complex.neq": "{0} != {1}",
}
"""Op name => C template: operands by number, and `{c}`, the short name of the type."""


def complex_expression(op: Operation, names: Sequence[str]) -> str:
    """The expression for an op of `COMPLEX`."""
    return COMPLEX[op.name].format(*names, c=_short(op.operands[0].type))


def complex_literal(real: str, imaginary: str, kind: ComplexType) -> str:
    """A number of both parts, which are texts of C."""
    return COMPLEX["complex.create"].format(real, imaginary, c=_short(kind))


def _short(kind: Attribute) -> str:
    """The short name of a complex type, or of the complex type with parts of a float type."""
    single = isinstance(getattr(kind, "element_type", kind), Float32Type)
    return "c64" if single else "c128"
