"""
Imports MLIR text as a module.

Guarantee: any input gives a verified module or an `IreesError` with a location. Weights stay
outside of the text (`irees.blobs`), and every op has a location.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from difflib import get_close_matches

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError as XdslParseError
from xdsl.utils.exceptions import VerifyException

from irees import limits
from irees.blobs import Blob
from irees.dialects import all_factories, get_context
from irees.errors import IreesError, OutOfMemoryError, ParseError
from irees.fence import fenced

from .admission import admit
from .parser import ImportParser
from .scan import scan
from .sections import Source, open_source
from .verify import verify_module

_RECURSION_LIMIT = 6000

UNDEFINED = re.compile(r"values used but not defined: \[(%[^\],]+)")
MISSING = re.compile(r"Expected '\W+'|Expected region|attribute expected", re.IGNORECASE)
"""xDSL's messages for a missing token, which belongs before the token that was found."""


@contextmanager
def _room_for_recursion():
    """Raises the recursion limit so that any nesting that `limits` allows can be parsed."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@fenced
def import_mlir(
    path_or_text: str | bytes | os.PathLike[str],
    ctx: Context | None = None,
    *,
    name: str | None = None,
    blobs: Mapping[str, Blob] | None = None,
    verify: bool = True,
) -> ModuleOp:
    """
    Imports a module from a file or a text. Raises only ParseError, VerifyError, UnsupportedError
    or LimitExceededError. `name` is the text's name in locations (default: the path). `blobs` are
    resources that the text refers to but does not contain.
    """
    return import_opened(open_source(path_or_text, name), ctx, blobs=blobs, verify=verify)


def import_opened(
    source: Source,
    ctx: Context | None = None,
    *,
    blobs: Mapping[str, Blob] | None = None,
    verify: bool = True,
) -> ModuleOp:
    """Imports a module from a source whose resources are split off. Raises as `import_mlir`."""
    with _room_for_recursion(), limits.budgeted():
        parser = None
        try:
            scan(source.text, source.name)
            known = {**(blobs or {}), **source.blobs}
            parser = ImportParser(ctx or get_context(), source.text, source.name, known)
            module = parser.parse_module()
        except IreesError:
            raise
        except XdslParseError as error:
            place = source.name if parser is None else parser.place(_offset(parser, error))
            hint = _way_out(error.msg, source.text[error.span.start :])
            raise ParseError(_first_line(error.msg), location=place, hint=hint) from None
        except VerifyException as error:
            raise ParseError(
                _first_line(str(error)), location=_place(parser, source.name)
            ) from None
        except RecursionError:
            raise limits.exceeded(
                "nesting", "the text nests too deeply", location=_place(parser, source.name)
            ) from None
        except MemoryError:
            raise OutOfMemoryError(
                "parsing the text needs more memory than is available",
                location=_place(parser, source.name),
            ) from None
        except Exception as error:
            raise ParseError(
                f"the text is malformed ({type(error).__name__}: {_first_line(str(error))})",
                location=_place(parser, source.name),
            ) from error
        copied = parser.copied
        admit(module, (lambda: verify_module(module, copied)) if verify else lambda: None)
    return module


def _way_out(message: str, rest: str) -> str | None:
    """Returns the hint for a parse error in front of `rest`, None if there is none."""
    if message.endswith("Expected primary expression") and rest.startswith("symbol("):
        return "write %k instead of symbol(%k)"
    if found := re.match(r"Operation (\S+) does not have a custom format", message):
        return f'write it in generic form: "{found[1]}"(...) : (...) -> ...'
    if (found := re.match(r"Operation (\S+) is not registered", message)) is None:
        return None
    dialect, factories = found[1].partition(".")[0], all_factories()
    if dialect not in factories:
        return f"no installed package has the dialect {dialect!r}; a plug-in can add it"
    names = get_close_matches(found[1], [op.name for op in factories[dialect]().operations], 3)
    return f"did you mean {', '.join(names)}?" if names else None


def _place(parser: ImportParser | None, name: str) -> str:
    return name if parser is None else parser.place(parser.failed_at)


def _offset(parser: ImportParser, error: XdslParseError) -> int:
    """
    The offset to report for an error: a token missing at the end of a line is reported there.

    As in MLIR, blanks and comments before the unexpected token are skipped.
    """
    start, text = error.span.start, parser.lexer.input.content
    if (name := UNDEFINED.search(error.msg)) is not None:
        # xDSL reports this at the end of the region.
        used = re.search(re.escape(name[1]) + r"(?![\w$.#-])", text)
        return start if used is None else used.start()
    if not MISSING.match(error.msg) or text[text.rfind("\n", 0, start) + 1 : start].strip():
        return start
    lines = text[:start].split("\n")[:-1]
    while lines and not lines[-1].partition("//")[0].strip():
        lines.pop()
    if not lines:
        return start
    return (
        len("\n".join(lines[:-1])) + (len(lines) > 1) + len(lines[-1].partition("//")[0].rstrip())
    )


def _first_line(text: str) -> str:
    if text.startswith("Could not parse entire input"):
        return "an op is expected here"
    return next((line.strip() for line in text.splitlines() if line.strip()), text.strip())[:500]
