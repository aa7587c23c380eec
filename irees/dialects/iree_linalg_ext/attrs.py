"""Attributes of iree_linalg_ext."""

from __future__ import annotations

from xdsl.dialects.builtin import IntAttr
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer


@irdl_attr_definition
class IteratorTypeAttr(EnumAttribute[IteratorType]):
    """`#iree_linalg_ext.iterator_type<parallel>` (IREE: LinalgExtAttrs.td)."""

    name = "iree_linalg_ext.iterator_type"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> IteratorType:
        with parser.in_angle_brackets():
            return super().parse_parameter(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            super().print_parameter(printer)


@irdl_attr_definition
class SplitReductionMappingAttr(ParametrizedAttribute):
    """
    `#iree_linalg_ext.split_reduction_mapping<0>`: maps a loop to the parts of a split reduction
    (LinalgExtAttrs.td).
    """

    name = "iree_linalg_ext.split_reduction_mapping"
    dimension: IntAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[IntAttr]:
        with parser.in_angle_brackets():
            return (IntAttr(parser.parse_integer()),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_int(self.dimension.data)
