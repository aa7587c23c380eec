"""
Runs torch-mlir's end-to-end programs as modules through irees' own importer, and counts.

    PYTHONPATH=TORCH_MLIR/projects/pt1/python python tests/coverage/torch_mlir_programs.py \
        --out results.json

The suite is not in torch-mlir's wheel: the path is that of a checkout. Answers are compared as the
suite does, floats to 1e-3 of each element (halves 1e-2), all else exactly. An answer that eager
itself does not repeat (`PASS random`) is compared with the mean of 16 runs of eager: each element
must be within 6 of their standard deviations.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import sys
import types
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

TIMEOUT = 180
RUNS = 16
"""Runs of eager that say how far apart the answers of a random program are."""
DEVIATIONS = 6


def programs() -> dict[str, Any]:
    """The suite's tests by name; torchvision, which three of them use, is not needed for it."""
    import packaging.version
    import torch

    module = types.ModuleType("torch_mlir._version")
    module.version = packaging.version  # type: ignore[attr-defined]
    module.torch_version_for_comparison = lambda: packaging.version.parse(  # type: ignore
        torch.__version__.split("+")[0]
    )
    sys.modules["torch_mlir._version"] = module
    for name in ("torchvision", "torchvision.models", "torchvision.ops"):
        sys.modules[name] = MagicMock()
    from torch_mlir_e2e_test.registry import GLOBAL_TEST_REGISTRY
    from torch_mlir_e2e_test.test_suite import register_all_tests

    register_all_tests()
    return {test.unique_name: test for test in GLOBAL_TEST_REGISTRY}


def compare(got: Any, want: Any) -> str | None:
    """What differs, or None."""
    import torch
    from torch.utils._pytree import tree_leaves

    mine, theirs = tree_leaves(got), tree_leaves(want)
    if len(mine) != len(theirs):
        return f"{len(mine)} results, not {len(theirs)}"
    for i, (g, w) in enumerate(zip(mine, theirs)):
        g, w = torch.as_tensor(g), torch.as_tensor(w)
        if g.shape != w.shape or (g.dtype != w.dtype and isinstance(w, torch.Tensor) and w.dim()):
            return f"result {i} is {g.dtype} {list(g.shape)}, not {w.dtype} {list(w.shape)}"
        if not w.is_floating_point() and not w.is_complex():
            if not torch.equal(g.to(w.dtype), w):
                return f"result {i}: integers differ"
            continue
        low = w.element_size() <= 2
        tolerance = {"rtol": 1e-2 if low else 1e-3, "atol": 1e-2 if low else 1e-5}
        kind = torch.complex128 if w.is_complex() else torch.float64
        if not torch.allclose(g.to(kind), w.to(kind), equal_nan=True, **tolerance):
            return f"result {i}: values differ"
    return None


def copies(values: Any) -> Any:
    """The same inputs in memory of their own, since programs may write to them."""
    import torch
    from torch.utils._pytree import tree_map

    return tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, values)


def is_one_of_eagers(got: Any, test: Any, call: Any) -> bool:
    """Whether eager repeats itself less closely than this answer is to the mean of its runs."""
    import torch
    from torch.utils._pytree import tree_leaves

    def run() -> list[Any]:
        module = test.program_factory()
        with torch.no_grad():
            result = getattr(module, call.symbol)(*copies(tuple(call.inputs)))
        return [torch.as_tensor(x).double() for x in tree_leaves(result)]

    runs = [torch.stack(column) for column in zip(*(run() for _ in range(RUNS)))]
    if all(bool((column == column[0]).all()) for column in runs):
        return False
    leaves = [torch.as_tensor(x).double() for x in tree_leaves(got)]
    bounds = [DEVIATIONS * column.std(0) + 1e-3 * column.mean(0).abs() + 1e-5 for column in runs]
    return all(
        bool(((leaf - column.mean(0)).abs() <= bound).all())
        for leaf, column, bound in zip(leaves, runs, bounds, strict=True)
    )


def verdict(test: Any, target: str) -> str:
    """What irees makes of one program."""
    import torch
    from torch.utils._pytree import tree_leaves
    from torch_mlir_e2e_test.framework import generate_golden_trace

    import irees
    from irees.errors import IreesError

    try:
        trace = generate_golden_trace(test)
        module = test.program_factory()
        if len(trace) != 1:
            return "EAGER several calls"
        if any(isinstance(x, MagicMock) for x in tree_leaves(trace[0].output)):
            return "EAGER needs torchvision"
    except BaseException as error:
        return f"EAGER {type(error).__name__}"
    inputs = tuple(trace[0].inputs)
    try:
        with torch.no_grad():
            got = irees.compile(module, inputs, target=target)(*copies(inputs))
    except IreesError as error:
        return f"UNSUPPORTED {' '.join(str(error).split())[:300]}"
    except Exception as error:
        return f"ERROR {type(error).__name__} {' '.join(str(error).split())[:300]}"
    why = compare(got, trace[0].output)
    if why is None:
        return "PASS"
    return "PASS random" if is_one_of_eagers(got, test, trace[0]) else f"WRONG {why}"


def worker(names: Any, target: str, results: Any) -> None:
    """Runs programs whose names come through a queue."""
    warnings.filterwarnings("ignore")
    tests = programs()
    while (name := names.get()) is not None:
        results.put((name, None))
        results.put((name, verdict(tests[name], target)))
    results.put((None, None))


def run(wanted: list[str], target: str) -> dict[str, str]:
    """All of these in one process after the other, until each has an answer."""
    found: dict[str, str] = {}
    left = list(wanted)
    context = multiprocessing.get_context("spawn")
    while left:
        names, results = context.Queue(), context.Queue()
        for name in [*left, None]:
            names.put(name)
        process = context.Process(target=worker, args=(names, target, results))
        process.start()
        current = None
        while True:
            try:
                name, answer = results.get(timeout=TIMEOUT if current else 300)
            except Exception:  # no answer in time
                process.kill()
                found[current or left[0]] = "TIMEOUT"
                break
            if name is None:
                break
            current = name
            if answer is not None:
                found[name] = answer
            elif not process.is_alive():
                found[name] = f"CRASH {process.exitcode}"
                break
        process.join(5)
        left = [name for name in left if name not in found]
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="1/1", help="as in 1/2: the first half")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    names = [name for name in programs() if arguments.only in name]
    part, parts = map(int, arguments.part.split("/"))
    found = run(names[part - 1 :: parts], arguments.target)
    for name, answer in sorted(found.items()):
        if not answer.startswith(("PASS", "EAGER")):
            print(name, answer)
    counts = collections.Counter(answer.split()[0] for answer in found.values())
    print(f"{counts['PASS']} of {len(found) - counts['EAGER']} programs pass;", dict(counts))
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
