"""
PyTorch's databases of modules, higher-order and custom operators through `torch.compile`.

    python tests/coverage/modules.py --limit 1 --backends irees inductor --out modules.json

Each module with its sample inputs in eval and in train mode, each operator with its samples:
results, gradients of inputs and of parameters, changed arguments and buffers are compared with
eager's. Cases run in a worker process, which is replaced when it dies or hangs. A process has one
backend: irees tells PyTorch the shapes of operators, which others would see. `--out` is written
after each case; `--reuse` skips what it has.

| verdict | meaning |
|---|---|
| PASS | all equals eager's; of a case that draws numbers, shapes and dtypes |
| WRONG | it does not |
| ERROR, CRASH, TIMEOUT | an exception, the process died, or took too long |
| EMPTY | as eager's, but Dynamo finds no graph, so nothing was compiled |
| EAGER | the case fails in PyTorch itself |
"""

from __future__ import annotations

import argparse
import collections
import copy
import functools
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch._dynamo.utils import counters
from torch.nn.modules.lazy import LazyModuleMixin
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.custom_op_db import custom_op_db
from torch.testing._internal.hop_db import hop_db
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map

sys.path.insert(0, str(Path(__file__).parent))
from workers import Fallbacks, answer, run_all

Results = dict[str, dict[str, dict[str, Any]]]
"""Case => backend => what `judged` says."""

TOLERANCE = 1e-4
"""Relative and absolute, for every backend: samples are f32, sums of at most some thousand terms."""


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


def weighted(results: list[torch.Tensor]) -> torch.Tensor | None:
    """A sum of results with a weight for each element: those of a softmax add up to 1."""
    loss = None
    for r in results:
        if r.requires_grad:
            real = torch.view_as_real(r) if r.is_complex() else r
            weights = torch.arange(real.numel(), dtype=torch.float32).cos().reshape(real.shape)
            term = (real.float() * weights).sum()
            loss = term if loss is None else loss + term
    return loss


def run(
    function: Any, module: Any, args: Any, kwargs: Any, backward: bool, seed: int = 0
) -> dict[str, Any]:
    """What a call leaves: results, gradients, arguments and buffers, by name."""
    torch.manual_seed(seed)
    leaves, structure = tree_flatten(function(*args, **kwargs))
    found: dict[str, Any] = {"structure": structure}
    found.update({f"result {i}": copied(leaf) for i, leaf in enumerate(leaves)})
    given = dict(enumerate(tensors((args, kwargs))))
    parameters = {} if module is None else dict(module.named_parameters())
    if backward and (loss := weighted(tensors(leaves))) is not None:
        loss.backward()
        for name, t in {**given, **parameters}.items():
            found[f"gradient {name}"] = t.grad if t.requires_grad else None
    found.update({f"argument {i}": t.detach().clone() for i, t in given.items()})
    if module is not None:
        found.update({f"buffer {name}": b.detach().clone() for name, b in module.named_buffers()})
    return found


def differ(mine: dict[str, Any], theirs: dict[str, Any], random: bool) -> str | None:
    """What differs, or None."""
    if list(mine) != list(theirs):
        return f"has {sorted(set(mine) ^ set(theirs))} or not"
    for name, w in theirs.items():
        g = mine[name]
        if not isinstance(w, torch.Tensor) or not isinstance(g, torch.Tensor):
            if isinstance(w, torch.Tensor) or isinstance(g, torch.Tensor) or g != w:
                return f"{name} is {str(g)[:60]}, not {str(w)[:60]}"
        elif g.shape != w.shape or g.dtype != w.dtype:
            return f"{name} is {g.dtype} {list(g.shape)}, not {w.dtype} {list(w.shape)}"
        elif not random:
            try:
                torch.testing.assert_close(g, w, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
            except AssertionError as error:
                return f"{name}: {' '.join(str(error).split())[:140]}"
    return None


def judged(
    backend: str, function: Any, module: Any, args: Any, kwargs: Any, backward: bool
) -> dict[str, Any]:
    """The verdict, why, how many graphs were compiled, and what ran in PyTorch."""

    if isinstance(module, LazyModuleMixin):
        # The first call makes the weights, which would be other ones by another seed.
        with torch.no_grad():
            module(*copied(args), **copied(kwargs))

    def eager(seed: int) -> dict[str, Any]:
        twin = copy.deepcopy(module)
        original = function if module is None else twin
        return run(original, twin, copied(args), copied(kwargs), backward, seed)

    try:
        theirs, others = eager(0), eager(1)
    except Exception as error:
        return {"verdict": "EAGER", "why": described(error)}
    random = differ(others, theirs, False) is not None
    torch._dynamo.reset()
    counters.clear()
    notes = Fallbacks()
    logging.getLogger("irees").addHandler(notes)
    try:
        fast = torch.compile(function if module is None else module, backend=backend)
        # Otherwise Dynamo leaves LSTM, GRU and RNN to eager.
        with torch._dynamo.config.patch(allow_rnn=True):
            mine = run(fast, module, copied(args), copied(kwargs), backward)
    except Exception as error:
        return {"verdict": "ERROR", "why": described(error)}
    finally:
        logging.getLogger("irees").removeHandler(notes)
    why, graphs = differ(mine, theirs, random), counters["stats"]["unique_graphs"]
    verdict = "WRONG" if why is not None else "PASS" if graphs else "EMPTY"
    found = {"verdict": verdict, "why": why or "", "graphs": graphs}
    if random:
        found["note"] = "random"
    if notes.notes:
        found["fallbacks"] = sorted(set(notes.notes))
    return found


def described(error: BaseException) -> str:
    """One line about an exception."""
    return f"{type(error).__name__} {' '.join(str(error).split())[:300]}"


def module_cases(limit: int, only: str) -> Iterator[tuple[str, Any]]:
    """The samples of module_db, eval and train."""
    for info in module_db:
        if only not in info.name:
            continue
        for training in (False, True):
            # The samples of FractionalMaxPool hold numbers in f64.
            dtype = torch.float64 if "FractionalMaxPool" in info.name else torch.float32
            try:
                samples = info.module_inputs_func(
                    info, device="cpu", dtype=dtype, requires_grad=True, training=training
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
                yield name, (module, module, inputs.args, inputs.kwargs, True)


def operator_cases(database: Any, kind: str, limit: int, only: str) -> Iterator[tuple[str, Any]]:
    """The samples of hop_db or custom_op_db, with gradients where an operator has them."""
    for op in database:
        title = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        if only not in title:
            continue
        # Operators that a database keeps from the CPU have gradients only on a GPU, if any.
        gradients = bool(op.dtypes) and op.supports_autograd
        try:
            samples = op.sample_inputs("cpu", torch.float32, requires_grad=gradients)
            samples = [sample for sample, _ in zip(samples, range(limit))]
        except Exception:  # the database cannot make inputs
            continue
        for number, sample in enumerate(samples):
            args = (sample.input, *sample.args)
            yield f"{kind}.{title}#{number}", (op.op, None, args, sample.kwargs, gradients)


def all_cases(limit: int, only: str) -> Iterator[tuple[str, Any]]:
    """The cases of all databases."""
    torch.manual_seed(0)
    yield from module_cases(limit, only)
    yield from operator_cases(hop_db, "hop", limit, only)
    yield from operator_cases(custom_op_db, "custom", limit, only)


def part_of(name: str) -> str:
    """The module or operator that a case is of."""
    name = name.partition("#")[0].removesuffix(".eval").removesuffix(".train")
    return name.removeprefix("hop.").removeprefix("custom.")


def verdict(limit: int, name: str, backend: str) -> dict[str, Any]:
    """What a backend makes of a case."""
    case = next(case for each, case in all_cases(limit, part_of(name)) if each == name)
    return judged(backend, *case)


def summary(results: Results) -> str:
    """How many cases are right by each backend, of those that eager runs and Dynamo captures."""
    lines = []
    for backend in sorted({b for found in results.values() for b in found}):
        kinds = collections.Counter(f[backend]["verdict"] for f in results.values() if backend in f)
        total = kinds.total() - kinds["EAGER"] - kinds["EMPTY"]
        lines.append(f"{backend}: {kinds['PASS']} of {total} right; {dict(kinds)}")
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=int, default=1 << 30, help="samples of a module and mode")
    parser.add_argument("--only", default="")
    parser.add_argument("--backends", nargs="+", default=["irees"])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one case")
    parser.add_argument("--reuse", action="store_true", help="skip what --out has")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        answer(functools.partial(verdict, arguments.limit))
        return
    warnings.filterwarnings("ignore")
    names = [name for name, _ in all_cases(arguments.limit, arguments.only)]
    # First samples first: a run that is stopped has seen all modules.
    names.sort(key=lambda name: int(name.partition("#")[2]))
    results: Results = {}
    if arguments.reuse and arguments.out.exists():
        results = json.loads(arguments.out.read_text())

    def done(name: str, backend: str, found: dict[str, Any]) -> None:
        results.setdefault(name, {})[backend] = found
        if found["verdict"] not in ("PASS", "EAGER", "EMPTY"):
            print(name, backend, found["verdict"], found["why"], flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps(results, indent=1, sort_keys=True))

    command = [sys.executable, __file__, "--worker", "--limit", str(arguments.limit)]
    for backend in arguments.backends:
        pairs = [(n, backend) for n in names if backend not in results.get(n, {})]
        run_all(command, pairs, arguments.jobs, arguments.timeout, done)
    print(summary(results))


if __name__ == "__main__":
    main()
