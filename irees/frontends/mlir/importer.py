"""
MLIR text to a module.

The importer promises: any bytes give a verified module or an `IreesError` that says where. Weights
stay outside the text (`irees.blobs`), every op has a location.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import contextmanager

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError as XdslParseError
from xdsl.utils.exceptions import VerifyException

from irees.blobs import Blob
from irees.dialects import get_context
from irees.errors import IreesError, LimitExceededError, ParseError

from .limits import MAX_DEPTH, check_limits
from .parser import ImportParser
from .sections import Source, open_source
from .verify import verify_module

_RECURSION_LIMIT = 6000


@contextmanager
def _room_for_recursion():
    """Texts as deep as `limits` allows must parse from any depth of the caller's own stack."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def import_mlir(
    path_or_text: str | bytes | os.PathLike[str],
    ctx: Context | None = None,
    *,
    name: str | None = None,
    blobs: Mapping[str, Blob] | None = None,
    verify: bool = True,
) -> ModuleOp:
    """
    The module in a file, or in a text. Raises ParseError, VerifyError or LimitExceededError, and
    nothing else. `name` is what locations call the text (the path, by default). `blobs` are
    resources that the text names and does not have.
    """
    return import_opened(open_source(path_or_text, name), ctx, blobs=blobs, verify=verify)


def import_opened(
    source: Source,
    ctx: Context | None = None,
    *,
    blobs: Mapping[str, Blob] | None = None,
    verify: bool = True,
) -> ModuleOp:
    """The module in a source whose weights were cut off already. Raises as `import_mlir`."""
    with _room_for_recursion():
        parser = None
        try:
            known = {**(blobs or {}), **source.blobs}
            parser = ImportParser(ctx or get_context(), source.text, source.name, known)
            check_limits(source.text, parser.place)
            module = parser.parse_module()
        except IreesError:
            raise
        except XdslParseError as error:
            place = parser.place(error.span.start) if parser is not None else source.name
            raise ParseError(_first_line(error.msg), location=place) from None
        except VerifyException as error:
            raise ParseError(
                _first_line(str(error)), location=_place(parser, source.name)
            ) from None
        except RecursionError:
            raise LimitExceededError(
                f"the text nests too deeply (brackets may nest {MAX_DEPTH} deep)",
                location=_place(parser, source.name),
            ) from None
        except MemoryError:
            raise LimitExceededError(
                "the text needs more memory than there is", location=_place(parser, source.name)
            ) from None
        except Exception as error:
            raise ParseError(
                f"the text is malformed ({type(error).__name__}: {_first_line(str(error))})",
                location=_place(parser, source.name),
            ) from error
        if verify:
            verify_module(module)
    return module


def _place(parser: ImportParser | None, name: str) -> str:
    return name if parser is None else parser.place()


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), text.strip())[:500]
