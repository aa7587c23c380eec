"""
The user's line of an operator in an exported graph.

`torch.export` records only the lines of methods named `forward`. The line of an operator in a
function, or in a helper of a module, is then missing:

    with lines_of_helpers():
        exported = torch.export.export(module, args)
    node.meta["stack_trace"]  # its last frame is the user's innermost
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from torch.fx.proxy import TracerBase

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_NOT_THE_USERS = ("/torch/", "/irees/frontends/", "<eval_with_key>")


def is_users(file: str) -> bool:
    """Whether a file belongs neither to PyTorch nor to irees, and is no graph's code."""
    return not any(part in file for part in _NOT_THE_USERS)


def users_frame(trace: str) -> tuple[str, int] | None:
    """File and line of the innermost frame of a stack trace that is the user's."""
    frames = [(file, int(line)) for file, line in _FRAME.findall(trace) if is_users(file)]
    return frames[-1] if frames else None


def users_line(trace: str | None) -> str | None:
    """The same as text, `file:line`."""
    frame = users_frame(trace or "")
    return None if frame is None else f"{frame[0]}:{frame[1]}"


@contextmanager
def lines_of_helpers() -> Generator[None]:
    """Adds the user's innermost frame below `forward` to the frames that PyTorch records."""
    original: Any = TracerBase._filter_traceback_frames

    def with_innermost(tracer: Any, frames: Sequence[traceback.FrameSummary]) -> Any:
        kept = original(tracer, frames)
        for frame in reversed(frames):
            if frame.name == "forward":  # frames above it called irees
                break
            if is_users(frame.filename):
                return traceback.StackSummary.from_list([*kept, frame])
        return kept

    TracerBase._filter_traceback_frames = with_innermost
    try:
        yield
    finally:
        TracerBase._filter_traceback_frames = original
