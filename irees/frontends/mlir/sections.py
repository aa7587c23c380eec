"""
Splits `{-# ... #-}` sections off MLIR text and finds the resources in them.

A section may hold a gigabyte of hexadecimal digits, so it is never copied: the scanner reads only
the names and punctuation between the long strings and records their extents.
"""

from __future__ import annotations

import mmap
import os
import re
from typing import Any

from irees import limits
from irees.blobs import Blob, release_pages
from irees.errors import ParseError
from irees.runtime.files import path_of

_BEGIN = re.compile(rb"^[ \t]*\{-#", re.MULTILINE)
_TOKEN = re.compile(
    rb'\s*+(?://[^\n]*+\s*+)*+(?:(#-\})|([{}\[\]:,])|(")|([A-Za-z_$.][\w$.]*)|(-?[0-9][\w.+-]*))'
)
_CHUNK = 1 << 20
_WINDOW = 64 << 20
"""Bytes of a mapped file that are searched before its memory is given back."""

_FOREIGN = {
    b"PK\x03\x04": (
        "an archive",
        "irees.load reads a saved program; compile what torch.export.load or torch.load returns",
    ),
    b"ML\xefR": ("MLIR bytecode", "mlir-opt or iree-opt converts it to text"),
}
"""Binary formats by their first bytes: the name, and the way out."""


class Source:
    """Text to import: its `name`, the IR as `text`, and the resources by key."""

    def __init__(self, name: str, data: Any):
        self.name = name
        self._data = data
        self.blobs: dict[str, Blob] = {}
        if (found := _FOREIGN.get(bytes(data[:4]))) is not None:
            raise ParseError(f"{name} is {found[0]}, not MLIR text", hint=found[1])
        begin = _BEGIN.search(data)
        if begin is None:
            self.text = self._decode(0, len(data))
            return
        start = begin.end()
        end = _Scanner(self, data, start).scan()
        release_pages(data)
        head, tail = self._decode(0, begin.start()), self._decode(end, len(data))
        self.text = head + ("\n" * _count_lines(data, start, end) + tail if tail.strip() else "")

    def _decode(self, start: int, stop: int) -> str:
        # Checks the size before copying, since a file may be larger than memory.
        size = stop - start
        limits.check("text_bytes", size, f"the text has {size} bytes", location=self.name)
        raw = bytes(self._data[start:stop])
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ParseError(
                "the text is not UTF-8", location=self.place(start + error.start)
            ) from None
        if "\0" in text:
            raise ParseError(
                "the text has a NUL character", location=self.place(start + raw.index(b"\0"))
            )
        return text

    def place(self, offset: int) -> str:
        """`file:line:col` of a byte offset."""
        before = bytes(self._data[max(0, offset - _CHUNK) : offset])
        line = 1 + before.count(b"\n")
        for start in range(0, max(0, offset - _CHUNK), _CHUNK):
            line += bytes(self._data[start : min(start + _CHUNK, offset - _CHUNK)]).count(b"\n")
        column = len(before) - before.rfind(b"\n")
        return f"{self.name}:{line}:{column}"


def _count_lines(data: Any, start: int, end: int) -> int:
    return sum(
        bytes(data[i : min(i + _CHUNK, end)]).count(b"\n") for i in range(start, end, _CHUNK)
    )


def open_source(path_or_text: str | bytes | os.PathLike[str], name: str | None = None) -> Source:
    """
    Opens a file (memory-mapped) or a text. A `str` is text if it starts like MLIR or contains a
    line break or a brace; otherwise it is a path.
    """
    if isinstance(path_or_text, bytes):
        return Source(name or "<text>", path_or_text)
    if isinstance(path_or_text, str) and is_text(path_or_text):
        return Source(name or "<text>", path_or_text.encode("utf-8", "surrogatepass"))
    path = path_of(path_or_text, "read")
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ParseError(f"cannot read {str(path_or_text)!r}: {reason}") from None
    return Source(name or str(path), data)


def is_text(source: str) -> bool:
    """Whether a string is MLIR text, not a path."""
    return source.lstrip()[:1] in ("", "%", "#", "!", '"') or any(c in source for c in "\n{(\0")


class _Scanner:
    """
    Scans the metadata dictionaries; strings in `dialect_resources: {builtin: ...}` become blobs.
    """

    def __init__(self, source: Source, data: Any, start: int):
        self.source, self.data, self.pos = source, data, start
        self.view = memoryview(data)
        self.path: list[str] = []

    def error(self, message: str) -> ParseError:
        return ParseError(message, location=self.source.place(self.pos))

    def token(self) -> tuple[str, str]:
        match = _TOKEN.match(self.data, self.pos)
        if match is None:
            raise self.error("expected the end of the resource section, '#-}'")
        self.pos = match.end()
        if match.group(1):
            return "end", ""
        if match.group(3):
            return "string", ""
        kind = "punctuation" if match.group(2) else "word"
        return kind, (match.group(2) or match.group(4) or match.group(5)).decode()

    def string(self) -> tuple[int, int]:
        """The extent of a string, after its opening quote."""
        start = pos = self.pos
        while True:
            stop = min(pos + _WINDOW, len(self.data))
            quote = self.data.find(b'"', pos, stop)
            if stop - pos == _WINDOW:
                release_pages(self.data)
            if quote < 0 and stop == len(self.data):
                raise self.error("a string in the resource section does not end")
            if quote < 0:
                pos = stop
            elif quote > start and self.data[quote - 1 : quote] == b"\\":
                pos = quote + 1
            else:
                self.pos = quote + 1
                return start, quote

    def scan(self) -> int:
        """Scans the section and returns the offset of its end."""
        depth, key = 0, None
        after_colon = False
        while True:
            kind, text = self.token()
            if kind == "end":
                if depth:
                    raise self.error("the resource section ends inside a dictionary")
                return self.pos
            if text in ("{", "["):
                depth += 1
                if depth > 16:
                    raise self.error("the resource section is nested too deeply")
                self.path.append(key or "")
                key, after_colon = None, False
            elif text in ("}", "]"):
                depth -= 1
                if depth < 0:
                    raise self.error("unbalanced braces in the resource section")
                self.path.pop()
                key, after_colon = None, False
            elif text == ":":
                after_colon = True
            elif text == ",":
                key, after_colon = None, False
            elif kind == "string":
                start, stop = self.string()
                if after_colon:
                    self.value(key, start, stop)
                else:
                    key = self.name(start, stop)
            elif not after_colon:
                key = text

    def name(self, start: int, stop: int) -> str:
        if stop - start > 4096:
            raise self.error("the name of a resource is too long")
        return bytes(self.view[start:stop]).decode("utf-8", "replace")

    def value(self, key: str | None, start: int, stop: int) -> None:
        if key is None or self.path != ["dialect_resources", "builtin"]:
            return
        if bytes(self.view[start : start + 2]).lower() != b"0x":
            raise self.error(f'resource {key!r} must be a hexadecimal string, "0x..."')
        if key in self.source.blobs:
            raise self.error(f"resource {key!r} is defined twice")
        try:
            self.source.blobs[key] = Blob(key, hex_text=self.view[start + 2 : stop])
        except ParseError as error:
            raise self.error(error.message) from None
