"""Adds an assembly format to an existing xDSL op class."""

from __future__ import annotations

from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.parser import Parser
from xdsl.printer import Printer


def set_format(cls: type[IRDLOperation], assembly_format: str) -> None:
    """Makes `cls` parse and print with a declarative assembly format."""
    program = FormatProgram.from_str(assembly_format, cls.get_irdl_definition())

    def parse(kind: type[IRDLOperation], parser: Parser) -> IRDLOperation:
        return program.parse(parser, kind)

    def print_(op: IRDLOperation, printer: Printer) -> None:
        program.print(printer, op)

    cls.parse = classmethod(parse)  # type: ignore[assignment]
    cls.print = print_  # type: ignore[method-assign]
