"""
Runs programs with guard pages: an out-of-bounds access kills the process, and uninitialized reads
become visible.

`guarded(program)` is the program on runtime services that allocate between inaccessible pages and
fill new memory with 0xCB. `placed(array)` copies an array into such memory. Blocks end at the guard
page after them, up to 64-byte alignment, or start at the page before them with `against("front")`.
A test for out-of-bounds accesses must run in its own process: a failure is a signal, not an
exception.
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
"""Alignment of runtime blocks, and page size, in bytes."""


@cache
def services() -> Services:
    """Returns services with guard pages. Raises ToolchainError without a C compiler."""
    header = (NATIVE / "guarded.h").read_text()
    text = (NATIVE / "runtime.c").read_text().replace('#include "guarded.h"', header)
    image = compile_library(
        {"guarded": text}, target=cpu_target("generic"), defines=["IREES_GUARDED"]
    )
    return Services(image)


def guarded(program: Program) -> Program:
    """Returns the same program on memory with guard pages."""
    return load_bytes(bytes_of(program), "guarded", services())


@contextmanager
def against(side: str) -> Iterator[None]:
    """Places blocks allocated inside against the guard page at their "front" or "back"."""
    turn = services().library.cdll.irees_rt_guard_low
    turn(1 if side == "front" else 0)
    try:
        yield
    finally:
        turn(0)


def placed(array: np.ndarray) -> np.ndarray:
    """Copies an array between guard pages; by default its last byte is the one before a page."""
    get = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)
    table = services().table
    assert table is not None
    # `irees_runtime` starts with the pointers pool, parallel, alloc.
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
