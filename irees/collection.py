"""Makes garbage collection rare while IR is built and rewritten."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

YOUNG_OBJECTS = 200_000
"""Threshold of the youngest GC generation while IR is built, in allocated objects."""

_compiling = threading.Lock()
_thresholds: list[tuple[int, int, int]] = []


@contextmanager
def rare_collections() -> Generator[None]:
    """
    Makes garbage collection rare inside the block: IR is cyclic, but stays alive to the end.

    With Python's default thresholds the collector traverses all live objects several times, those
    of PyTorch included.
    """
    with _compiling:
        _thresholds.append(gc.get_threshold())
        first, *rest = _thresholds[-1]
        if first:  # 0: the caller has disabled collection
            gc.set_threshold(max(YOUNG_OBJECTS, first), *rest)
    try:
        yield
    finally:
        with _compiling:
            # The first of concurrent compilations saved the caller's thresholds.
            chosen = _thresholds[0]
            _thresholds.pop()
            if not _thresholds:
                gc.set_threshold(*chosen)
