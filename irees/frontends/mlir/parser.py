"""
xDSL's parser, extended for real programs and hardened against malicious input.

* Every op gets a location: its `loc(...)`, or its position in the text.
* `#loc` aliases may be used before they are defined; ranges and `fused` locations are read.
* `dense_resource<key>` gets the bytes from this text, even if another text used the same key.
* `dense<1> : tensor<1000000000xi32>` stays a single element.
* Text that exceeds `irees.limits` is rejected at its position: too many ops, too wide integers, too
  large affine maps, and aliases that grow exponentially.
* A type like `tensor<1x64x112x112xf32>` is parsed only once per text, since xDSL's parser is slow.
  The same applies to linalg and tensor ops that differ only in value names (`templates.py`).
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from itertools import islice

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import (
    AnyFloat,
    BytesAttr,
    ComplexType,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    IntegerType,
    LocationAttr,
    NoneAttr,
    ShapedType,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Operation, TypeAttribute
from xdsl.ir.affine import AffineMap, AffineSet
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from irees import limits
from irees.blobs import Blob, ResourceKey
from irees.errors import IreesError

from .admission import check_map, size_of
from .templates import Templates

MAX_SPLAT_BYTES = 1 << 20
"""Splat size in bytes above which a splat is stored as a single element."""

SMALL_ALIAS = 64
"""Largest size of an alias, in tokens, whose uses are not charged to the work budget."""

_LOC_ALIAS = re.compile(r"^(#loc[0-9]*)[ \t]*=[ \t]*(loc\(.*\))[ \t]*$", re.MULTILINE)
_PLAIN_TYPE = re.compile(r"(?:tensor|memref|vector)<[0-9?x]*x(?:f|bf|i)[0-9]+>")


class Aliases(dict[str, Attribute]):
    """Aliases by name. Charges each use of a large alias, which is compared and printed in full."""

    def __init__(self):
        super().__init__()
        self.large: dict[str, int] = {}

    def __getitem__(self, name: str) -> Attribute:
        if (size := self.large.get(name)) is not None:
            limits.spend("aliases", size, op=name)
        return super().__getitem__(name)


class ImportParser(Parser):
    """A parser of one text; see the module docstring."""

    def __init__(
        self, ctx: Context, text: str, name: str, blobs: dict[str, Blob] | None = None
    ) -> None:
        self._blobs = blobs or {}
        self._keys: dict[str, ResourceKey] = {}
        self._plain_types: dict[str, TypeAttribute] = {}
        self._file = StringAttr(name)
        self._line_starts: list[int] | None = None
        self._loc_texts = {m.group(1): m.group(2) for m in _LOC_ALIAS.finditer(text)}
        self._ops = 0
        self.failed_at: int | None = None
        """Offset of the innermost op or alias whose construction failed."""
        super().__init__(ctx, text, name)
        self.attribute_aliases: Aliases = Aliases()
        self._templates = Templates(text)
        self.copied: set[Operation] = set()
        """Ops nested in an op that was cloned from a template instead of parsed."""

    # Positions

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """The 1-based line and column of an offset in the text."""
        if self._line_starts is None:
            text = self.lexer.input.content
            self._line_starts = [0, *(m.end() for m in re.finditer("\n", text))]
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def place(self, offset: int | None = None) -> str:
        """`file:line:col` of an offset (default: the current position)."""
        line, column = self.line_and_column(self.pos if offset is None else offset)
        return f"{self.lexer.input.name}:{line}:{column}"

    def parse_operation(self) -> Operation:
        start = self.pos
        if (known := self._from_template(start)) is not None:
            return known
        self._ops += 1
        if self._ops > limits.limit("ops"):
            raise limits.exceeded("ops", "the text has too many ops", location=self.place(start))
        try:
            op = super().parse_operation()
        except (ParseError, IreesError):
            raise
        except Exception:
            self._fail(start)
            raise
        if isinstance(op.location, UnknownLoc):
            line, column = self.line_and_column(start)
            op.location = FileLineColLoc(self._file, IntAttr(line), IntAttr(column))
        # Uses of a large alias are charged where they are parsed.
        if not self.attribute_aliases.large:
            self._templates.add(op, start, self.pos, self.ssa_values)
        return op

    def _from_template(self, start: int) -> Operation | None:
        """Clones an earlier op whose text equals the text at `start`, except for value names."""
        found = self._templates.find(start, self.ssa_values)
        if found is None or self._ops + 1 + len(found[0].lines) > limits.limit("ops"):
            return None
        template, names, end, op = found
        self._ops += 1 + len(template.lines)
        line, column = self.line_and_column(start)
        places = [(line, column), *((line + down, across) for down, across in template.lines)]
        for each, (row, place) in zip(op.walk(), places, strict=True):
            each.location = FileLineColLoc(self._file, IntAttr(row), IntAttr(place))
        for number, result in zip(template.results, op.results, strict=True):
            result.name_hint = None
            span = Span(start, start + len(names[number]), self.lexer.input)
            self._register_ssa_definition(names[number][1:], [result], span)
        self._resume_from(end)
        self.copied.update(islice(op.walk(), 1, None))
        return op

    def _fail(self, start: int) -> None:
        """Records the offset of a failed construct; keeps the first, which is the innermost."""
        if self.failed_at is None:
            self.failed_at = start

    def parse_optional_type(self) -> TypeAttribute | None:
        plain = _PLAIN_TYPE.match(self.lexer.input.content, self._current_token.span.start)
        if plain is None:
            return super().parse_optional_type()
        known = self._plain_types.get(plain[0])
        if known is not None:
            self._resume_from(plain.end())
            return known
        parsed = super().parse_optional_type()
        if parsed is not None:
            self._plain_types[plain[0]] = parsed
        return parsed

    def _parse_optional_integer_or_float_type(self) -> TypeAttribute | None:
        start = self.pos
        parsed = super()._parse_optional_integer_or_float_type()
        if isinstance(parsed, IntegerType):
            bits = parsed.width.data
            limits.check("integer_bits", bits, f"i{bits} is too wide", location=self.place(start))
        return parsed

    def parse_dimension_list(self) -> list[int]:
        """Parses dims up to the last `x`. xDSL's method fails if a blank follows that `x`."""
        dims: list[int] = []
        while self._current_token.kind in (MLIRTokenKind.INTEGER_LIT, MLIRTokenKind.QUESTION):
            dims.append(self.parse_shape_dimension())
            delimiter = self._current_token.span.start
            if self._parse_optional_shape_delimiter() is None:
                return dims
        if dims:
            self._resume_from(delimiter)
        return dims

    def parse_affine_map(self) -> AffineMap:
        start = self.pos
        parsed = super().parse_affine_map()
        check_map(parsed.results, location=self.place(start))
        return parsed

    def parse_affine_set(self) -> AffineSet:
        start = self.pos
        parsed = super().parse_affine_set()
        check_map([each.lhs for each in parsed.constraints], location=self.place(start))
        return parsed

    # Locations

    def _parse_location(self) -> LocationAttr:
        if self._current_token.kind == MLIRTokenKind.HASH_IDENT:
            name = self._current_token.text
            if name not in self.attribute_aliases and name in self._loc_texts:
                self.attribute_aliases[name] = self._forward_location(name)
                self._forward_aliases.add(name)
        elif self.parse_optional_keyword("fused"):
            metadata: Attribute = NoneAttr()
            if self.parse_optional_punctuation("<"):
                metadata = self.parse_attribute()
                self.parse_punctuation(">")
            locations = self.parse_comma_separated_list(self.Delimiter.SQUARE, self._parse_location)
            return FusedLoc(tuple(locations), metadata)
        location = super()._parse_location()
        if isinstance(location, FileLineColLoc) and self.parse_optional_keyword("to"):
            self.parse_optional_integer(False, False)
            self.parse_punctuation(":")
            self.parse_integer(False, False)
        return location

    @property
    def _forward_aliases(self) -> set[str]:
        return self.__dict__.setdefault("_forward", set())

    def _forward_location(self, name: str) -> LocationAttr:
        text = self._loc_texts.pop(name)
        nested = ImportParser(self.ctx, text, self.lexer.input.name)
        nested._loc_texts = self._loc_texts
        nested.attribute_aliases = self.attribute_aliases
        nested.__dict__["_forward"] = self._forward_aliases
        location = nested.parse_optional_location()
        return UnknownLoc() if location is None else location

    def _parse_alias_def(self) -> None:
        if self._current_token.text in self._forward_aliases:
            del self.attribute_aliases[self._current_token.text]
            self._forward_aliases.discard(self._current_token.text)
        name, start = self._current_token.text, self.pos
        try:
            super()._parse_alias_def()
        except (ParseError, IreesError):
            raise
        except Exception:
            self._fail(start)
            raise
        size = size_of(dict.__getitem__(self.attribute_aliases, name))
        place = self.place(start)
        limits.check("alias_tokens", size, f"the alias has {size} tokens", op=name, location=place)
        if size > SMALL_ALIAS and not name.startswith("#loc"):
            self.attribute_aliases.large[name] = size

    # Constants

    def _parse_builtin_dense_resource_attr(self) -> DenseResourceAttr:
        self.parse_characters("<", " in dense_resource attribute")
        key = self.parse_optional_str_literal()
        if key is None:
            key = self.parse_identifier(" for resource handle")
        self.parse_characters(">", " in dense_resource attribute")
        self.parse_characters(":", " in dense_resource attribute")
        type_ = self.parse_type()
        if not isinstance(type_, ShapedType):
            self.raise_error(f"dense resource should have a shaped type, got: {type_}")
        handle = self._keys.get(key)
        if handle is None:
            handle = self._keys[key] = ResourceKey(key, self._blobs.get(key))
        return DenseResourceAttr(StringAttr(handle), type_)

    def parse_dense_int_or_fp_elements_attr(self, type):  # type: ignore[override]
        start = self.pos
        self.parse_punctuation("<", " in dense attribute")
        hex_text = None
        literal: tuple[list, list[int]] | None = None
        if self.parse_optional_punctuation(">") is None:
            hex_text = self.parse_optional_str_literal()
            if hex_text is None:
                literal = self._parse_tensor_literal()
            self.parse_punctuation(">", " in dense attribute")
        if type is None:
            self.parse_punctuation(":", " in dense attribute")
            type = self._parse_dense_literal_type()
        count = math.prod(type.get_shape())
        element_type = type.get_element_type()
        size = element_type.compile_time_size

        if hex_text is not None:
            data = self._hex_elements(hex_text, element_type, count, size)
        elif literal is None:
            if count:
                self.raise_error(
                    "expected at least one element in the dense literal", start, self.pos
                )
            data = b""
        else:
            data = self._literal_elements(literal, type, start)
        if (
            len(data) == size
            and not (literal is not None and literal[1])
            and count * size <= MAX_SPLAT_BYTES
        ):
            data = data * count
        assert isinstance(element_type, AnyFloat | ComplexType) or data is not None
        return DenseIntOrFPElementsAttr(type, BytesAttr(data))

    def _literal_elements(self, literal: tuple[list, list[int]], type, start: int) -> bytes:
        """Packs the elements of a nested list, after checking its shape."""
        elements, nested = literal
        shape, element_type = list(type.get_shape()), type.get_element_type()
        values = [value.to_type(self, element_type) for value in elements]
        if nested and nested != shape:
            self.raise_error(
                f"shape mismatch in dense literal: the type has {shape}, it {nested}",
                start,
                self.pos,
            )
        if isinstance(element_type, IntegerType):
            values = [element_type.get_normalized_value(value) for value in values]
        return element_type.pack(values)

    def _hex_elements(self, text: str, element_type: Attribute, count: int, size: int) -> bytes:
        try:
            data = bytes.fromhex(text[2:]) if text[:2].lower() == "0x" else None
        except ValueError:
            data = None
        if data is None:
            self.raise_error("expected a hexadecimal string in the dense literal")
        if (
            element_type == IntegerType(1)
            and (len(data) == (count + 7) // 8 or len(data) == 1)
            and count > 1
        ):
            if len(data) == 1 and data in (b"\xff", b"\x00"):
                return bytes([data[0] & 1])
            return np.unpackbits(
                np.frombuffer(data, np.uint8), count=count, bitorder="little"
            ).tobytes()
        if len(data) not in (size, count * size) or (count == 0 and data):
            self.raise_error(
                f"the dense literal has {len(data)} byte(s), but the type takes {count * size}"
            )
        return data
