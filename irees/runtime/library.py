"""
Loads a shared library from bytes, so that the checked bytes are the loaded ones.

On Linux the bytes go to an anonymous file in memory (memfd). Elsewhere, or where the system
forbids executing such files, they go to a private file that is removed after loading.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from _ctypes import dlclose
from itertools import count

from irees.errors import ToolchainError

_SERIAL = count(1)


class Library:
    """
    A loaded library, unloaded when it is garbage-collected.

    Raises ToolchainError when the system's loader rejects the bytes.
    """

    # Bound here because the module's names may be gone when the interpreter shuts down.
    _close = staticmethod(dlclose)

    def __init__(self, image: bytes, *, permanent: bool = False):
        self.permanent = permanent
        self._handle: int | None = None
        try:
            self.cdll = _load_from_memory(image)
        except OSError:
            self.cdll = _load_from_file(image)
        self._handle = self.cdll._handle

    def address(self, name: str) -> int:
        """Address of a symbol. Raises ToolchainError when the library has no such symbol."""
        try:
            symbol = self.cdll[name]
        except AttributeError:
            raise ToolchainError(f"the library has no symbol {name}") from None
        return ctypes.cast(symbol, ctypes.c_void_p).value or 0

    def __del__(self):
        if self._handle is not None and not self.permanent:
            self._close(self._handle)


def _load_from_memory(image: bytes) -> ctypes.CDLL:
    if not hasattr(os, "memfd_create"):
        raise OSError("no anonymous files on this system")
    descriptor = os.memfd_create("irees", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(image)
        # The loader treats equal paths as the same library, and descriptor numbers are reused. A
        # meaningless pattern of `/.` and `/` makes each path unique.
        salt = "".join("/." if bit == "1" else "/" for bit in f"{next(_SERIAL):b}")
        return ctypes.CDLL(f"/proc/self/fd{salt}/{descriptor}")
    finally:
        os.close(descriptor)


def _load_from_file(image: bytes) -> ctypes.CDLL:
    try:
        with tempfile.NamedTemporaryFile(prefix="irees-", suffix=".so") as file:
            file.write(image)
            file.flush()
            return ctypes.CDLL(file.name)
    except OSError as error:
        raise ToolchainError(f"the system cannot load a compiled library: {error}") from None
