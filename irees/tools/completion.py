"""
`irees completion SHELL`: prints a script that completes commands, options and their values.

    eval "$(irees completion bash)"          # in ~/.bashrc, the same for zsh in ~/.zshrc
    irees completion fish > ~/.config/fish/completions/irees.fish

The script has all names of this version of irees, so that completing starts no Python.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Flag:
    """An option or a positional argument: its spellings, its help, and known values."""

    names: list[str]
    help: str
    takes_value: bool
    values: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument("shell", choices=tuple(SHELLS), help="the shell of the script")


def run(arguments: argparse.Namespace) -> int:
    """Prints the script."""
    print(SHELLS[arguments.shell](flags_of_commands()), end="")
    return 0


def flags_of_commands() -> dict[str, list[Flag]]:
    """Returns the flags of each command."""
    from irees.tools.main import COMMANDS, parser_of

    return {command: list(_flags(parser_of(command))) for command in COMMANDS}


def _flags(parser: argparse.ArgumentParser) -> Iterator[Flag]:
    for action in parser._actions:
        values = [str(each) for each in action.choices or ()]
        if action.metavar == "PHASE":
            from irees.options import Options
            from irees.pipeline import phases

            values = [phase.name for phase in phases(Options())]
        if action.dest == "target":
            values = ["cpu", "cuda", "cuda-emulated", "reference"]
        text = (action.help or "").replace("%%", "%")
        yield Flag(list(action.option_strings), text, action.nargs != 0, values)


def _bash(commands: dict[str, list[Flag]]) -> str:
    lines = [
        "# Bash splits --flag=value at the equals sign.",
        "_irees() {",
        "  local cur=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD-1]}",
        '  if [ "$cur" = = ]; then cur=; elif [ "$flag" = = ]; then'
        " flag=${COMP_WORDS[COMP_CWORD-2]}; fi",
        "  local words=",
        '  if [ "$COMP_CWORD" = 1 ]; then',
        f"    words={shlex.quote(' '.join(commands))}",
        '  else case "${COMP_WORDS[1]} $flag" in',
    ]
    for command, flags in commands.items():
        for flag in flags:
            if flag.values and flag.names:
                cases = "|".join(shlex.quote(f"{command} {name}") for name in flag.names)
                lines.append(f"    {cases}) words={shlex.quote(' '.join(flag.values))};;")
        names = [name for flag in flags for name in flag.names]
        values = [value for flag in flags if not flag.names for value in flag.values]
        lines.append(f"    {shlex.quote(command + ' ')}*) words={shlex.quote(' '.join(names))}")
        lines.append(f"      [[ $cur == -* ]] || words={shlex.quote(' '.join(values))};;")
    lines += [
        "  esac; fi",
        '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
        "}",
        "complete -o default -F _irees irees",
    ]
    return "\n".join(lines) + "\n"


def _zsh(commands: dict[str, list[Flag]]) -> str:
    named = " ".join(shlex.quote(f"{name}:{text}") for name, text in _meanings(commands))
    lines = ["#compdef irees", "_irees() {", f"  local -a commands=({named})"]
    lines.append("  if (( CURRENT == 2 )); then _describe command commands; return; fi")
    lines.append("  local command=$words[2]; shift words; (( CURRENT-- )); case $command in")
    for command, flags in commands.items():
        specs = [spec for flag in flags for spec in _zsh_specs(flag)]
        lines.append(f"    {command}) _arguments {' '.join(map(shlex.quote, specs))};;")
    return "\n".join([*lines, "  esac", "}", "compdef _irees irees", ""])


def _zsh_specs(flag: Flag) -> Iterator[str]:
    """Yields the specifications of `_arguments` for a flag."""
    values = f"({' '.join(flag.values)})" if flag.values else "_files"
    if not flag.names:
        yield f"*:file:{values}"
    text = flag.help.translate({ord(c): f"\\{c}" for c in "[]:\\"}).replace("\n", " ")
    for name in flag.names:
        after = f":value:{values}" if flag.takes_value else ""
        equals = ("=" if name.startswith("--") else "") if flag.takes_value else ""
        yield f"*{name}{equals}[{text}]{after}"


def _fish(commands: dict[str, list[Flag]]) -> str:
    lines: list[str] = []
    for name, text in _meanings(commands):
        lines.append(f"complete -c irees -f -n __fish_use_subcommand -a {name} -d {_quoted(text)}")
    for command, flags in commands.items():
        within = f'complete -c irees -n "__fish_seen_subcommand_from {command}"'
        for flag in flags:
            words = [f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in flag.names]
            words += ["-r"] * (flag.takes_value and bool(flag.names))
            words += [f"-fa {_quoted(' '.join(flag.values))}"] * bool(flag.values)
            if words:
                lines.append(f"{within} {' '.join(words)} -d {_quoted(flag.help)}")
    return "\n".join(lines) + "\n"


def _meanings(commands: dict[str, list[Flag]]) -> Iterator[tuple[str, str]]:
    from irees.tools.main import COMMANDS

    yield from ((name, COMMANDS[name]) for name in commands)


def _quoted(text: str) -> str:
    """Quotes a word for fish, where only a backslash and a quote are special."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
