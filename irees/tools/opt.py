"""`irees opt`: runs passes on IR and prints it, with the flags of mlir-opt and of xdsl-opt."""

from __future__ import annotations

import argparse
import io
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from irees.errors import ArgumentError, InternalError, IreesError, VerifyError
from irees.fence import rethrow
from irees.options import Options
from irees.pass_specs import parse_passes
from irees.rewrites import limited
from irees.tools.common import (
    Dumps,
    UsageError,
    add_remarks,
    printed_remarks,
    source_of,
    write_output,
)

SPLITTER = "// -----"
_EXPECTED = re.compile(r"expected-error\s*(?:@([+-]\d+|above|below|unknown))?\s*\{\{(.*?)\}\}")
_PLACE = re.compile(r":(\d+):\d+\Z")


_SWITCHES = (
    (("--list-passes",), "list_passes", "print the names of all passes"),
    (("--show-dialects",), "show_dialects", "print the names of all dialects"),
    (("--print-op-generic", "--mlir-print-op-generic"), "generic", "print the generic form"),
    (("--print-debuginfo", "--mlir-print-debuginfo"), "debuginfo", "print locations"),
    (("--split-input-file",), "split_input_file", "a program between each // -----"),
    (("--verify-diagnostics",), "verify_diagnostics", "compare errors with expected-error lines"),
    (("--allow-unregistered-dialect",), "allow_unregistered_dialect", "accept unknown ops"),
)
"""Spellings, name and help text of flags without a value."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument("source", nargs="?", default="-", help="a file, or - for standard input")
    parser.add_argument("-o", "--output", help="a file (default: standard output)")
    parser.add_argument(
        "-p", "--passes", "--pass-pipeline", help="a,b{x=1} or builtin.module(func.func(a),b)"
    )
    parser.add_argument("--dump-pass-pipeline", action="store_true", help="to standard error")
    for spellings, name, text in _SWITCHES:
        parser.add_argument(*spellings, action="store_true", dest=name, help=text)
    each: dict[str, Any] = {"type": _switch, "nargs": "?", "const": True, "default": True}
    parser.add_argument("--verify-each", help="verify after every pass (default: true)", **each)
    add_remarks(parser)
    parser.add_argument(
        "--rewrite-limit", type=int, metavar="N", help="apply the first N optional rewrites only"
    )
    Dumps.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Runs the passes and prints the IR. Raises an IreesError."""
    from irees.dialects import neighbours

    available = neighbours()
    for problem in available.problems:
        print(f"irees: warning: {problem}", file=sys.stderr)
    if arguments.list_passes or arguments.show_dialects:
        table = available.passes if arguments.list_passes else available.dialects
        print("\n".join(sorted(table)))
        return 0
    return _run_passes(arguments, available.passes)


def _run_passes(arguments: argparse.Namespace, available: dict[str, Callable[[], Any]]) -> int:
    limit = Options(rewrite_limit=arguments.rewrite_limit).rewrite_limit
    passes = passes_of(arguments.passes or "", available)
    if arguments.dump_pass_pipeline:
        line = ",".join(str(each.pipeline_pass_spec()) for each in passes)
        print(f"builtin.module({line})", file=sys.stderr)
    path = arguments.source if arguments.source == "-" else source_of(arguments)
    data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    name = "<stdin>" if path == "-" else path
    printed: list[str] = []
    problems: list[str] = []
    dumps = Dumps.of(arguments)
    with printed_remarks(arguments.remarks):
        for text in _parts(data, arguments.split_input_file):
            try:
                with limited(limit):
                    printed.append(_one(text, name, passes, dumps, arguments))
                error = None
            except IreesError as caught:
                dumps.failed()
                if not arguments.verify_diagnostics:
                    raise
                error = caught
            if arguments.verify_diagnostics:
                problems += unexpected(text.decode(errors="replace"), error, name)
    dumps.finish()
    if arguments.verify_diagnostics:
        print("\n".join(problems), end="\n" if problems else "", file=sys.stderr)
        return 1 if problems else 0
    write_output(arguments.output, f"{SPLITTER}\n".join(printed))
    return 0


def passes_of(text: str, available: dict[str, Callable[[], Any]]) -> list[Any]:
    """Parses the passes of a command line. Raises UsageError."""
    try:
        return parse_passes(text, counting(available))
    except ArgumentError as error:
        raise UsageError(error.message, hint=error.hint) from None


def counting(available: dict[str, Callable[[], Any]]) -> dict[str, Callable[[], Any]]:
    """Replaces some xDSL passes with variants whose rewrites irees can count."""
    from irees.transforms.utils.upstream_passes import OWN

    return available | {name: lambda each=each: each for name, each in OWN.items()}


def _one(
    text: bytes, name: str, passes: list[Any], dumps: Dumps, arguments: argparse.Namespace
) -> str:
    from irees.dialects import get_context
    from irees.frontends.mlir import import_mlir

    ctx = get_context(allow_unregistered=arguments.allow_unregistered_dialect)
    module = import_mlir(text, ctx, name=name)
    for each in passes:
        label = str(each.pipeline_pass_spec())
        dumps.before(label, module)
        begin = time.perf_counter()
        _apply(each, ctx, module)
        dumps.after(label, module, time.perf_counter() - begin)
        if arguments.verify_each:
            _verify(module, each.name)
    return _printed(module, arguments)


def _apply(each: Any, ctx: Any, module: Any) -> None:
    from xdsl.utils.exceptions import DiagnosticException, VerifyException

    try:
        each.apply(ctx, module)
    except IreesError:
        raise
    except (DiagnosticException, VerifyException) as error:
        raise VerifyError(str(error).splitlines()[0], op=each.name) from None
    except Exception as error:
        rethrow(each.name, error, (module,))


def _verify(module: Any, name: str) -> None:
    from xdsl.utils.exceptions import VerifyException

    try:
        module.verify()
    except VerifyException as error:
        summary = next((line for line in str(error).splitlines() if line.strip()), "")
        raise InternalError(f"invalid IR after {name}: {summary.strip()}") from error


def _printed(module: Any, arguments: argparse.Namespace) -> str:
    if not arguments.generic:
        from irees.frontends.mlir import print_module

        text = print_module(module, elide_resources=False, debuginfo=arguments.debuginfo)
        return text if text.endswith("\n") else text + "\n"
    from xdsl.printer import Printer

    stream = io.StringIO()
    printer = Printer(stream, print_generic_format=True, print_debuginfo=arguments.debuginfo)
    printer.print_op(module)
    return stream.getvalue() + "\n"


def _parts(data: bytes, split: bool) -> Iterator[bytes]:
    if not split:
        yield data
        return
    part: list[bytes] = []
    for line in data.splitlines(keepends=True):
        if line.strip() == SPLITTER.encode():
            yield b"".join(part)
            # Empty lines preserve line numbers in messages.
            part = [b"\n"] * (len(part) + 1)
        else:
            part.append(line)
    yield b"".join(part)


def unexpected(text: str, error: IreesError | None, name: str) -> list[str]:
    """Messages about differences between `expected-error` comments and the actual error."""
    wanted = [
        (_line(number, offset), message)
        for number, line in enumerate(text.splitlines(), 1)
        for offset, message in _EXPECTED.findall(line)
    ]
    happened = []
    if error is not None:
        found = _PLACE.search(error.location or "")
        happened = [(int(found[1]) if found else None, str(error))]
    problems = [
        f"{name}:{line or '?'}: error: unexpected error: {message}"
        for line, message in happened
        if not any(_is_expected(line, message, *each) for each in wanted)
    ]
    return problems + [
        f"{name}:{at or '?'}: error: expected error {part!r} was not produced"
        for at, part in wanted
        if not any(_is_expected(*each, at, part) for each in happened)
    ]


def _is_expected(line: int | None, message: str, at: int | None, part: str) -> bool:
    """Whether an error has the text of a comment, at the line that the comment names, if any."""
    return part in message and at in (None, line)


def _line(number: int, offset: str) -> int | None:
    if offset == "unknown":
        return None
    words = {"": 0, "above": -1, "below": 1}
    return number + (words[offset] if offset in words else int(offset))


def _switch(text: str) -> bool:
    if text.lower() not in ("0", "1", "true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is not 0, 1, true or false")
    return text.lower() in ("1", "true")
