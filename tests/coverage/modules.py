"""
PyTorch's databases of modules, higher-order and custom operators through `torch.compile`.

    python tests/coverage/modules.py --limit 1 --out modules.json

Each module with its sample inputs in eval and in train mode: results, gradients of inputs and of
parameters, and buffers are those of eager. Random modules are compared by shape.
"""

from __future__ import annotations

import argparse
import collections
import copy
import json
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.custom_op_db import custom_op_db
from torch.testing._internal.hop_db import hop_db
from torch.utils._pytree import tree_leaves, tree_map

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


def judged(function: Any, module: Any, args: Any, kwargs: Any, backward: bool, random: bool) -> str:
    """PASS, WRONG, ERROR or EAGER."""
    twin = copy.deepcopy(module)
    original = function if module is None else twin
    try:
        theirs = run(original, twin, copied(args), copied(kwargs), backward)
    except Exception as error:
        return f"EAGER {type(error).__name__}"
    torch._dynamo.reset()
    try:
        fast = torch.compile(function if module is None else module, backend="irees")
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
    """The samples of hop_db or custom_op_db."""
    for op in database:
        if only not in op.name or torch.float32 not in op.dtypes:
            continue
        try:
            samples = list(op.sample_inputs("cpu", torch.float32, requires_grad=False))[:limit]
        except Exception:  # the database cannot make inputs
            continue
        for number, sample in enumerate(samples):
            args = (sample.input, *sample.args)
            yield f"{kind}.{op.name}#{number}", (op.op, None, args, sample.kwargs, False, False)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=int, default=1 << 30)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.getLogger("irees").setLevel(logging.ERROR)
    results: dict[str, str] = {}
    limit, only = arguments.limit, arguments.only
    for name, case in (
        *module_cases(limit, only),
        *operator_cases(hop_db, "hop", limit, only),
        *operator_cases(custom_op_db, "custom", limit, only),
    ):
        results[name] = judged(*case)
        if results[name].split()[0] in ("WRONG", "ERROR"):
            print(name, results[name], flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps(results, indent=1, sort_keys=True))
    print(dict(collections.Counter(v.split()[0] for v in results.values())))


if __name__ == "__main__":
    main()
