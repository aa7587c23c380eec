"""
C types of MLIR types.

i1 is a byte in memory and as a scalar, and a 32-bit mask as a vector lane. A load makes it 0 or 1,
whatever byte a caller passes, since accesses are proved with these bounds. bf16 is stored as its
bits in uint16_t, index is int64_t. `irees_f16`, `irees_c64` and vectors are native C types or
C++ structs, as each backend's header defines. Names never come from the program.
"""

from __future__ import annotations

from xdsl.dialects.builtin import (
    BFloat16Type,
    ComplexType,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    VectorType,
)
from xdsl.ir import Attribute

from irees.errors import UnsupportedError

_FLOATS: dict[type[Attribute], tuple[str, str, int]] = {
    Float16Type: ("irees_f16", "f16", 2),
    BFloat16Type: ("uint16_t", "bf16", 2),
    Float32Type: ("float", "f32", 4),
    Float64Type: ("double", "f64", 8),
}


_COMPLEX = {4: ("irees_c64", "c64", 8), 8: ("irees_c128", "c128", 16)}


def complex_of(kind: Attribute) -> tuple[str, str, int] | None:
    """
    C type, short name and bytes of a complex type, None for other types. Raises UnsupportedError
    for complex elements other than f32 and f64.
    """
    if not isinstance(kind, ComplexType):
        return None
    part = _FLOATS.get(type(kind.element_type))
    if part is None or part[2] not in _COMPLEX:
        raise UnsupportedError(f"no C type for {kind}", hint="use complex<f32> or complex<f64>")
    return _COMPLEX[part[2]]


def is_float(kind: Attribute) -> bool:
    """Whether a scalar type is a float type with a C form."""
    return type(kind) in _FLOATS


def int_width(kind: Attribute) -> int:
    """Bits of the C integer that holds an integer or index; i1 counts as 8."""
    if isinstance(kind, IndexType):
        return 64
    if isinstance(kind, IntegerType):
        for width in (8, 16, 32, 64):
            if kind.width.data <= width:
                return width
    raise UnsupportedError(f"no C type for {kind}")


def is_bool(kind: Attribute) -> bool:
    """Whether a type is i1."""
    return isinstance(kind, IntegerType) and kind.width.data == 1


def scalar(kind: Attribute) -> str:
    """C type of a scalar."""
    if type(kind) in _FLOATS:
        return _FLOATS[type(kind)][0]
    if (pair := complex_of(kind)) is not None:
        return pair[0]
    if is_bool(kind):
        return "uint8_t"
    return f"int{int_width(kind)}_t"


def short(kind: Attribute) -> str:
    """Short name of a scalar type: f32, i64, ..."""
    if type(kind) in _FLOATS:
        return _FLOATS[type(kind)][1]
    if (pair := complex_of(kind)) is not None:
        return pair[1]
    return f"i{int_width(kind)}"


def size_of(kind: Attribute) -> int:
    """Bytes of an element in memory."""
    if type(kind) in _FLOATS:
        return _FLOATS[type(kind)][2]
    if (pair := complex_of(kind)) is not None:
        return pair[2]
    return int_width(kind) // 8


def vector(kind: VectorType) -> str:
    """C type of a vector of one dim. Raises UnsupportedError unless it has 2^n lanes."""
    element, shape = kind.element_type, kind.get_shape()
    lanes = shape[0] if len(shape) == 1 else 0
    if lanes < 1 or lanes & (lanes - 1):
        raise UnsupportedError(
            f"{kind} has no type in C",
            hint="use vectors of one dim, whose size is a power of two",
        )
    return vector_name("i32" if is_bool(element) else short(element), lanes)


def widths_between(source: Attribute, target: Attribute) -> list[int]:
    """
    Intermediate integer widths of a vector conversion from an integer type to another type.

    gcc 12 moves lanes one by one in a conversion to a width four times as large or small, or to
    floats, in one step.
    """
    if is_float(source) or is_bool(source) or is_bool(target):
        return []
    begin, end = int_width(source), 64 if is_float(target) else int_width(target)
    between = [width for width in (16, 32) if min(begin, end) < width < max(begin, end)]
    return between if begin < end else between[::-1]


def vector_name(element: str, lanes: int) -> str:
    """Name of a vector type by element and lanes."""
    return f"v{lanes}{element}"


def c_type(kind: Attribute) -> str:
    """C type of a scalar or vector value."""
    return vector(kind) if isinstance(kind, VectorType) else scalar(kind)


_ELEMENTS = {"f32": "float", "f64": "double", "f16": "irees_f16", "bf16": "uint16_t"}


def vector_typedef(name: str) -> str:
    """The macro that defines a vector type by its name."""
    digits = "".join(c for c in name[1:] if c.isdigit() or c in "fiu")
    lanes = ""
    for c in digits:
        if not c.isdigit():
            break
        lanes += c
    element = name[1 + len(lanes) :]
    if element[0] == "u":
        c_name = f"uint{element[1:]}_t"
    elif element[0] == "i":
        c_name = f"int{element[1:]}_t"
    else:
        c_name = _ELEMENTS[element]
    macro = {
        "f16": "IREES_VECTOR_HALF",
        "f32": "IREES_VECTOR_FLOAT",
        "f64": "IREES_VECTOR_DOUBLE",
    }.get(element, "IREES_VECTOR")
    return f"{macro}({name}, {c_name}, {lanes})"
