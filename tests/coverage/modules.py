"""
PyTorch's databases of modules, higher-order and custom operators through `torch.compile`.

    python tests/coverage/modules.py --limit 1 --backends irees inductor --out modules.json

Each module with its sample inputs in eval and in train mode: results, gradients of inputs and of
parameters, and buffers are those of eager. Random modules are compared by shape. Each case runs with
every backend, one after the other, in a worker process that is replaced when it dies or hangs.
"""

from __future__ import annotations

import argparse
import collections
import copy
import json
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.custom_op_db import custom_op_db
from torch.testing._internal.hop_db import hop_db
from torch.utils._pytree import tree_leaves, tree_map

sys.path.insert(0, str(Path(__file__).parent))
from workers import run_all

RANDOM = ("Dropout", "RReLU", "FractionalMaxPool")


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors of nested values."""
    return [t for t in tree_leaves(value) if isinstance(t, torch.Tensor)]


def copied(value: Any) -> Any:
    """Nested values with tensors of their own."""
    return tree_map(
        lambda t: (
            t.detach().clone().requires_grad_(t.requires_grad) if isinstance(t, torch.Tensor) else t
        ),
        value,
    )


def run(function: Any, module: Any, args: Any, kwargs: Any, backward: bool) -> list[torch.Tensor]:
    """Results, gradients and buffers of a call."""
    torch.manual_seed(0)
    results = tensors(function(*args, **kwargs))
    found = [r.detach() for r in results]
    if backward:
        loss = sum(
            (r.abs() if r.is_complex() else r).float().sum() for r in results if r.requires_grad
        )
        if isinstance(loss, torch.Tensor):
            loss.backward()
        inputs = [t for t in tensors((args, kwargs)) if t.requires_grad]
        parameters = [] if module is None else list(module.parameters())
        found += [t.grad for t in (*inputs, *parameters) if t.grad is not None]
    return found + ([] if module is None else [b.detach().clone() for b in module.buffers()])


def differ(mine: list[torch.Tensor], theirs: list[torch.Tensor], random: bool) -> str | None:
    """What differs, or None."""
    if len(mine) != len(theirs):
        return f"{len(mine)} tensors, not {len(theirs)}"
    for i, (g, w) in enumerate(zip(mine, theirs)):
        if g.shape != w.shape or g.dtype != w.dtype:
            return f"tensor {i} is {g.dtype} {list(g.shape)}, not {w.dtype} {list(w.shape)}"
        if random:
            continue
        try:
            torch.testing.assert_close(g, w, rtol=1e-4, atol=1e-4, equal_nan=True)
        except AssertionError as error:
            return f"tensor {i}: {' '.join(str(error).split())[:140]}"
    return None


def judged(
    backend: str, function: Any, module: Any, args: Any, kwargs: Any, backward: bool, random: bool
) -> str:
    """PASS, WRONG, ERROR or EAGER."""
    twin = copy.deepcopy(module)
    original = function if module is None else twin
    try:
        theirs = run(original, twin, copied(args), copied(kwargs), backward)
    except Exception as error:
        return f"EAGER {type(error).__name__}"
    torch._dynamo.reset()
    try:
        fast = torch.compile(function if module is None else module, backend=backend)
        mine = run(fast, module, copied(args), copied(kwargs), backward)
    except Exception as error:
        return f"ERROR {type(error).__name__} {' '.join(str(error).split())[:250]}"
    why = differ(mine, theirs, random)
    return "PASS" if why is None else f"WRONG {why}"


def module_cases(limit: int, only: str) -> Iterator[tuple[str, Any]]:
    """The samples of module_db, eval and train."""
    for info in module_db:
        if only not in info.name:
            continue
        for training in (False, True):
            try:
                samples = info.module_inputs_func(
                    info, device="cpu", dtype=torch.float32, requires_grad=True, training=training
                )
            except Exception:  # the database cannot make inputs
                continue
            for number, sample in enumerate(samples):
                if number >= limit or sample.forward_input is None:
                    continue
                given = sample.constructor_input
                try:
                    module = info.module_cls(*given.args, **given.kwargs)
                except Exception:  # needs another device or dtype
                    continue
                module.train(training)
                name = f"{info.name}.{'train' if training else 'eval'}#{number}"
                inputs = sample.forward_input
                random = training and any(word in info.name for word in RANDOM)
                yield name, (module, module, inputs.args, inputs.kwargs, True, random)


def operator_cases(database: Any, kind: str, limit: int, only: str) -> Iterator[tuple[str, Any]]:
    """The samples of hop_db or custom_op_db, with gradients where the operator has them."""
    for op in database:
        variant = f".{op.variant_test_name}" if op.variant_test_name else ""
        if only not in f"{op.name}{variant}":
            continue
        dtype = next(iter(op.dtypes), torch.float32)
        dtype = torch.float32 if torch.float32 in op.dtypes else dtype
        backward = bool(op.supports_autograd) and dtype.is_floating_point
        try:
            samples = list(op.sample_inputs("cpu", dtype, requires_grad=backward))[:limit]
        except Exception as error:  # the database cannot make inputs
            print(f"{kind}.{op.name}{variant}: no samples: {error}", file=sys.stderr)
            continue
        for number, sample in enumerate(samples):
            args = (sample.input, *sample.args)
            name = f"{kind}.{op.name}{variant}#{number}"
            yield name, (op.op, None, args, sample.kwargs, backward, False)


def all_cases(limit: int, only: str) -> Iterator[tuple[str, Any]]:
    """The cases of all databases."""
    torch.manual_seed(0)
    yield from module_cases(limit, only)
    yield from operator_cases(hop_db, "hop", limit, only)
    yield from operator_cases(custom_op_db, "custom", limit, only)


def part_of(name: str) -> str:
    """The module or operator that a case is of."""
    whole = name.partition("#")[0].removesuffix(".eval").removesuffix(".train")
    return whole.removeprefix("hop.").removeprefix("custom.")


def worker(limit: int) -> None:
    """Answers each line, a case and a backend, with a line of JSON."""
    warnings.filterwarnings("ignore")
    logging.getLogger("irees").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        name, backend = json.loads(line)
        case = next(case for each, case in all_cases(limit, part_of(name)) if each == name)
        kind, _, why = judged(backend, *case).partition(" ")
        print(json.dumps({"verdict": kind, "why": why}), file=answers, flush=True)


def summary(results: dict[str, dict[str, dict[str, str]]]) -> str:
    """How many cases are right by each backend, of those that eager runs."""
    lines = []
    for backend in sorted({b for found in results.values() for b in found}):
        kinds = collections.Counter(f[backend]["verdict"] for f in results.values() if backend in f)
        total = kinds.total() - kinds["EAGER"]
        lines.append(f"{backend}: {kinds['PASS']} of {total} right; {dict(kinds)}")
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=int, default=1 << 30)
    parser.add_argument("--only", default="")
    parser.add_argument("--backends", nargs="+", default=["irees"])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one case")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        worker(arguments.limit)
        return
    warnings.filterwarnings("ignore")
    names = [name for name, _ in all_cases(arguments.limit, arguments.only)]
    results: dict[str, dict[str, dict[str, str]]] = {}

    def done(name: str, backend: str, found: dict[str, str]) -> None:
        results.setdefault(name, {})[backend] = found
        if found["verdict"] not in ("PASS", "EAGER"):
            print(name, backend, found["verdict"], found["why"], flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps(results, indent=1, sort_keys=True))

    pairs = [(name, backend) for name in names for backend in arguments.backends]
    command = [sys.executable, __file__, "--worker", "--limit", str(arguments.limit)]
    run_all(command, pairs, arguments.jobs, arguments.timeout, done)
    print(summary(results))


if __name__ == "__main__":
    main()
