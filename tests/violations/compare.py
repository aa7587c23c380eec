"""
Runs programs on arguments that break what they declare, between guard pages, beside the interpreter.

    python -m tests.violations.compare --listed [--dead]
    python -m tests.violations.compare --seed 0 --programs 1000 --state fuzz.json

The process prints a JSON record for each program, before it runs it and after, so that who reads it
knows which program ended it. With `--state`, it goes on after the last seed that a run before it
finished. With `--dead` nothing reads the results: the programs return their first tensor instead. A
difference is a call that one of both refuses, or another result.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.rewriter import Rewriter

import irees
from irees.errors import InternalError, IreesError, OutOfMemoryError
from irees.frontends.mlir.importer import import_mlir
from irees.testing.guarded import against, guarded, placed
from tests.violations.programs import LISTED, Program
from tests.violations.random_programs import random_program

MOST_BYTES = 12 << 30
"""Address space of the process: a program may ask for more memory than the machine has."""
OUT_OF_MEMORY = OutOfMemoryError.__name__
CALLS = 12
"""How often each program is called."""
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


def answer(program: Any, arguments: list[np.ndarray | int], *, guards: bool) -> Any:
    """The results of a call, or the name of the error that refuses it."""
    given = [placed(a) if guards and isinstance(a, np.ndarray) else a for a in arguments]
    try:
        results = program(*given)
        return [np.array(r) for r in (results if isinstance(results, tuple) else [results])]
    except InternalError:
        raise
    except IreesError as error:
        return type(error).__name__


def agree(want: Any, got: Any) -> bool:
    """Whether both are refusals, or equal results; one side may need more memory than it gets."""
    if OUT_OF_MEMORY in (str(want), str(got)):
        return True
    if isinstance(want, str) or isinstance(got, str):
        return isinstance(want, str) and isinstance(got, str)
    return len(want) == len(got) and all(
        a.shape == b.shape and np.allclose(a, b, equal_nan=True, **TOLERANCE)
        for a, b in zip(want, got, strict=True)
    )


def dead(program: Program) -> Program:
    """
    The program with another result, its first tensor: all ops that it had are dead. One that is
    refused stays as it is.
    """
    try:
        module = import_mlir(program.text)
    except IreesError:
        return program
    assert isinstance(module, ModuleOp)
    (function,) = [op for op in module.ops if isinstance(op, func.FuncOp)]
    block = function.body.block
    kept = next(a for a in block.args if isinstance(a.type, TensorType))
    assert block.last_op is not None
    Rewriter.replace_op(block.last_op, func.ReturnOp(kept))
    function.update_function_type()
    return replace(program, text=str(module))


def compare(program: Program, seed: int, target: str) -> dict[str, Any]:
    """What became of a program: `refused`, or counts of calls, and the first difference."""
    try:
        reference = irees.compile(program.text, target="reference")
        compiled = irees.compile(program.text, target=target)
    except InternalError as error:
        return {"internal": str(error)[:2000]}
    except IreesError as error:
        return {"refused": str(error).partition("\n")[0]}
    guards = target == "cpu"
    compiled = guarded(compiled) if guards else compiled
    counts: Counter[str] = Counter()
    for number, arguments in enumerate(program.calls(np.random.default_rng(seed), CALLS)):
        want = answer(reference, arguments, guards=False)
        if guards:
            with against("front" if number % 2 else "back"):
                got = answer(compiled, arguments, guards=True)
        else:
            got = answer(compiled, arguments, guards=False)
        counts["trapped" if isinstance(want, str) else "ran"] += 1
        if not agree(want, got):
            told = [a.tolist() if isinstance(a, np.ndarray) else a for a in arguments]
            shapes = [list(np.shape(a)) for a in arguments]
            found = {"arguments": told, "shapes": shapes, "want": repr(want), "got": repr(got)}
            return {"different": found, **counts}
    return dict(counts)


def programs(options: argparse.Namespace) -> Any:
    """Name, program and seed of each that is asked for."""
    if options.listed:
        for seed, (name, program) in enumerate(LISTED.items()):
            if options.only in name:
                yield name, program, seed
        return
    first = options.seed
    if options.state and options.state.exists():
        first = json.loads(options.state.read_text())["next"]
    for seed in range(first, first + options.programs):
        yield f"seed {seed}", random_program(np.random.default_rng(seed)), seed


def main() -> None:
    """Compares, and prints a record a line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--listed", action="store_true")
    parser.add_argument("--dead", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--state", type=Path)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    for name, program, seed in programs(options):
        program = dead(program) if options.dead else program
        print(json.dumps({"begin": name, "text": program.text}), flush=True)
        start = time.perf_counter()
        record = compare(program, seed, options.target)
        seconds = round(time.perf_counter() - start, 2)
        print(json.dumps({"end": name, "seconds": seconds, **record}), flush=True)
        if options.state:
            options.state.write_text(json.dumps({"next": seed + 1}))


if __name__ == "__main__":
    sys.exit(main())
