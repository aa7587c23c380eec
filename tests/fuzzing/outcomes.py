"""
What became of a text: compiles it up to C or CUDA text, natively runs nothing, and names the class.

`CLASSES` has the classes. A fault has a signature, the type of the exception and the place in the
source that raised it, so that the texts that show one bug are kept once.
"""

from __future__ import annotations

import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import irees
from irees.backends.c import backend as c
from irees.backends.common.program_text import print_program
from irees.backends.cuda import backend as cuda
from irees.errors import InternalError, IreesError, OutOfMemoryError
from irees.remarks import collect

CLASSES = {
    "ok": "compiled",
    "refused": "an IreesError that names the cause",
    "degraded": "compiled, but an optional pass failed and was left out",
    "internal": "InternalError, a bug that the fence caught",
    "raw": "another exception",
    "memory": "more memory than the limit of the process",
    "hang": "more seconds than the limit",
    "signal": "the process died",
}
FAULTS = ("internal", "raw", "memory", "hang", "signal")
"""The classes that no text may reach."""

CPU = "cpu:x86-64-v3"
"""The target of most texts. The machine has no part in it."""
GPU = "cuda:sm_80"
TARGETS = frozenset({CPU, GPU, "reference"})
OURS = ("irees", "xdsl")


@dataclass
class Outcome:
    """The class of a text, where it failed, and how long it took."""

    kind: str
    signature: str = ""
    message: str = ""
    seconds: float = 0.0

    def record(self) -> dict[str, Any]:
        """The outcome as JSON."""
        return asdict(self)


def target_of(number: int) -> str:
    """The target that text `number` is compiled for."""
    return "reference" if number % 16 == 3 else GPU if number % 16 == 7 else CPU


def outcome(text: str, target: str) -> Outcome:
    """Compiles a text for a target, up to the text of its kernels."""
    begin = time.perf_counter()
    made = _outcome(text, target)
    made.seconds = round(time.perf_counter() - begin, 3)
    return made


def _outcome(text: str, target: str) -> Outcome:
    try:
        with collect() as remarks:
            if target == "reference":
                irees.compile(text, target=target)
            else:
                module: Any = irees.compile(text, target=target, to="codegen")
                print_program(module, (cuda if target.startswith("cuda") else c).BACKEND)
    except InternalError as error:
        return Outcome("internal", signature(error), str(error)[:600])
    except OutOfMemoryError as error:
        return Outcome("memory", signature(error), str(error)[:600])
    except MemoryError as error:
        return Outcome("memory", signature(error), repr(error))
    except IreesError as error:
        return Outcome("refused", type(error).__name__)
    except Exception as error:
        return Outcome("raw", signature(error), repr(error)[:600])
    failed = [remark for remark in remarks if remark.kind == "failed"]
    if failed:
        said = failed[0].text[:300]
        return Outcome("degraded", f"{failed[0].pass_name} {_words(said)}", said)
    return Outcome("ok")


def _words(text: str) -> str:
    """The words of a message without names and numbers, which differ from text to text."""
    return " ".join(word for word in text.split() if word.strip(":,.;").isalpha())[:100]


def signature(error: BaseException) -> str:
    """The innermost exception, and the last frames of ours that it passed."""
    root = error
    while root.__cause__ is not None:
        root = root.__cause__
    frames = [
        f
        for f in traceback.extract_tb(root.__traceback__)
        if set(Path(f.filename).parts) & set(OURS)
    ]
    places = [f"{_short(frame.filename)}:{frame.name}" for frame in frames[-2:]]
    # The checks after a phase raise for many causes: their message tells them apart.
    vague = any("phase.py" in place or "verification.py" in place for place in places)
    detail = f" {_words(str(root))} {_op(root)}" if vague or not places else ""
    name = getattr(error, "pass_name", "")
    return " ".join(part for part in (type(root).__name__, name, *places, detail.strip()) if part)


def _op(error: BaseException) -> str:
    return str(getattr(error, "op", None) or "")


def _short(path: str) -> str:
    parts = Path(path).parts
    first = next(i for i in range(len(parts) - 1, -1, -1) if parts[i] in OURS)
    return "/".join(parts[first:])
