"""`irees completion`: each shell completes commands, options and values; each option has a help."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from irees import errors
from irees.tools.completion import SHELLS, flags_of_commands
from irees.tools.main import COMMANDS, EXIT_CODES, main

COMMANDS_OF = flags_of_commands()
CASES = [
    ("re", {"reduce", "report"}),
    ("compile --ta", {"--target"}),
    ("compile --fp st", {"strict"}),
    ("cache p", {"prune"}),
    ("diff --compile-to glo", set()),  # an option of another command
]
BASH = """
COMP_WORDS=(irees {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); _irees
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def ask(shell: str, script: str, words: str, tmp_path) -> set[str]:
    """Returns what a shell offers for the last word of a command line."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell}: apt install {shell}, then run this test")
    if shell == "bash":
        text = script + BASH.format(words=words.replace("=", " = "))
        done = subprocess.run([program, "-c", text], capture_output=True, text=True, check=True)
        return set(done.stdout.split())
    path = tmp_path / "irees.fish"
    path.write_text(script)
    text = f"source {path}; complete -C 'irees {words}'"
    done = subprocess.run([program, "-c", text], capture_output=True, text=True, check=True)
    return {line.split("\t")[0] for line in done.stdout.splitlines()}


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize(("words", "offered"), CASES)
def test_completion(shell, words, offered, tmp_path):
    assert ask(shell, SHELLS[shell](COMMANDS_OF), words, tmp_path) == offered


@pytest.mark.parametrize(("shell", "start"), [("bash", ""), ("fish", "--target=")])
def test_values_behind_an_equals_sign(shell, start, tmp_path):
    found = ask(shell, SHELLS[shell](COMMANDS_OF), "compile --target=cu", tmp_path)
    assert found == {f"{start}cuda", f"{start}cuda-emulated"}


def test_zsh_takes_the_script(tmp_path, capsys):
    program = shutil.which("zsh")
    if program is None:
        pytest.skip("no zsh: apt install zsh, then run this test")
    assert main(["completion", "zsh"]) == 0
    path = tmp_path / "_irees"
    path.write_text(capsys.readouterr().out)
    text = f"autoload -Uz compinit; compinit -u -D; source {path}; print $_comps[irees]"
    done = subprocess.run([program, "-fc", text], capture_output=True, text=True, check=True)
    assert done.stdout == "_irees\n"
    assert done.stderr == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_argument_has_a_help_text(command):
    without = [flag for flag in COMMANDS_OF[command] if not flag.help]
    assert without == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("compile --taget=cpu x", "unrecognized argument '--taget=cpu' (did you mean --target?)"),
        ("compile --fp=strit x", "argument --fp: invalid choice: 'strit', use strict"),
        ("compile", "the following arguments are required: source"),
        ("completion zhs", "argument shell: invalid choice: 'zhs', use zsh"),
    ],
)
def test_a_wrong_command_line_is_one_line_with_the_nearest_name(words, said, capsys):
    assert main(words.split()) == 2
    command = words.split()[0]
    end = f"; irees {command} --help lists the arguments\n"
    assert capsys.readouterr().err == f"irees: error: {said}{end}"


def test_the_overview_has_all_exit_codes(capsys):
    assert main(["--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert EXIT_CODES in said
    codes = {int(code) for code in re.findall(r"(?:^|, )(\d+) ", EXIT_CODES)}
    assert codes == {0, 2, 130, *(kind.exit_code for kind in errors.IreesError.__subclasses__())}


def test_errors_are_colored_on_a_terminal(monkeypatch, capsys):
    for color in (False, True):
        monkeypatch.setattr("irees.tools.common.takes_colors", lambda _, color=color: color)
        assert main(["compile"]) == 2
        assert ("\x1b[31merror: \x1b[0m" in capsys.readouterr().err) == color
