"""
Named linalg ops, each defined by one line.

`named("conv_2d_nhwc_hwcf", "nyxfhwc", "nYXc,hwcf->nyxf")` lists the loops in the order of MLIR's
iteration domain, then the loop of each dim per operand. A loop is parallel if the result has it,
and a reduction otherwise. `Z Y X` are windowed image dims: `Y` is `y * stride + h * dilation`, with
`(z, d)`, `(y, h)`, `(x, w)` as the pairs of output and window loops. The k-th pair uses the k-th
stride and dilation. The body is one of `bodies.BODIES`.

Each op is an xDSL `LinalgStructuredOperation`, so code that works on maps, iterators and body, such
as generalization, handles it without naming it.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseIntElementsAttr,
    DenseIntOrFPElementsAttr,
    ShapedType,
    TensorType,
    i64,
)
from xdsl.dialects.linalg.abstract_ops import NamedOperation
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.irdl import irdl_op_definition, opt_prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .attrs import TypeFn, TypeFnAttr
from .bodies import BODIES, Body, elementwise, hidden_region
from .syntax import parse_arrow_types, parse_operand_group, print_arrow_types, print_operand_group

_WINDOWS = {"Z": ("z", "d"), "Y": ("y", "h"), "X": ("x", "w")}
PARALLEL = IteratorTypeAttr.parallel()
REDUCTION = IteratorTypeAttr.reduction()


@dataclass(frozen=True)
class Spec:
    """One line of the table. `maps` is empty for ops of any rank."""

    name: str
    loops: str
    maps: tuple[str, ...]
    body: Body = field(repr=False)
    strided: bool = False
    doc: str = ""

    @property
    def num_windows(self) -> int:
        """The number of strides, which is also that of dilations."""
        return sum(letter in _WINDOWS for letter in self.maps[0]) if self.maps else 0


@cache
def iterator_types(loops: str, output: str) -> ArrayAttr[IteratorTypeAttr]:
    """Returns the iterator types: parallel for loops of the output, reduction for all others."""
    return ArrayAttr([PARALLEL if loop in output else REDUCTION for loop in loops])


@cache
def indexing_maps(
    loops: str, maps: tuple[str, ...], strides: tuple[int, ...], dilations: tuple[int, ...]
) -> ArrayAttr[AffineMapAttr]:
    """Returns the indexing maps of a spec for these strides and dilations."""
    dims = {loop: AffineDimExpr(index) for index, loop in enumerate(loops)}
    windows = [letter for letter in maps[0] if letter in _WINDOWS]

    def expr(letter: str) -> AffineExpr:
        if letter not in _WINDOWS:
            return dims[letter]
        out, window = (dims[loop] for loop in _WINDOWS[letter])
        k = windows.index(letter)
        return scaled(out, strides[k]) + scaled(window, dilations[k])

    def scaled(dim: AffineExpr, factor: int) -> AffineExpr:
        return dim if factor == 1 else dim * factor

    return ArrayAttr(
        [AffineMapAttr(AffineMap(len(loops), 0, tuple(expr(letter) for letter in m))) for m in maps]
    )


def int_elements(values: Sequence[int]) -> DenseIntElementsAttr:
    """Returns `dense<[1, 2]> : tensor<2xi64>`."""
    return DenseIntOrFPElementsAttr.from_list(TensorType(i64, [len(values)]), list(values))


def ints_of(attr: Attribute | None, count: int) -> tuple[int, ...]:
    """Returns the `count` numbers of a strides or dilations attribute; all 1 if it is absent."""
    if attr is None:
        return (1,) * count
    assert isinstance(attr, DenseIntOrFPElementsAttr)
    return tuple(int(value) for value in attr.get_values())


def is_unsigned(attr: Attribute | None) -> bool:
    """Whether a `cast` attribute is `cast_unsigned`."""
    return isinstance(attr, TypeFnAttr) and attr.data == TypeFn.CAST_UNSIGNED


class TableOperation(NamedOperation, ABC):
    """A named op that a `Spec` describes."""

    PRINT_ATTRS_IN_FRONT: ClassVar[bool] = True
    SPEC: ClassVar[Spec]

    cast = opt_prop_def(TypeFnAttr)

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue] = (),
        res: Sequence[Attribute] | None = None,
        attributes: Mapping[str, Attribute] | None = None,
        **properties: Attribute | None,
    ):
        if res is None:
            res = [value.type for value in outputs if isinstance(value.type, TensorType)]
        unsigned = is_unsigned(properties.get("cast"))
        super().__init__(
            ins=inputs,
            outs=outputs,
            result_types=[list(res)],
            properties=properties,
            attributes=attributes,
            hidden_region=hidden_region(self.SPEC.body, inputs, outputs, unsigned),
        )

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        return hidden_region(cls.SPEC.body, inputs, outputs)

    def _indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        spec = self.SPEC
        if not spec.maps:
            rank = _rank(self.outputs[0] if self.outputs else self.operands[-1])
            identity = AffineMapAttr(AffineMap.identity(rank))
            scalar = AffineMapAttr(AffineMap(rank, 0, ()))
            return ArrayAttr(
                [identity if isinstance(v.type, ShapedType) else scalar for v in self.operands]
            )
        count = spec.num_windows
        strides = ints_of(self.properties.get("strides"), count)
        dilations = ints_of(self.properties.get("dilations"), count)
        return indexing_maps(spec.loops, spec.maps, strides, dilations)

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        custom = self.properties.get("indexing_maps")
        return custom if isinstance(custom, ArrayAttr) else self._indexing_maps()

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        return tuple(attr.data for attr in self._indexing_maps())

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        spec = self.SPEC
        if not spec.maps:
            return ArrayAttr(
                [PARALLEL] * _rank(self.outputs[0] if self.outputs else self.operands[-1])
            )
        return iterator_types(spec.loops, spec.maps[-1])

    def verify_(self) -> None:
        count = self.SPEC.num_windows if self.SPEC.strided else 0
        for name in ("strides", "dilations"):
            if (attr := self.properties.get(name)) is None:
                continue
            assert isinstance(attr, DenseIntOrFPElementsAttr)
            if attr.type.get_shape() != (count,):
                raise VerifyException(f"{name} must have {count} element(s)")
            if any(value < 1 for value in ints_of(attr, count)):
                raise VerifyException(f"{name} must be positive")
        if self.SPEC.maps and len(self.operands) != len(self.SPEC.maps):
            raise VerifyException(
                f"expected {len(self.SPEC.maps)} operands, but got {len(self.operands)}"
            )
        if not self.outputs:
            raise VerifyException("expected at least one output operand")
        super().verify_()


def _rank(value: SSAValue) -> int:
    return value.type.get_num_dims() if isinstance(value.type, ShapedType) else 0


class StridedOperation(TableOperation, ABC):
    """A convolution or pooling, with strides and dilations (1 when absent)."""

    strides = opt_prop_def(DenseIntElementsAttr)
    dilations = opt_prop_def(DenseIntElementsAttr)


class MappedOperation(TableOperation, ABC):
    """A contraction with optional custom maps, to transpose or broadcast its inputs."""

    indexing_maps = opt_prop_def(ArrayAttr[AffineMapAttr])

    def verify_(self) -> None:
        if self.indexing_maps is not None and len(self.indexing_maps) != len(self.operands):
            raise VerifyException(f"expected {len(self.operands)} indexing_maps")
        super().verify_()


def named(
    name: str,
    loops: str = "",
    maps: str = "",
    body: str | Body = "contraction",
    doc: str = "",
    *,
    base: type[TableOperation] | None = None,
) -> type[TableOperation]:
    """
    Defines the op `linalg.<name>`; see the module docstring for the notation.

    The base is by default `StridedOperation` for an op with windows, else `TableOperation`.
    """
    operands = tuple(maps.replace("->", ",").split(",")) if maps else ()
    if base is None:
        windows = any(letter in _WINDOWS for letter in maps)
        base = StridedOperation if windows else TableOperation
    body = BODIES[body] if isinstance(body, str) else body
    spec = Spec(name, loops, operands, body, issubclass(base, StridedOperation), doc)
    class_name = "".join(part.capitalize() for part in name.split("_")) + "Op"
    what = doc or "A named op of linalg"
    where = f"`{maps}` over the loops `{loops}`" if maps else "the same at every rank"
    namespace = {
        "name": f"linalg.{name}",
        "SPEC": spec,
        "__annotations__": {"SPEC": ClassVar[Spec]},
        "__doc__": f"{what}: {where} (MLIR: linalg.{name}).",
        "__module__": __name__,
    }
    return irdl_op_definition(type(class_name, (base,), namespace))


def elementwise_op(function: str, doc: str) -> type[TableOperation]:
    """Defines `linalg.<function>`, which applies a scalar function elementwise."""
    return named(function, body=elementwise(function), doc=doc)


def parse_named(cls: type[NamedOperation], parser: Parser) -> NamedOperation:
    """
    Parses `op (indexing_maps = [...])? attr-dict ins(...) outs(...) (attrs = {...})? (-> types)?`:
    all syntaxes that MLIR has had for named ops, for xDSL's classes and ours.
    """
    start = parser.pos
    properties: dict[str, Attribute] = {}
    if parser.parse_optional_keyword("indexing_maps"):
        parser.parse_punctuation("=")
        properties["indexing_maps"] = parser.parse_attribute()
    attributes = dict(parser.parse_optional_attr_dict())
    if parser.parse_optional_keyword("indexing_maps"):
        parser.parse_punctuation("=")
        properties["indexing_maps"] = parser.parse_attribute()
    ins = parse_operand_group(parser, "ins")
    outs = parse_operand_group(parser, "outs")
    if parser.parse_optional_keyword("indexing_maps"):
        parser.parse_punctuation("=")
        properties["indexing_maps"] = parser.parse_attribute()
    if parser.parse_optional_keyword("attrs"):
        parser.parse_punctuation("=")
    attributes |= parser.parse_optional_attr_dict()
    result_types = parse_arrow_types(parser)

    attributes.pop("operandSegmentSizes", None)
    definition = cls.get_irdl_definition()
    for key in list(attributes):
        if key in definition.properties:
            properties[key] = attributes.pop(key)
    for key in ("strides", "dilations"):
        if (
            key in definition.properties
            and key not in properties
            and not issubclass(cls, TableOperation)
        ):
            properties[key] = int_elements([1, 1])
    try:
        body = (
            cls.SPEC.body if issubclass(cls, TableOperation) else getattr(cls, "irees_body", None)
        )
        if body is not None:
            region = hidden_region(body, ins, outs, is_unsigned(properties.get("cast")))
        else:
            region = cls.get_hidden_region(ins, outs)
        op = cls.build(
            operands=(ins, outs),
            result_types=(result_types,),
            properties=properties,
            attributes=attributes,
            regions=(region,),
        )
    except (ValueError, IndexError, AssertionError, AttributeError, VerifyException) as error:
        parser.raise_error(f"{cls.name}: operands do not fit: {error}", start, parser.pos)
    return op


_HIDDEN = ("linalg.memoized_indexing_maps", "operandSegmentSizes", "indexing_maps")


def print_named(op: NamedOperation, printer: Printer) -> None:
    """Prints a named op in MLIR's current syntax, which `parse_named` reads."""
    maps = op.properties.get("indexing_maps")
    if maps is not None and maps != default_maps(type(op)):
        printer.print_string(" indexing_maps = ")
        printer.print_attribute(maps)
    attributes = {k: v for k, v in {**op.properties, **op.attributes}.items() if k not in _HIDDEN}
    if attributes:
        printer.print_op_attributes(attributes)
    print_operand_group(printer, "ins", op.inputs)
    print_operand_group(printer, "outs", op.outputs)
    print_arrow_types(printer, [result.type for result in op.res])


@cache
def default_maps(cls: type[NamedOperation]) -> Attribute | None:
    """Returns the default maps of an op class, or None if they depend on the operands."""
    if issubclass(cls, TableOperation):
        spec = cls.SPEC
        if not spec.maps or spec.strided:
            return None
        ones = (1,) * max(1, spec.num_windows)
        return indexing_maps(spec.loops, spec.maps, ones, ones)
    definition = cls.get_irdl_definition().properties.get("indexing_maps")
    return definition.default_value if definition is not None else None


__all__ = [
    "MappedOperation",
    "Spec",
    "StridedOperation",
    "TableOperation",
    "elementwise_op",
    "int_elements",
    "named",
]
