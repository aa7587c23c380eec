"""
Writes a page per pass below docs/passes/, from the passes themselves, docs/limits.md and
docs/options.md.

    python docs/generate.py [FOLDER]

A page is the essay of the module, the options of the class and where both live. A test
compares the pages in the repository with what this prints.
"""

from __future__ import annotations

import sys
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path
from textwrap import dedent

from irees import errors as errors_module
from irees import limits
from irees.errors import IreesError
from irees.options import Options
from irees.pipeline import PHASES
from irees.transforms import load_pass, pass_modules

HERE = Path(__file__).parent


def page(name: str, module: str) -> str:
    """The Markdown of one pass."""
    essay = fenced((import_module(module).__doc__ or "").strip())
    cls = load_pass(name)
    path = module.replace(".", "/")
    path += "/" if (HERE.parent / path).is_dir() else ".py"
    used = [p.name for p in PHASES if any(each.name == name for each in p.passes)]
    lines = [f"# {name}", "", essay, ""]
    options = [f for f in fields(cls) if f.init]
    if options:
        lines += ["| option | type | default |", "|---|---|---|"]
        for option in options:
            default = "required" if option.default is MISSING else repr(option.default)
            lines.append(f"| `{option.name}` | `{option.type}` | `{default}` |")
        lines.append("")
    where = f"phase {', '.join(used)}" if used else "not in the default pipeline"
    lit = path.replace("irees/", "filecheck/", 1).removesuffix("/").removesuffix(".py") + ".mlir"
    lines.append(f"Runs in: {where}. Code: `{path}`. Cases: `{lit}`.")
    return "\n".join(lines) + "\n"


def fenced(text: str) -> str:
    """
    Puts examples, which are indented in a docstring, between fences.

    Otherwise a `=>` that is indented less would end an example.
    """
    found: list[str] = []
    for part in text.split("\n\n"):
        if not part.startswith("    "):
            found.append(part)
        elif found and found[-1].endswith("\n```"):
            found[-1] = f"{found[-1].removesuffix('```')}\n{dedent(part)}\n```"
        else:
            found.append(f"```\n{dedent(part)}\n```")
    return "\n\n".join(found)


def index() -> str:
    """The list of all pages, in the order of the pipeline."""
    modules = pass_modules()
    lines = ["# Passes", "", "In the order in which they run.", ""]
    seen: set[str] = set()
    for phase in PHASES:
        lines += [f"## {phase.name}", "", f"{phase.meaning}.", ""]
        for each in phase.passes:
            if each.name in modules:
                seen.add(each.name)
                lines.append(
                    f"- [{each.name}](passes/{each.name}.md): {load_pass(each.name).__doc__}"
                )
            else:
                lines.append(f"- {each.name} (xDSL)")
        lines.append("")
    rest = [n for n in modules if n not in seen]
    if rest:
        lines += ["## On request", "", *(f"- [{n}](passes/{n}.md)" for n in rest), ""]
    return "\n".join(lines)


def limits_page() -> str:
    """The table of limits."""
    lines = ["# Limits", "", (limits.__doc__ or "").strip(), ""]
    lines += ["| limit | default | unit | bounds |", "|---|---:|---|---|"]
    lines += [f"| `{x.name}` | {x.default:,} | {x.unit} | {x.bounds} |" for x in limits.TABLE]
    lines += [
        "",
        '`irees.compile(..., limits={"ops": 10_000_000})` and `--limit ops=10000000` override one.',
    ]
    lines += ["", "What takes `work`, in steps of about one microsecond of the compiler:", ""]
    lines += ["| construct | steps | for each |", "|---|---:|---|"]
    lines += [f"| {name} | {x.steps} | {x.per} |" for name, x in limits.COSTS.items()]
    return "\n".join(lines) + "\n"


def options_page() -> str:
    """The table of options, and of exit codes."""
    lines = [
        "# Options and exit codes",
        "",
        "`irees.compile(program, name=value)`, and the flags of",
    ]
    lines += ["`irees compile`, `run`, `bench`, `explain` and `check-module`.", ""]
    lines += ["| option | flag | default | |", "|---|---|---|---|"]
    for each in fields(Options):
        flag = each.metadata.get("flag", "--" + each.name.replace("_", "-"))
        default = f"`{each.default!r}`"
        lines.append(f"| `{each.name}` | `{flag}` | {default} | {each.metadata['help']} |")
    lines += ["", "A command ends with the exit code of the error that it prints:", ""]
    lines += ["| code | error | |", "|---:|---|---|"]
    lines += ["| 0 | | everything worked |", "| 2 | | the command line cannot be understood |"]
    for kind in errors():
        meaning = (kind.__doc__ or "").strip().splitlines()[0]
        lines.append(f"| {kind.exit_code} | `{kind.__name__}` | {meaning} |")
    return "\n".join([*lines, "| 130 | | interrupted |"]) + "\n"


def errors() -> list[type[IreesError]]:
    """The classes of errors of irees, by exit code."""
    found = [
        each
        for each in vars(errors_module).values()
        if isinstance(each, type) and issubclass(each, IreesError) and each is not IreesError
    ]
    return sorted(found, key=lambda each: each.exit_code)


def main() -> None:
    """Writes all pages."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    (folder / "passes").mkdir(parents=True, exist_ok=True)
    for name, module in pass_modules().items():
        (folder / "passes" / f"{name}.md").write_text(page(name, module))
    (folder / "passes.md").write_text(index())
    (folder / "limits.md").write_text(limits_page())
    (folder / "options.md").write_text(options_page())


if __name__ == "__main__":
    main()
