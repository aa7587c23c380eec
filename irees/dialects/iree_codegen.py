"""
The `iree_codegen` dialect: decisions about a kernel, written on its ops.

`#iree_codegen.lowering_config<{workgroup = [64, 0]}>` says how one op is tiled,
`#iree_codegen.translation_info<strategy>` which strategy its function follows. Names are
IREE's (`compiler/src/iree/compiler/Codegen/Dialect/Codegen/IR`); keys are irees' own.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer


@irdl_attr_definition
class LoweringConfigAttr(ParametrizedAttribute):
    """Integers and lists of integers by name: tile sizes per loop, register blocks, ..."""

    name = "iree_codegen.lowering_config"

    entries: DictionaryAttr

    @staticmethod
    def of(**entries: Sequence[int] | int) -> LoweringConfigAttr:
        """A config of these entries."""

        def attr(value: Sequence[int] | int) -> Attribute:
            if isinstance(value, int):
                return IntegerAttr(value, i64)
            return ArrayAttr(IntegerAttr(v, i64) for v in value)

        return LoweringConfigAttr(DictionaryAttr({k: attr(v) for k, v in entries.items()}))

    @staticmethod
    def on(op: Operation) -> LoweringConfigAttr:
        """The config of an op, empty when it has none."""
        found = op.attributes.get("lowering_config")
        return found if isinstance(found, LoweringConfigAttr) else LoweringConfigAttr.of()

    def ints(self, key: str) -> tuple[int, ...] | None:
        """The list stored under `key`, or None."""
        value = self.entries.data.get(key)
        if not isinstance(value, ArrayAttr):
            return None
        return tuple(v.value.data for v in value.data if isinstance(v, IntegerAttr))

    def int(self, key: str) -> int | None:
        """The integer stored under `key`, or None."""
        value = self.entries.data.get(key)
        return value.value.data if isinstance(value, IntegerAttr) else None

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (parser.parse_attribute(),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.entries)


@irdl_attr_definition
class TranslationInfoAttr(ParametrizedAttribute):
    """The strategy that a kernel's function follows."""

    name = "iree_codegen.translation_info"

    strategy: StringAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (StringAttr(parser.parse_identifier()),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.strategy.data)


IreeCodegen = Dialect("iree_codegen", [], [LoweringConfigAttr, TranslationInfoAttr])
