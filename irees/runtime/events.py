"""What devices and threads did, and when; as a trace file for Perfetto."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from irees.fence import fenced
from irees.runtime.files import path_of, write_whole


@dataclass(frozen=True)
class Event:
    """
    A run of a function or kernel by a device or thread, or the receipt of a tensor by a device.

    Times are in seconds.
    """

    kind: str
    name: str
    device: str
    begin: float
    end: float
    bytes: int = 0


@fenced
def write_trace(events: Iterable[Event], path: str | Path) -> None:
    """
    Writes events as a Chrome trace, which Perfetto reads.

    Raises ArgumentError when it cannot.
    """
    records = [
        {
            "name": event.name,
            "cat": event.kind,
            "ph": "X",
            "pid": 0,
            "tid": f"{event.device}{' receives' if event.kind == 'send' else ''}",
            "ts": event.begin * 1e6,
            "dur": (event.end - event.begin) * 1e6,
            "args": {"bytes": event.bytes} if event.bytes else {},
        }
        for event in events
    ]
    text = json.dumps({"traceEvents": records}).encode()
    write_whole(path_of(path, "write the trace to"), lambda file: file.write(text))
