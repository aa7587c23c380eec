"""
Compiles a zoo of architectures with random weights and compares each with PyTorch.

    python tests/coverage/zoo.py --list
    python tests/coverage/zoo.py --only transformers/bert
    python tests/coverage/zoo.py --mode both --out zoo.json --write docs/models.md

Mode `program` calls `irees.compile(model, args, kwargs=kwargs)`, mode `compile` calls
`torch.compile(model, backend="irees")`; `--mode peers` is Inductor and IREE (`zoo_peers.py`), and
needs `iree-base-compiler`, `iree-base-runtime` and `torch-mlir`. Models run in a worker process, which is replaced when it
dies or hangs. `--out` is written after each model and keeps results of models that do not run;
where it is not there yet, they are read from the page. `--reuse` skips models that passed.

| verdict | meaning |
|---|---|
| PASS | all tensors of the result equal eager's, or are about as near to those in f64 (`nearness.py`) |
| WRONG | they do not |
| UNSUPPORTED | irees raised its own typed error |
| ERROR | any other exception, a defect |
| CRASH, TIMEOUT | the process died, or took too long |
| DYNAMO | `torch.compile` fails without irees, too |
| EAGER | the model cannot be built, or fails in PyTorch itself |
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
import traceback
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")
from workers import Fallbacks, answer, run_all
from zoo_compare import all_as_near, difference, same_kind, same_rank, wider
from zoo_peers import by_dynamo, by_iree
from zoo_report import Results, read_page, summary, write_page

FAMILIES = ("transformers", "diffusers", "timm", "torchvision", "torch")
MODES = ("program", "compile")
PEERS = ("inductor", "iree")


def family(name: str) -> Any:
    """The module that builds a model."""
    import importlib

    return importlib.import_module(f"zoo_{name.partition('/')[0]}")


def all_names() -> list[str]:
    """All models, by family."""
    return [name for each in FAMILIES for name in family(each).names()]


def verdict(name: str, mode: str) -> dict[str, Any]:
    """What irees makes of one model: verdict, stage, reason, seconds to compile."""
    import torch

    torch.manual_seed(0)
    try:
        model, args, kwargs = family(name).build(name)
        with torch.no_grad():
            want, again = model(*args, **kwargs), model(*args, **kwargs)
    except Exception as error:
        return {"verdict": "EAGER", "stage": "build", "why": described(error)}
    kinds = (difference, same_kind, same_rank)
    # Of random results shapes are compared; of those whose shapes are random, ranks.
    compare = next(kind for kind in kinds if kind is same_rank or kind(again, want) is None)
    notes = Fallbacks()
    logging.getLogger("irees").addHandler(notes)
    begin = time.perf_counter()
    try:
        got, seconds = ROADS[mode](model, args, kwargs)
    except Exception as error:
        seconds = time.perf_counter() - begin
        if mode in PEERS:
            return {"verdict": "ERROR", "why": described(error), "seconds": round(seconds, 1)}
        found = {**failure(error), "seconds": round(seconds, 1)}
        if mode == "compile" and fails_in_dynamo(model, args, kwargs):
            why = f'torch.compile(backend="eager") fails, too: {found["why"]}'
            return {**found, "verdict": "DYNAMO", "stage": "", "why": why}
        return found
    finally:
        logging.getLogger("irees").removeHandler(notes)
    why = compare(got, want)
    if why is not None and compare is difference and nears_f64(model, args, kwargs, got, want):
        why = None
    found = {"verdict": "PASS" if why is None else "WRONG", "seconds": round(seconds, 1)}
    if compare is not difference:
        found["note"] = "random"
    if notes.notes:
        found["fallbacks"] = sorted(set(notes.notes))
    if why is None:
        return found
    if mode == "program" and traced_alike(model, args, kwargs, got):
        return {**found, "stage": "export", "why": f"torch.export computes this, too: {why}"}
    return {**found, "stage": "run", "why": why}


def nears_f64(model: Any, args: tuple, kwargs: dict[str, Any], got: Any, want: Any) -> bool:
    """Whether the model in f64 gives results to which irees is about as near as eager is."""
    import torch

    try:
        with torch.no_grad():
            exact = wider(model)(*wider(args), **wider(kwargs))
    except Exception:  # not every model takes f64
        return False
    return all_as_near(got, want, exact)


def traced_alike(model: Any, args: tuple, kwargs: dict[str, Any], got: Any) -> bool:
    """Whether PyTorch's own exported program gives the same result, unlike eager."""
    import torch

    from irees.frontends.torch.exporting import export

    with torch.no_grad():
        return difference(got, export(model, args, kwargs).module()(*args, **kwargs)) is None


def programmed(model: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, float]:
    """The result of `irees.compile`, and the seconds it takes to compile."""
    import irees

    begin = time.perf_counter()
    program = irees.compile(model, args, kwargs=kwargs)
    seconds = time.perf_counter() - begin
    return program(*args, **kwargs), seconds


ROADS: dict[str, Callable[[Any, tuple, dict[str, Any]], tuple[Any, float]]] = {
    "program": programmed,
    "compile": partial(by_dynamo, "irees"),
    "inductor": partial(by_dynamo, "inductor"),
    "iree": by_iree,
}
"""How a mode runs a model: the result, and the seconds it takes to compile."""


def fails_in_dynamo(model: Any, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether `torch.compile` fails without a compiler, too."""
    import torch

    torch._dynamo.reset()
    try:
        with torch.no_grad():
            torch.compile(model, backend="eager")(*args, **kwargs)
    except Exception:
        return True
    return False


def described(error: BaseException) -> str:
    """One line about an exception."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def failure(error: Exception) -> dict[str, Any]:
    """The verdict on an exception with the stage that raised it."""
    from irees.errors import InternalError, IreesError

    chain: list[BaseException] = [error]
    while (below := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(below)
    files = " ".join(f.filename for e in chain for f in traceback.extract_tb(e.__traceback__))
    typed = isinstance(error, IreesError) and not isinstance(error, InternalError)
    if "/torch/export/" in files:
        stage = "export"
    elif "/irees/frontends/" in files:
        stage = "import"
    else:
        stage = "run" if "/irees/runtime/" in files else "compile"
    kind = "UNSUPPORTED" if typed else "ERROR"
    if os.environ.get("ZOO_TRACE"):
        traceback.print_exception(error)
    return {"verdict": kind, "stage": stage, "why": described(error)}


def selected(arguments: argparse.Namespace, results: Results) -> list[tuple[str, str]]:
    """The pairs of model and mode to run."""
    modes = {"both": MODES, "peers": PEERS}.get(arguments.mode, (arguments.mode,))
    names = [n for n in all_names() if any(part in n for part in arguments.only)]
    if arguments.exact:
        names = [n for n in names if n in arguments.only]
    if arguments.mode not in (*MODES, "both"):
        # What a stopped run of peers leaves is a fair sample of all families.
        names.sort(key=lambda name: zlib.crc32(name.encode()))
    pairs = [(name, mode) for mode in modes for name in names]
    if arguments.reuse:
        kept = ("PASS", *(("EAGER",) if arguments.reuse > 1 else ()))
        pairs = [
            (n, m) for n, m in pairs if results.get(n, {}).get(m, {}).get("verdict") not in kept
        ]
    return pairs


def shown(results: Results) -> list[str]:
    """All models, and those with a result of a family that cannot be imported here."""
    names = all_names()
    here = {name.partition("/")[0] for name in names}
    return [*names, *(name for name in results if name.partition("/")[0] not in here)]


def main() -> int:
    """The command line; 1 if a model that PyTorch runs fails."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=[""], help="parts of models' names")
    parser.add_argument("--exact", action="store_true", help="--only are whole names")
    parser.add_argument("--list", action="store_true", help="print the names of all models")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--mode", default="program", choices=[*ROADS, "both", "peers", "none"])
    parser.add_argument("--timeout", type=float, default=180, help="seconds for one model")
    parser.add_argument("--reuse", action="count", help="skip what passed; twice: cannot be built")
    parser.add_argument("--out", type=Path, help="results as JSON")
    parser.add_argument("--write", type=Path, help="results as a page")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        answer(verdict)
        return 0
    if arguments.list:
        print("\n".join(all_names()))
        return 0
    results: Results = {}
    if arguments.out and arguments.out.exists():
        results = json.loads(arguments.out.read_text())
    elif arguments.write and arguments.write.exists():
        results = read_page(arguments.write)

    def done(name: str, mode: str, found: dict[str, Any]) -> None:
        results.setdefault(name, {})[mode] = found
        shown = " ".join(
            str(found[k]) for k in ("verdict", "stage", "seconds", "why") if k in found
        )
        print(name, mode, shown, flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps(results, indent=1, sort_keys=True))

    pairs = [] if arguments.mode == "none" else selected(arguments, results)
    command = [sys.executable, __file__, "--worker"]
    run_all(command, pairs, arguments.jobs, arguments.timeout, done)
    print(summary(results))
    if arguments.write:
        write_page(arguments.write, {n: results.get(n, {}) for n in shown(results)})
    ran = {name for name, _ in pairs}
    good = ("PASS", "EAGER", "DYNAMO")
    found = (results[n][m] for n in ran for m in MODES if m in results[n])
    return int(any(each["verdict"] not in good for each in found))


if __name__ == "__main__":
    sys.exit(main())
