"""Passes from text, in the syntax of xDSL or MLIR: `a,b{x=1}`, `builtin.module(func.func(a))`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import Any

from irees.errors import ArgumentError

_ANCHOR = re.compile(r"\s*(any|[\w.]+)\s*\(")


def made(pass_class: Any, spec: Any) -> Any:
    """Creates the pass of a spec; a boolean option without a value is true, as in MLIR."""
    switches = {each.name for each in fields(pass_class) if each.type in ("bool", bool)}
    arguments = {
        name: (True,) if not values and name.replace("-", "_") in switches else values
        for name, values in spec.parameters.items()
    }
    return pass_class.from_pass_spec(replace(spec, parameters=arguments))


def parse_passes(text: str, available: dict[str, Callable[[], Any]]) -> list[Any]:
    """
    Parses the passes of a pipeline, in xDSL's or MLIR's syntax.

    Raises ArgumentError for bad syntax, an unknown pass or a bad option.
    """
    from xdsl.utils.arg_spec import parse_pipeline
    from xdsl.utils.exceptions import ArgSpecParseError

    flat = flatten(text)
    if not flat:
        return []
    try:
        specs = list(parse_pipeline(flat))
    except ArgSpecParseError as error:  # not an Exception, so name it
        raise ArgumentError(
            f"bad pipeline {text!r}: {str(error).splitlines()[-1].strip()}"
        ) from None
    passes: list[Any] = []
    for spec in specs:
        if spec.name not in available:
            near = get_close_matches(spec.name, available, 3) or ["irees opt --list-passes"]
            raise ArgumentError(f"pass {spec.name!r} is unknown", hint=f"try {', '.join(near)}")
        try:
            passes.append(made(available[spec.name](), spec))
        except Exception as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ArgumentError(f"bad option of {spec.name}: {reason}") from None
    return passes


def flatten(text: str) -> str:
    """`builtin.module(func.func(a,b{x=1}),c)` => `a,b{x=1},c`. Raises ArgumentError."""
    text = text.strip()
    out: list[str] = []
    depth, braces, place = 0, 0, 0
    while place < len(text):
        anchor = None if braces else _ANCHOR.match(text, place)
        starts = place == 0 or text[place - 1] in "(,"
        if anchor and starts:
            depth, place = depth + 1, anchor.end()
            continue
        char = text[place]
        braces += (char == "{") - (char == "}")
        if char == ")" and not braces:
            depth -= 1
        else:
            out.append(char)
        place += 1
        if depth < 0:
            break
    if depth or braces:
        raise ArgumentError(f"the brackets of the pipeline {text!r} do not match")
    return re.sub(r",\s*,", ",", "".join(out)).strip(", ")
