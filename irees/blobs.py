"""
Weights: the bytes of `dense_resource<key>`.

The IR holds a handle, never bytes. The string of the handle is a `ResourceKey`, a `str` with a
reference to its `Blob`. So bytes live as long as the IR that uses them, two modules with the same
key keep separate bytes, and there is no global table. A blob is decoded lazily from the text of
the file. One that a pass derives from others, such as a packed weight, is a `Recipe` until its
bytes are read: passes stay independent of weights, and weights are packed one at a time.

This module must not import xDSL: a cached program is found by its text and blobs alone.
"""

from __future__ import annotations

import binascii
import hashlib
import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from irees.errors import ParseError

PIECE = 1 << 20
"""Digits of hex text that are decoded at once when a blob is copied: they stay in the L2 cache."""


@dataclass(frozen=True)
class Recipe:
    """How an array is computed from other blobs."""

    sources: tuple[Blob, ...]
    make: Callable[[Sequence[Any], np.ndarray], None]
    """Writes the result for the payloads of the sources to an array of `dtype` and `shape`."""
    dtype: np.dtype
    shape: tuple[int, ...]
    name: str = ""
    """Equal names make equal results of equal sources; the blob is named after it."""

    @property
    def size(self) -> int:
        """Size of the result in bytes."""
        return prod(self.shape) * self.dtype.itemsize

    def fill(self, room: np.ndarray) -> None:
        """Computes the result in `room`, an array of bytes."""
        result = room.view(self.dtype).reshape(self.shape)
        # A weight may be infinite. The mode of numpy is that of the thread.
        with np.errstate(all="ignore"):
            self.make([source.payload() for source in self.sources], result)


class Blob:
    """
    The bytes of one resource.

    Created from the hex text of a file (decoded lazily), from bytes, from a numpy array with
    another owner (such as a parameter of a torch module), which is used without a copy, or from a
    recipe.
    """

    __slots__ = ("_array", "_data", "_digest", "_hex", "alignment", "key", "recipe", "was_read")

    def __init__(
        self,
        key: str,
        *,
        hex_text: Any = None,
        data: Any = None,
        array: np.ndarray | None = None,
        recipe: Recipe | None = None,
        alignment: int = 64,
    ):
        self.key = key
        self.recipe = recipe
        self.was_read = False
        """Whether the bytes were read, for example by a pass."""
        self._hex = hex_text
        self._data = data
        self._array = array
        self._digest: str | None = None
        self.alignment = alignment
        if hex_text is not None:
            self.alignment = self._read_alignment()

    def _read_alignment(self) -> int:
        if len(self._hex) < 8 or len(self._hex) % 2:
            raise ParseError(
                f"resource {self.key!r} must start with a 4-byte alignment, then whole bytes"
            )
        return int.from_bytes(self._unhex(self._hex, 0, 8), "little")

    def _unhex(self, text: Any, start: int, stop: int | None) -> bytes:
        try:
            return binascii.unhexlify(text[start:stop])
        except (binascii.Error, ValueError) as error:
            raise ParseError(f"resource {self.key!r} is not hexadecimal") from error

    @classmethod
    def from_array(cls, key: str, array: np.ndarray) -> Blob:
        """A blob that is a view of `array`, without a copy when it is contiguous."""
        return cls(key, array=np.ascontiguousarray(array))

    def bytes(self) -> Any:
        """
        The payload, as something with the buffer interface; decoded or computed on the first call.
        """
        self.mark_read()
        if self._array is None and self._data is None:
            self._data = self.payload()
            self._hex = None
        return self.payload()

    def mark_read(self) -> None:
        """Records that the bytes were read, and those of the recipe's sources."""
        self.was_read = True
        for source in () if self.recipe is None else self.recipe.sources:
            source.mark_read()

    def payload(self) -> Any:
        """Returns the payload without caching it: each call decodes or computes it again."""
        text = self._hex  # another thread may decode it, and drop the text
        if self._array is not None:
            return self._array.reshape(-1).view(np.uint8).data
        if self._data is not None:
            return self._data
        if self.recipe is None:
            decoded = self._unhex(text, 8, None)
            release_pages(text)
            return decoded
        room = np.empty(self.recipe.size, np.uint8)
        self.recipe.fill(room)
        return room.data

    def fill(self, room: np.ndarray) -> None:
        """Writes the payload to an array of `size` bytes."""
        text = self._hex  # another thread may decode it, and drop the text
        if self._array is not None or self._data is not None:
            np.copyto(room, np.frombuffer(self.payload(), np.uint8))
        elif self.recipe is not None:
            self.recipe.fill(room)
        else:
            for start in range(8, len(text), PIECE):
                piece = self._unhex(text, start, min(start + PIECE, len(text)))
                room[start // 2 - 4 :][: len(piece)] = np.frombuffer(piece, np.uint8)
            release_pages(text)

    def raw(self) -> Any:
        """Returns data that identifies the payload: the hex text if it is not decoded yet."""
        return self._hex if self._hex is not None else self.payload()

    @property
    def size(self) -> int:
        """Size in bytes, without decoding."""
        text = self._hex  # another thread may decode it, and drop the text
        if self._array is not None:
            return self._array.nbytes
        if self._data is not None:
            return len(self._data)
        return self.recipe.size if self.recipe is not None else (len(text) - 8) // 2

    def digest(self) -> str:
        """A hash of the bytes."""
        if self._digest is None:
            self._digest = hashlib.blake2b(self.bytes(), digest_size=16).hexdigest()
        return self._digest

    def __repr__(self) -> str:
        return f"<Blob {self.key!r}, {self.size} bytes>"


def release_pages(text: Any) -> None:
    """Releases the pages of a mapped file; the next read loads them again."""
    owner = text.obj if isinstance(text, memoryview) else text
    if isinstance(owner, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        owner.madvise(mmap.MADV_DONTNEED)


class ResourceKey(str):
    """
    The name of a resource, with a reference to its bytes (None if the text has none, such as
    elided resources).
    """

    __slots__ = ("blob",)
    blob: Blob | None

    def __new__(cls, key: str, blob: Blob | None = None) -> ResourceKey:
        self = super().__new__(cls, key)
        self.blob = blob
        return self

    def __eq__(self, other: object) -> bool:
        if not str.__eq__(self, other) if isinstance(other, str) else True:
            return False
        if not isinstance(other, ResourceKey) or self.blob is other.blob:
            return True
        if self.blob is None or other.blob is None or self.blob.size != other.blob.size:
            return False
        return self.blob.digest() == other.blob.digest()

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __deepcopy__(self, memo: dict) -> ResourceKey:
        return self

    def __reduce__(self):
        raise TypeError("a ResourceKey cannot be pickled: its bytes would be copied")
