"""Prints a module as MLIR text that can be imported again, with or without resource data."""

from __future__ import annotations

import binascii
import re
from io import StringIO
from typing import IO

from xdsl.ir import Operation
from xdsl.printer import Printer

from irees import limits
from irees.blobs import Blob, ResourceKey

_BARE = re.compile(r"[A-Za-z_][\w$.]*\Z")
_CHUNK = 1 << 20


class ModulePrinter(Printer):
    """xDSL's printer; also collects the resources that the module refers to."""

    def __init__(self, stream: IO[str], debuginfo: bool = False):
        super().__init__(stream=stream, print_debuginfo=debuginfo)
        self.blobs: dict[str, Blob] = {}
        self._names: dict[int, str] = {}

    def print_op(self, op: Operation) -> None:
        limits.spend("printing", 1, op=op)
        super().print_op(op)

    def print_resource_handle(self, dialect: str, handle: str) -> None:
        name = str(handle)
        blob = handle.blob if isinstance(handle, ResourceKey) else None
        if blob is not None:
            name = self._name_of(name, blob)
        if _BARE.match(name):
            self.print_string(name)
        else:
            self.print_string_literal(name)

    def _name_of(self, key: str, blob: Blob) -> str:
        known = self._names.get(id(blob))
        if known is not None:
            return known
        name, number = key, 0
        while name in self.blobs:
            name, number = f"{key}_{number}", number + 1
        self.blobs[name] = blob
        self._names[id(blob)] = name
        return name


def write_module(
    module: Operation, stream: IO[str], *, elide_resources: bool = True, debuginfo: bool = False
) -> None:
    """
    Writes a module as text. With `elide_resources=False`, the data of its resources is appended, so
    that `import_mlir` of the text gives the same program.
    """
    printer = ModulePrinter(stream, debuginfo)
    printer.print_op(module)
    stream.write("\n")
    if elide_resources or not printer.blobs:
        return
    stream.write("\n{-#\n  dialect_resources: {\n    builtin: {\n")
    last = len(printer.blobs) - 1
    for index, (name, blob) in enumerate(printer.blobs.items()):
        key = name if _BARE.match(name) else f'"{name}"'
        stream.write(f'      {key}: "0x{blob.alignment.to_bytes(4, "little").hex().upper()}')
        data = memoryview(blob.bytes())
        for start in range(0, len(data), _CHUNK):
            stream.write(binascii.hexlify(data[start : start + _CHUNK]).decode().upper())
        stream.write('"\n' if index == last else '",\n')
    stream.write("    }\n  }\n#-}\n")


def print_module(
    module: Operation, *, elide_resources: bool = True, debuginfo: bool = False
) -> str:
    """Returns a module as text; see `write_module`."""
    stream = StringIO()
    write_module(module, stream, elide_resources=elide_resources, debuginfo=debuginfo)
    return stream.getvalue()
