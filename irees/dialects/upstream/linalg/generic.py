"""
Patches of xDSL's linalg ops: parsing, verification and memory effects.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects.builtin import ArrayAttr, ShapedType, StringAttr
from xdsl.dialects.linalg import abstract_ops, ops
from xdsl.ir import Region, SSAValue
from xdsl.irdl import base, traits_def
from xdsl.irdl.operations import OptPropertyDef
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .._effects import DestinationStyleEffects
from . import regions
from .attrs import TypeFnAttr
from .bodies import (
    Body,
    contraction,
    copy,
    element_types,
    elementwise,
    hidden_region,
    max_signed,
    quantized,
)
from .structured import parse_named, print_named
from .syntax import (
    parse_arrow_types,
    parse_int_list,
    parse_operand_group,
    print_arrow_types,
    print_operand_group,
    to_iterator_types,
)


def parse_generic(cls: type[ops.GenericOp], parser: Parser) -> ops.GenericOp:
    """Parses `linalg.generic {maps, iterators} ins(.) outs(.) attrs = {.} { region } -> types`."""
    start = parser.pos
    attributes = dict(parser.parse_optional_attr_dict())
    maps = attributes.pop("indexing_maps", None)
    iterators = attributes.pop("iterator_types", None)
    if not isinstance(maps, ArrayAttr) or iterators is None:
        parser.raise_error(
            "expected indexing_maps and iterator_types for linalg.generic", start, parser.pos
        )
    iterators = to_iterator_types(parser, iterators)
    doc = attributes.pop("doc", None)
    library_call = attributes.pop("library_call", None)
    if not isinstance(doc, StringAttr | None) or not isinstance(library_call, StringAttr | None):
        parser.raise_error("expected doc and library_call to be strings", start, parser.pos)
    attributes.pop("operandSegmentSizes", None)

    ins = parse_operand_group(parser, "ins")
    outs = parse_operand_group(parser, "outs")
    if parser.parse_optional_keyword("attrs"):
        parser.parse_punctuation("=")
        attributes |= parser.parse_optional_attr_dict()
    body = parser.parse_region()
    op = cls(ins, outs, body, maps, iterators, parse_arrow_types(parser), doc, library_call)
    op.attributes |= attributes
    return op


def print_generic(op: ops.GenericOp, printer: Printer) -> None:
    """Prints a generic as `parse_generic` reads it."""
    printer.print_string(" {indexing_maps = ")
    printer.print_attribute(op.indexing_maps)
    printer.print_string(", iterator_types = [")
    printer.print_list(op.iterator_types, lambda it: printer.print_string_literal(it.data))
    printer.print_string("]")
    for name in ("doc", "library_call"):
        if (attr := op.properties.get(name)) is not None:
            printer.print_string(f", {name} = ")
            printer.print_attribute(attr)
    printer.print_string("}")
    print_operand_group(printer, "ins", op.inputs)
    print_operand_group(printer, "outs", op.outputs)
    if op.attributes:
        printer.print_string(" attrs =")
        printer.print_op_attributes(op.attributes)
    printer.print_string(" ")
    printer.print_region(op.body)
    print_arrow_types(printer, [result.type for result in op.res])


def _set_body(cls, body: Body, has_cast: bool = False) -> None:
    """Sets the scalar body of an xDSL class, and adds the `cast` property if MLIR has it."""

    def get_hidden_region(_cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        return hidden_region(body, inputs, outputs)

    cls.get_hidden_region = classmethod(get_hidden_region)
    cls.irees_body = staticmethod(body)
    if has_cast:
        cls.get_irdl_definition().properties["cast"] = OptPropertyDef(base(TypeFnAttr))


def _max_pool(args, unsigned):
    return max_signed(args[2], args[0])


def _verify_fill(op: ops.FillOp) -> None:
    op.get_irdl_definition().verify(op)
    if len(op.inputs) != 1 or len(op.outputs) != 1:
        raise VerifyException("expected one input and one output")
    if isinstance(op.inputs[0].type, ShapedType) and op.inputs[0].type.get_num_dims() != 0:
        raise VerifyException("expected the value to be a scalar")


def parse_permutation_like(keyword: str):
    """Returns the parser of `ins(%a : t) outs(%b : t) permutation = [..] attr-dict`."""

    def parse(cls, parser: Parser):
        ins = parse_operand_group(parser, "ins")
        outs = parse_operand_group(parser, "outs")
        if len(ins) != 1 or len(outs) != 1:
            parser.raise_error("expected one input and one init")
        numbers = parse_int_list(parser, keyword)
        from xdsl.dialects.builtin import DenseArrayBase, i64

        op = cls(ins[0], outs[0], DenseArrayBase.from_list(i64, numbers))
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    return classmethod(parse)


def _print_transpose(op: ops.TransposeOp, printer: Printer) -> None:
    print_operand_group(printer, "ins", op.inputs)
    print_operand_group(printer, "outs", op.outputs)
    printer.print_string(" permutation = ")
    with printer.in_square_brackets():
        printer.print_list(op.permutation.get_values(), printer.print_int)
    printer.print_op_attributes(op.attributes)


def _verify_transpose(op: ops.TransposeOp) -> None:
    op.get_irdl_definition().verify(op)
    source, init = op.inputs[0].type, op.outputs[0].type
    permutation = op.permutation.get_values()
    assert isinstance(source, ShapedType)
    assert isinstance(init, ShapedType)
    rank = source.get_num_dims()
    if sorted(permutation) != list(range(rank)) or init.get_num_dims() != rank:
        raise VerifyException("permutation must be one of the dims of input and init")
    for dim, from_dim in enumerate(permutation):
        if source.get_shape()[from_dim] != init.get_shape()[dim]:
            raise VerifyException(
                f"dim(result, {dim}) = {init.get_shape()[dim]} doesn't match "
                f"dim(input, permutation[{dim}]) = {source.get_shape()[from_dim]}"
            )


def add_effects(classes) -> None:
    """Declares the memory effects of linalg ops, so that CSE and DCE treat tensor ops as pure."""
    for cls in classes:
        if cls.name in ("linalg.yield", "linalg.index"):
            cls.traits.add_trait(Pure())
        elif not any(isinstance(trait, DestinationStyleEffects) for trait in cls.traits.traits):
            cls.traits.add_trait(DestinationStyleEffects())


def _verify_index(op: ops.IndexOp) -> None:
    structured = op.parent_op()
    if not isinstance(structured, abstract_ops.LinalgStructuredOperation):
        raise VerifyException("expected parent op with LinalgOp interface")
    loops, dim = len(structured.get_iterator_types()), op.dim.value.data
    if not 0 <= dim < loops:
        raise VerifyException(
            f"expected dim ({dim}) to be lower than the number of loops ({loops}) of the "
            "enclosing LinalgOp"
        )


@cache
def patch() -> None:
    """Patches xDSL's linalg classes in place, once."""
    ops.GenericOp.parse = classmethod(parse_generic)
    ops.GenericOp.print = print_generic
    abstract_ops.NamedOperation.parse = classmethod(parse_named)
    abstract_ops.NamedOperation.print = print_named
    abstract_ops.NamedOperation.body_arg_types = staticmethod(element_types)
    _set_body(abstract_ops.ConvOperation, contraction)
    _set_body(ops.MatmulOp, contraction, has_cast=True)
    _set_body(ops.QuantizedMatmulOp, quantized)
    _set_body(ops.PoolingNchwMaxOp, _max_pool)
    _set_body(ops.FillOp, copy)
    _set_body(ops.CopyOp, copy, has_cast=True)
    ops.FillOp.verify_ = _verify_fill
    # Any structured op may contain linalg.index; xDSL allows it in linalg.generic only.
    ops.IndexOp.traits = traits_def()
    ops.IndexOp.verify_ = _verify_index
    for cls in (
        ops.AddOp,
        ops.SubOp,
        ops.MulOp,
        ops.MaxOp,
        ops.MinOp,
        ops.ExpOp,
        ops.LogOp,
        ops.SqrtOp,
        ops.SelectOp,
    ):
        _set_body(cls, elementwise(cls.name.removeprefix("linalg.")))
    ops.TransposeOp.parse = parse_permutation_like("permutation")
    ops.TransposeOp.print = _print_transpose
    ops.TransposeOp.verify_ = _verify_transpose
    ops.BroadcastOp, ops.ReduceOp = regions.BroadcastOp, regions.ReduceOp
    for cls in vars(ops).values():
        if (
            isinstance(cls, type)
            and getattr(cls, "name", "").startswith("linalg.")
            and hasattr(cls, "traits")
        ):
            add_effects([cls])


__all__ = ["add_effects", "patch"]
