"""Common parts of the commands: options, reading a program, IR dumps, progress."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any, Literal, get_args, get_origin, get_type_hints

from irees.errors import EXIT_USAGE, ArgumentError
from irees.insertion import insertions_of
from irees.options import Options
from irees.remarks import collect, hearing
from irees.runtime.artifact import is_artifact, load
from irees.runtime.files import write_whole
from irees.runtime.program import Function, Program
from irees.runtime.services import set_num_threads

_DASHES = 65
MAX_DIGITS = 18
"""Maximum digits of a number on the command line."""


class UsageError(ArgumentError):
    """An invalid command line, regardless of the files."""

    exit_code = EXIT_USAGE


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds one flag per field of `Options`, with its help text."""
    group = parser.add_argument_group("compiler options")
    for option, hint in zip(fields(Options), get_type_hints(Options).values(), strict=True):
        spelling = option.metadata.get("flag", "--" + option.name.replace("_", "-"))
        settings: dict[str, Any] = {"dest": option.name, "default": option.default}
        if "metavar" in option.metadata:
            settings["metavar"] = option.metadata["metavar"]
        settings |= _kind_of(option.name, hint)
        group.add_argument(spelling, help=_help(option.metadata["help"], settings), **settings)
    no_plugins: dict[str, Any] = {"action": "store_const", "const": [], "dest": "plugins"}
    group.add_argument(
        "--no-plugins", default=argparse.SUPPRESS, help="use no plug-in", **no_plugins
    )
    level: dict[str, Any] = {"type": int, "choices": range(4), "default": argparse.SUPPRESS}
    group.add_argument("-O", dest="opt_level", help="the same as --opt-level", **level)


def _kind_of(name: str, hint: Any) -> dict[str, Any]:
    """Returns how argparse reads an option of a type."""
    kinds = get_args(hint) or (hint,)
    if name in ("devices", "limits", "passes"):
        return {"action": "append", "default": []}
    if name == "tuning":
        return {}
    if name == "plugins":
        return {"action": "append"}
    if {bool, str} <= set(kinds):
        return {"type": _named_or_on}
    if bool in kinds:
        return {"action": argparse.BooleanOptionalAction}
    if get_origin(hint) is Literal:
        return {"choices": kinds}
    if get_origin(hint) is tuple:
        return {"action": "append", "default": []}
    return {"type": int} if int in kinds else {}


def _help(text: str, settings: dict[str, Any]) -> str:
    """Adds the default to a help text. `%` is argparse's own."""
    default = settings["default"]
    shown = isinstance(default, str | int) and not isinstance(default, bool)
    return text.replace("%", "%%") + (f" (default: {default})" if shown else "")


def _named_or_on(text: str) -> str | bool:
    return text or True


def add_remarks(parser: argparse.ArgumentParser) -> None:
    """Adds `--remarks` and `--remarks=json`; the next word is never taken as the value."""
    settings: dict[str, Any] = {"action": "store_const", "dest": "remarks"}
    parser.add_argument(
        "--remarks",
        const="text",
        help="print the compiler's decisions, with reasons, to standard error",
        **settings,
    )
    parser.add_argument(
        "--remarks=json", const="json", help="the same as one JSON object per line", **settings
    )


def add_program(parser: argparse.ArgumentParser, *, function: bool) -> None:
    """Adds the flags that name the program, and the compiler options."""
    parser.add_argument(
        "source", nargs="?", help="MLIR, ONNX, a saved program, or - for standard input"
    )
    parser.add_argument("--module", help="the same, as IREE spells it")
    if function:
        parser.add_argument("--function", help="a public function (default: main, or the only one)")
    threads = "threads of a kernel (default: all cores)"
    parser.add_argument("--num-threads", "--task-topology-group-count", type=int, help=threads)
    add_options(parser)


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Adds the optional flag `--input`."""
    text = "default: random numbers for static shapes"
    parser.add_argument("--input", action="append", default=[], help=text)


def options_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The compiler options of a command line. Raises ArgumentError for an invalid tuning file."""
    options = {option.name: getattr(arguments, option.name) for option in fields(Options)}
    if options["tuning"]:
        options["tuning"] = read_tuning(options["tuning"])
    options["devices"] = devices_of(options["devices"])
    options["limits"] = limits_of(options["limits"])
    options["passes"] = insertions_of(options["passes"])
    options["disable_pass"] = _split(options["disable_pass"])
    options["plugins"] = None if options["plugins"] is None else _split(options["plugins"])
    return options


def _split(given: list[str]) -> tuple[str, ...]:
    """`["a,b", "c"]` => `("a", "b", "c")`"""
    return tuple(name.strip() for text in given for name in text.split(",") if name.strip())


def limits_of(given: list[str]) -> dict[str, int] | None:
    """Parses limits such as `ops=10000000`. Raises UsageError for another form."""
    found: dict[str, int] = {}
    for text in given:
        name, _, number = text.partition("=")
        if not number.isdecimal() or len(number) > MAX_DIGITS:
            raise UsageError(f"--limit={text} is not known", hint="use NAME=N, as in ops=10000000")
        found[name] = int(number)
    return found or None


def devices_of(given: list[str]) -> dict[str, str] | None:
    """Parses devices such as `dev_0=cpu:0`. Raises UsageError for another form."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, device = text.partition("=")
        if not name or not equals or not device or name in found:
            raise UsageError(
                f"--device={text} is not known",
                hint="use NAME=DEVICE, as in dev_0=cpu:0, once each",
            )
        found[name] = device
    return found or None


def read_tuning(path: str) -> Any:
    """Reads a tuning from a saved program or JSON. Raises ArgumentError when it is neither."""
    if is_artifact(path):
        return load(path).tuning
    try:
        return json.loads(Path(path).read_text())
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or "it is neither a saved program nor JSON"
        raise ArgumentError(f"cannot read the tuning {path}: {reason}") from None


def source_of(arguments: argparse.Namespace) -> str:
    """Returns the path of the program. Raises UsageError without one, ArgumentError if no file."""
    given = [path for path in (arguments.source, getattr(arguments, "module", None)) if path]
    if len(given) != 1:
        hint = "name an .mlir, .onnx or .irees file"
        raise UsageError("exactly one program is required", hint=hint)
    if given[0] != "-" and not Path(given[0]).is_file():
        reason = "is a folder" if Path(given[0]).is_dir() else "does not exist"
        raise ArgumentError(f"{given[0]} {reason}")
    return given[0]


def source_for(path: str, arguments: argparse.Namespace) -> Any:
    """
    Returns the source to compile: the path, so that the program may come from the cache. If the
    command line asks for remarks, returns the module, since a cached program emits none.
    """
    if path == "-" or getattr(arguments, "remarks", None):
        return import_source(path)
    return Path(path)


def import_source(path: str, *, verify: bool = True) -> Any:
    """
    Imports a module from a file or standard input. Raises the errors of `import_mlir` and
    `import_onnx`.
    """
    from irees.frontends.mlir import import_mlir
    from irees.frontends.onnx import import_onnx_program, is_onnx

    if path == "-":
        return import_mlir(sys.stdin.buffer.read(), name="<stdin>", verify=verify)
    if is_artifact(path):
        raise ArgumentError(
            f"{path} is a saved program, which has no IR", hint="name the program it is made of"
        )
    if is_onnx(path):
        return import_onnx_program(path).module
    return import_mlir(Path(path), verify=verify)


def program_of(arguments: argparse.Namespace) -> Program:
    """Returns the program of a command line: loads a saved program, compiles a source."""
    path = source_of(arguments)
    if arguments.num_threads is not None:
        set_num_threads(arguments.num_threads)
    if path != "-" and is_artifact(path):
        program = load(path, devices=devices_of(arguments.devices))
        folder = arguments.trace_dispatch_tensors
        if folder and isinstance(program, Program):
            program.trace_to(folder if isinstance(folder, str) else None)
        return program
    from irees.compiler import compile

    with progress():
        return compile(source_for(path, arguments), **options_of(arguments))


def function_of(program: Program, name: str | None) -> Function:
    """The function to call. Raises ArgumentError when there is none of that name."""
    if name is None:
        name = "main" if "main" in program.functions else None
    if name is None and len(program.functions) == 1:
        return next(iter(program.functions.values()))
    if name not in program.functions:
        have = ", ".join(program.functions) or "none"
        what = "no single function" if name is None else f"no function {name!r}"
        raise ArgumentError(f"the program has {what} (it has {have})", hint="use --function=")
    return program.functions[name]


def takes_colors(stream: IO[str]) -> bool:
    """Whether a stream is a terminal with colors, and the user wants them (no-color.org)."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def write_output(path: str | None, text: str) -> None:
    """Writes text to a file atomically; `-` and None are standard output."""
    if path in (None, "-"):
        sys.stdout.write(text)
        return
    write_bytes(Path(path), text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file atomically. Raises ArgumentError when it cannot be written."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(content)  # pipes and devices are written to, never replaced
            return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ArgumentError(f"cannot write {path}: {reason}") from None
    write_whole(path, lambda file: file.write(content))


@dataclass
class Dumps:
    """Implements `--mlir-print-ir-*` and `--mlir-timing`, with hooks before and after each pass."""

    before_all: bool = False
    after_all: bool = False
    before_passes: frozenset[str] = frozenset()
    after_passes: frozenset[str] = frozenset()
    after_change: bool = False
    after_failure: bool = False
    timing: bool = False
    times: list[tuple[str, float]] = field(default_factory=list)
    running: tuple[str, Any] | None = None
    """The running pass, and its module."""
    unchanged: str = ""
    """The IR before that pass, if only changes are printed."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Adds the flags, with MLIR's spelling."""
        group = parser.add_argument_group("IR printing (to standard error)")
        names: dict[str, Any] = {"action": "append", "default": [], "metavar": "PASS,..."}
        everywhere: dict[str, Any] = {"action": "store_true"}
        group.add_argument("--mlir-print-ir-before-all", help="before every pass", **everywhere)
        group.add_argument("--mlir-print-ir-before", help="before these passes", **names)
        group.add_argument("--mlir-print-ir-after-all", help="after every pass", **everywhere)
        group.add_argument("--mlir-print-ir-after", help="after these passes", **names)
        group.add_argument(
            "--mlir-print-ir-after-change",
            action="store_true",
            help="print the IR only after passes that changed it",
        )
        group.add_argument("--mlir-print-ir-after-failure", help="after a failure", **everywhere)
        group.add_argument("--mlir-timing", help="the time of each pass", **everywhere)
        for always in ("--mlir-print-ir-module-scope", "--mlir-disable-threading"):
            group.add_argument(
                always, action="store_true", help="ignored, always on; for compatibility with MLIR"
            )

    @staticmethod
    def of(arguments: argparse.Namespace) -> Dumps:
        """Reads the flags of a command line. Raises UsageError for an unknown pass."""
        return Dumps(
            arguments.mlir_print_ir_before_all,
            arguments.mlir_print_ir_after_all,
            _pass_names(arguments.mlir_print_ir_before),
            _pass_names(arguments.mlir_print_ir_after),
            arguments.mlir_print_ir_after_change,
            arguments.mlir_print_ir_after_failure,
            arguments.mlir_timing,
        )

    @property
    def is_wanted(self) -> bool:
        """Whether any flag is set; without one, the program may come from the cache."""
        return self != Dumps()

    def before(self, name: str, module: Any) -> None:
        """Called before a pass."""
        self.running = (name, module)
        if self.before_all or _plain(name) in self.before_passes:
            self._dump("Before", name, module)
        if self.after_change:
            self.unchanged = _text(module)

    def after(self, name: str, module: Any, seconds: float) -> None:
        """Called after a pass."""
        self.running = None
        self.times.append((name, seconds))
        # Alone, MLIR's --mlir-print-ir-after-change prints nothing; here it means all passes.
        everything = self.after_all or (self.after_change and not self.after_passes)
        if not everything and _plain(name) not in self.after_passes:
            return
        if not self.after_change or _text(module) != self.unchanged:
            self._dump("After", name, module)

    def failed(self) -> None:
        """Called when a pass fails."""
        if self.after_failure and self.running is not None:
            name, module = self.running
            self._dump("After", name, module, " Failed")

    def finish(self) -> None:
        """Prints the times if `--mlir-timing` is set."""
        if not self.timing:
            return
        total = sum(seconds for _, seconds in self.times)
        lines = ["===" + "-" * _DASHES + "===", "  ... Execution time report ..."]
        for name, seconds in [*self.times, ("Total", total)]:
            share = 100 * seconds / total if total else 0.0
            lines.append(f"  {seconds:8.4f} ({share:5.1f}%)  {name}")
        print("\n".join(lines), file=sys.stderr)

    def _dump(self, when: str, name: str, module: Any, how: str = "") -> None:
        what = f"{when} {_class_name(name)}{how}: {name}"
        print(f"// -----// IR Dump {what} //----- //", file=sys.stderr)
        print(_text(module), file=sys.stderr)


def _text(module: Any) -> str:
    from irees.frontends.mlir import print_module

    return print_module(module)


def _plain(name: str) -> str:
    return name.split("{")[0]


def _class_name(name: str) -> str:
    words = _plain(name).removeprefix("irees-").split("-")
    return "".join(word.capitalize() for word in words) + "Pass"


def _pass_names(given: list[str]) -> frozenset[str]:
    names = frozenset(name.strip() for text in given for name in text.split(",") if name.strip())
    if names:
        from irees.dialects import neighbours

        known = neighbours().passes
        for name in names - known.keys():
            near = get_close_matches(name, known, 3) or ["irees opt --list-passes"]
            raise UsageError(f"pass {name!r} is unknown", hint=f"try {', '.join(near)}")
    return names


@contextlib.contextmanager
def printed_remarks(form: str | None) -> Iterator[None]:
    """Prints the remarks of the block to standard error, as `text` or `json`."""
    if form is None:
        yield
        return
    with collect() as remarks:
        yield
    for each in remarks:
        print(each.as_json() if form == "json" else each, file=sys.stderr)


@contextlib.contextmanager
def progress() -> Iterator[None]:
    """Shows a progress line after one second, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    stop = threading.Event()
    step = ["compiling"]
    begin = time.monotonic()

    def hear(name: str) -> None:
        step[0] = f"after {name}"

    def show() -> None:
        if stop.wait(1.0):
            return
        while not stop.wait(0.2):
            sys.stderr.write(f"\r\x1b[Kirees: {step[0]} ({time.monotonic() - begin:.0f} s)")
            sys.stderr.flush()
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        with hearing(hear):
            yield
    finally:
        stop.set()
        thread.join()
