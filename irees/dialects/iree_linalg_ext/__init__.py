"""
`iree_linalg_ext`: tensor ops that linalg cannot express, with IREE's names, syntax and semantics
(`compiler/src/iree/compiler/Dialect/LinalgExt/IR/LinalgExtOps.td`).
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, IndexType, IntegerAttr, TensorType, i64
from xdsl.ir import Dialect, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from ..upstream._effects import DestinationStyleEffects
from ..upstream.linalg.syntax import (
    parse_arrow_types,
    parse_operand_group,
    print_arrow_types,
    print_operand_group,
)
from .attention import AttentionOp, ExpReductionOp, OnlineAttentionOp
from .attention import RegionUnits as RegionUnits
from .attrs import IteratorTypeAttr, SplitReductionMappingAttr
from .base import LinalgExtOperation, check_region
from .convolution import (
    FftOp,
    Im2colOp,
    WinogradFilterTransformOp,
    WinogradInputTransformOp,
    WinogradOutputTransformOp,
)
from .indexing import GatherOp, MapLoadOp, MapStoreOp, ScatterOp
from .sorting import ArgCompareOp, ScanOp, SortOp, TopkOp, TopkV2Op


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends the region of an iree_linalg_ext op (IREE: iree_linalg_ext.yield)."""

    name = "iree_linalg_ext.yield"
    arguments = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict ($arguments^ `:` type($arguments))?"

    def __init__(self, *values: SSAValue | Operation):
        super().__init__(operands=[values])


@irdl_op_definition
class IndexOp(IRDLOperation):
    """The index of a loop of the enclosing op (IREE: iree_linalg_ext.index)."""

    name = "iree_linalg_ext.index"
    dim = prop_def(IntegerAttr.constr(i64))
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "$dim attr-dict `:` type($result)"

    def __init__(self, dim: int):
        super().__init__(properties={"dim": IntegerAttr(dim, i64)}, result_types=[IndexType()])


@irdl_op_definition
class CustomOp(LinalgExtOperation):
    """
    A user-defined fused computation on tiles. Maps give each operand's tile per iteration, map
    symbols stand for whole dims, and the region computes on the tiles
    (IREE: iree_linalg_ext.custom_op).
    """

    name = "iree_linalg_ext.custom_op"
    NUM_OUTS: ClassVar = (0, 1 << 30)
    ins_ = var_operand_def()
    outs_ = var_operand_def(TensorType)
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])
    iterator_types = prop_def(ArrayAttr[IteratorTypeAttr])
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(DestinationStyleEffects())

    @property
    def inputs(self):
        return self.ins_

    @property
    def outputs(self):
        return self.outs_

    @classmethod
    def parse(cls, parser: Parser):
        start = parser.pos
        given = dict(parser.parse_optional_attr_dict())
        maps, iterators = given.pop("indexing_maps", None), given.pop("iterator_types", None)
        if maps is None or iterators is None:
            parser.raise_error("expected indexing_maps and iterator_types", start, parser.pos)
        extra = parser.parse_optional_attr_dict_with_keyword()
        ins, outs = parse_operand_group(parser, "ins"), parse_operand_group(parser, "outs")
        body = parser.parse_region()
        return cls.build(
            operands=[ins, outs],
            result_types=[parse_arrow_types(parser)],
            properties={"indexing_maps": maps, "iterator_types": iterators},
            attributes={**given, **(extra.data if extra is not None else {})},
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" {indexing_maps = ")
        printer.print_attribute(self.indexing_maps)
        printer.print_string(", iterator_types = ")
        printer.print_attribute(self.iterator_types)
        printer.print_string("}")
        if self.attributes:
            printer.print_string(" attributes")
            printer.print_op_attributes(self.attributes)
        print_operand_group(printer, "ins", self.inputs)
        print_operand_group(printer, "outs", self.outputs)
        printer.print_string(" ")
        printer.print_region(self.body)
        print_arrow_types(printer, [result.type for result in self.results], parens=False)

    def verify_(self) -> None:
        operands = (*self.inputs, *self.outputs)
        if len(self.indexing_maps) != len(operands):
            raise VerifyException("expected an indexing map for each operand")
        loops = len(self.iterator_types)
        if any(m.data.results and m.data.num_dims != loops for m in self.indexing_maps):
            raise VerifyException("expected every indexing map to have one dim per iterator type")
        args = [arg.type for arg in self.body.block.args]
        if len(args) != len(operands):
            raise VerifyException("expected one region argument per operand")
        check_region(self.body, args, args[len(self.inputs) :], "iree_linalg_ext.yield")
        self.verify_inits()


IreeLinalgExt = Dialect(
    "iree_linalg_ext",
    [
        YieldOp,
        IndexOp,
        SortOp,
        TopkOp,
        TopkV2Op,
        ArgCompareOp,
        ScanOp,
        ScatterOp,
        GatherOp,
        MapLoadOp,
        MapStoreOp,
        AttentionOp,
        OnlineAttentionOp,
        ExpReductionOp,
        FftOp,
        Im2colOp,
        WinogradInputTransformOp,
        WinogradFilterTransformOp,
        WinogradOutputTransformOp,
        CustomOp,
    ],
    [IteratorTypeAttr, SplitReductionMappingAttr],
)
