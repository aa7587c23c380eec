"""
Programs between guard pages: an access outside of an array ends the process, and what was never
written shows.

`guarded(program)` is the program on services whose memory lies between pages that nobody may
touch, and is full of 0xCB before it is written; `placed(array)` is a copy of an array in such
memory. Blocks end at the page behind them, as far as 64 bytes of alignment allow, or with
`against("front")` begin at the page in front of them. A test that expects no access outside runs in
a process of its own, since there is no error to catch: a signal is the finding.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np

from irees.backends.common.toolchain import NATIVE, compile_library
from irees.runtime.artifact import bytes_of, load_bytes
from irees.runtime.program import Program
from irees.runtime.services import Services
from irees.target import cpu_target

_ALIGNMENT, _PAGE = 64, 4096
"""Of blocks of the runtime, and of what the processor protects."""


@cache
def services() -> Services:
    """Services whose memory has guard pages. Raises ToolchainError without a C compiler."""
    header = (NATIVE / "guarded.h").read_text()
    text = (NATIVE / "runtime.c").read_text().replace('#include "guarded.h"', header)
    image = compile_library(
        {"guarded": text}, target=cpu_target("generic"), defines=["IREES_GUARDED"]
    )
    return Services(image)


def guarded(program: Program) -> Program:
    """The same program, in memory with guard pages."""
    return load_bytes(bytes_of(program), "guarded", services())


@contextmanager
def against(side: str) -> Iterator[None]:
    """Blocks that are allocated meanwhile lie against the page at their "front" or "back"."""
    turn = services().library.cdll.irees_rt_guard_low
    turn(1 if side == "front" else 0)
    try:
        yield
    finally:
        turn(0)


def placed(array: np.ndarray) -> np.ndarray:
    """A copy of an array between guard pages; its last byte is the one before a page."""
    get = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)
    table = services().table
    assert table is not None
    # pool, parallel, alloc: the third pointer of `irees_runtime`.
    entry = ctypes.c_void_p.from_address(table + 2 * ctypes.sizeof(ctypes.c_void_p)).value
    address = get(entry)(array.nbytes)
    if address is None:
        raise MemoryError(f"no block of {array.nbytes} bytes")
    slack = -array.nbytes % _ALIGNMENT if address % _PAGE else 0
    block = (ctypes.c_char * max(array.nbytes, 1)).from_address(address + slack)
    weakref.finalize(block, services().free, address)
    result = np.frombuffer(block, array.dtype, array.size).reshape(array.shape)
    result[...] = array
    return result
