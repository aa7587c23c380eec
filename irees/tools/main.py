"""The command `irees`: runs a sub-command, and reports errors as one line and an exit code."""

from __future__ import annotations

import argparse
import errno
import os
import sys
import textwrap
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from irees.errors import EXIT_OK, EXIT_USAGE, ArgumentError, InternalError, IreesError
from irees.fence import as_irees_error, reproducible

COMMANDS = {
    "compile": "compile a program to a file, or to the IR after a phase",
    "run": "run a function of a program on given inputs, and compare its outputs",
    "bench": "time a function of a program",
    "opt": "run passes on IR and print it, as mlir-opt does",
    "check-module": "run the tests of a module that uses the check dialect",
    "bisect": "find the pass or the rewrite that makes a program wrong",
    "reduce": "make a program that is wrong as small as possible",
    "diff": "show what a part of the pipeline changes, or how two programs differ",
    "report": "write an HTML page that shows how a program is compiled",
    "explain": "the phases of the compiler, or what it chose for a program",
    "cache": "show, verify, prune or clear the cache of compiled code",
    "doctor": "check that this machine can compile and run programs",
    "completion": "print a script that completes command lines in bash, zsh or fish",
}
_INTERRUPTED = 130
EXIT_CODES = (
    "0 ok, 1 bad input, 2 usage, 3 unsupported, 4 toolchain or device, 5 limit, 6 run-time trap, "
    "70 a bug of irees, 130 interrupted"
)
_BARE = frozenset(("--trace-dispatch-tensors",))
"""Flags whose optional value must follow a `=`."""
_IREE = {"--iree-flow-trace-dispatch-tensors": "--trace-dispatch-tensors"}
"""IREE's flags that have another name in irees."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code; raises no exceptions."""
    return _guarded(list(sys.argv[1:] if arguments is None else arguments))


def _run(words: Sequence[str]) -> int:
    """Runs one command line; raises its errors."""
    if not words or words[0] in ("-h", "--help", "help"):
        print(_overview())
        return EXIT_OK if words else EXIT_USAGE
    if words[0] == "--version":
        print(_version())
        return EXIT_OK
    if words[0] not in COMMANDS:
        known = ", ".join(get_close_matches(words[0], COMMANDS, 1) or COMMANDS)
        print(f"irees: error: unknown command {words[0]!r}; use {known}", file=sys.stderr)
        return EXIT_USAGE
    try:
        given = parser_of(words[0]).parse_args([_dashed(word) for word in words[1:]])
    except SystemExit as end:  # --help
        return end.code if isinstance(end.code, int) else EXIT_USAGE
    return module_of(words[0]).run(given)


def _guarded(words: Sequence[str]) -> int:
    command = words[0] if words else ""
    try:
        if sys.stdout is None:  # the caller closed it, as in a daemon
            sys.stdout = open(os.devnull, "w")
        status = _run(words)
        sys.stdout.flush()
        return status
    except InternalError as error:
        return _told(reproducible(f"irees {command}", error, _given(words[1:])))
    except IreesError as error:
        return _told(error)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else EXIT_USAGE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe; without this, Python would report it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except BaseException as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            # Python flushes the buffer again at exit, which would fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            text = "cannot write: no space is left on the device"
            return _told(ArgumentError(text, hint="free space, or write elsewhere"))
        if (found := as_irees_error(f"irees {command}", error, _given(words[1:]))) is None:
            raise
        return _told(found)


def module_of(command: str) -> Any:
    """Returns the module of a command."""
    return import_module(f"irees.tools.{command.replace('-', '_')}")


def parser_of(command: str) -> argparse.ArgumentParser:
    """Returns the parser of a command's arguments, which raises UsageError."""
    parser = Parser(prog=f"irees {command}", description=COMMANDS[command], allow_abbrev=False)
    module_of(command).add_arguments(parser)
    return parser


class Parser(argparse.ArgumentParser):
    """Raises UsageError in one line, with the nearest names."""

    def print_help(self, file: Any = None) -> None:
        """Prints the help; argparse ignores errors of the output."""
        print(self.format_help(), end="", file=file)

    def error(self, message: str) -> NoReturn:
        from irees.tools.common import UsageError

        raise UsageError(message, hint=f"{self.prog} --help lists the arguments")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            word = unknown[0].partition("=")[0]
            near = get_close_matches(word, self._option_string_actions, 1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            self.error(f"unrecognized argument {unknown[0]!r}{hint}")
        return found

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        names = [str(each) for each in action.choices]
        near = get_close_matches(str(value), names, 1) or names
        raise argparse.ArgumentError(action, f"invalid choice: {value!r}, use {', '.join(near)}")


def _told(error: IreesError) -> int:
    from irees.tools.common import takes_colors

    text = error.diagnostic()
    if takes_colors(sys.stderr):
        place, found, rest = text.partition("error: ")
        text = f"\x1b[1m{place}\x1b[31m{found}\x1b[0m{rest}"
    print(text, file=sys.stderr)
    return error.exit_code


def _given(words: Sequence[str]) -> list[str | Path]:
    """Returns the words of a command line, with files as `Path`s for a reproducer to include."""
    return [Path(word) if os.path.isfile(word) else word for word in words]


def _dashed(word: str) -> str:
    """`--expected_output=a_b` => `--expected-output=a_b`: IREE's flags have underscores."""
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    name = name.replace("_", "-")
    name = _IREE.get(name, name)
    # argparse would take the next word as the optional value.
    return name + (equals or ("=" if name in _BARE else "")) + value


def _version() -> str:
    """The version of irees, and a line for each plug-in."""
    import warnings
    from importlib.metadata import version

    from irees.plugins import installed

    with warnings.catch_warnings(action="ignore"):
        found = installed()
    lines = [f"irees {version('irees')}"]
    for each in found:
        state = f"({each.problem})" if each.plugin is None else each.plugin.version
        lines.append(f"plug-in {each.name} {state}".rstrip())
    return "\n".join(lines)


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {meaning}" for name, meaning in COMMANDS.items()]
    codes = textwrap.wrap(f"exit codes: {EXIT_CODES}", 79)
    end = ("irees <command> --help", "", *codes)
    return "\n".join(("usage: irees <command> ...", "", *lines, "", *end))


if __name__ == "__main__":
    raise SystemExit(main())
