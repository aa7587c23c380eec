"""`irees compile`: compiles a program to a saved program, to C, or to the IR after a phase."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from irees.errors import ArgumentError, IreesError
from irees.tools.common import (
    Dumps,
    UsageError,
    add_options,
    add_remarks,
    import_source,
    options_of,
    printed_remarks,
    progress,
    source_for,
    source_of,
    write_bytes,
    write_output,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument("source", help="MLIR, ONNX, or - for standard input")
    parser.add_argument("-o", "--output", help="*.irees, *.so, *.c or *.mlir; - prints IR")
    parser.add_argument("--compile-to", metavar="PHASE", help="stop after this phase and print IR")
    parser.add_argument("--compile-from", metavar="PHASE", help="the source is IR after this phase")
    parser.add_argument(
        "--dump-compilation-phases-to", metavar="DIR", help="write the IR after each phase"
    )
    add_remarks(parser)
    Dumps.add_arguments(parser)
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compiles the program and writes the output. Raises an IreesError."""
    path, output = source_of(arguments), arguments.output
    if arguments.compile_to is None and output in (None, "-"):
        raise UsageError("an output is required", hint="use -o x.irees, or --compile-to=PHASE")
    if arguments.target == "reference":
        raise UsageError(
            "target=reference interprets the source, so there is nothing to write",
            hint="use `irees run --target=reference`, or compile for another target",
        )
    if output and output != "-" and path != "-" and Path(output).exists():
        if Path(output).samefile(path):
            raise ArgumentError(f"the output {output} is the input")
    from irees.compiler import compile

    dumps = Dumps.of(arguments)
    folder = arguments.dump_compilation_phases_to
    with printed_remarks(arguments.remarks), progress():
        source = import_source(path) if folder else source_for(path, arguments)
        hooks: dict[str, Any] = {"before": dumps.before, "listener": dumps.after}
        try:
            made = compile(
                source,
                to=arguments.compile_to,
                start=arguments.compile_from,
                after=_phase_writer(Path(folder), source) if folder else None,
                **(hooks if dumps.is_wanted else {}),
                **options_of(arguments),
            )
        except IreesError:
            dumps.failed()
            raise
    dumps.finish()
    _write(made, output)
    return 0


def _phase_writer(folder: Path, module: Any) -> Any:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"cannot make {folder}: {error.strerror}") from None
    from irees.frontends.mlir import print_module

    count = 0

    def write(name: str, module: Any, seconds: float) -> None:
        nonlocal count
        write_bytes(folder / f"{count:02}-{name}.mlir", print_module(module).encode())
        count += 1

    write("start", module, 0.0)
    return write


def _write(made: Any, output: str | None) -> None:
    from irees.runtime.device_program import DeviceProgram
    from irees.runtime.program import Program

    suffix = Path(output or "").suffix
    if isinstance(made, DeviceProgram):
        if suffix != ".irees":
            raise UsageError(f"{output} cannot hold several devices", hint="use .irees")
        made.save(Path(output or ""))
        return
    if not isinstance(made, Program):
        from irees.frontends.mlir import print_module

        write_output(output, print_module(made, elide_resources=output in (None, "-")))
        return
    if suffix == ".irees":
        made.save(Path(output or ""))
    elif suffix == ".so":
        write_bytes(Path(output or ""), made.image)
    elif suffix == ".c":
        if made.target_kind != "cpu":
            raise UsageError(
                f"{output} cannot hold kernels of a GPU",
                hint="use .irees, which has each text in its folder sources/",
            )
        from irees.backends.common.program_text import joined_texts

        write_output(output, joined_texts(made.sources))
    else:
        raise UsageError(
            f"{output} has no known suffix", hint="use .irees, .so, .c, or --compile-to= and .mlir"
        )
