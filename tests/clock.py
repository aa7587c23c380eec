"""Time limits of tests that do not depend on what else the machine does."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def at_most(seconds: float) -> Generator[None]:
    """Fails where the block takes more CPU time of this process than `seconds`.

    Time of the clock would fail on a machine that others use, too. What child processes take,
    such as a C compiler, does not count.
    """
    begin = time.process_time()
    yield
    assert (used := time.process_time() - begin) < seconds, f"{used:.2f} s of CPU time"
