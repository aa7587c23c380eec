"""
Weights: the bytes behind `dense_resource<key>`.

The IR holds a handle, never bytes. The string of the handle is a `ResourceKey`, a `str` with a
reference to its `Blob`. So bytes live as long as the IR that uses them, two modules with the same
key keep separate bytes, and there is no global table. A blob is decoded lazily from the text of
the file, once.

This module must not import xDSL: a cached program is found by its text and blobs alone.
"""

from __future__ import annotations

import binascii
import hashlib
from typing import Any

import numpy as np

from irees.errors import ParseError


class Blob:
    """
    The bytes of one resource.

    Created from the hex text of a file (decoded lazily), from bytes, or from a numpy array with
    another owner (such as a parameter of a torch module), which is used without a copy.
    """

    __slots__ = ("_array", "_data", "_digest", "_hex", "alignment", "key")

    def __init__(
        self,
        key: str,
        *,
        hex_text: Any = None,
        data: Any = None,
        array: np.ndarray | None = None,
        alignment: int = 64,
    ):
        self.key = key
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
                f"resource {self.key!r} must have an alignment in 4 bytes and then whole bytes"
            )
        return int.from_bytes(self._unhex(0, 8), "little")

    def _unhex(self, start: int, stop: int | None) -> bytes:
        try:
            return binascii.unhexlify(self._hex[start:stop])
        except (binascii.Error, ValueError) as error:
            raise ParseError(f"resource {self.key!r} is not hexadecimal") from error

    @classmethod
    def from_array(cls, key: str, array: np.ndarray) -> Blob:
        """A blob that is a view of `array`, without a copy when it is contiguous."""
        return cls(key, array=np.ascontiguousarray(array))

    def bytes(self) -> Any:
        """The payload, as something with the buffer interface; decoded on the first call."""
        if self._array is not None:
            return self._array.reshape(-1).view(np.uint8).data
        if self._data is None:
            self._data = self._unhex(8, None)
            self._hex = None
        return self._data

    def raw(self) -> Any:
        """Data that identifies the payload without decoding: the hex text if not decoded yet."""
        return self._hex if self._hex is not None else self.bytes()

    @property
    def size(self) -> int:
        """Size in bytes, without decoding."""
        if self._array is not None:
            return self._array.nbytes
        return len(self._data) if self._data is not None else (len(self._hex) - 8) // 2

    def digest(self) -> str:
        """A hash of the bytes."""
        if self._digest is None:
            self._digest = hashlib.blake2b(self.bytes(), digest_size=16).hexdigest()
        return self._digest

    def __repr__(self) -> str:
        return f"<Blob {self.key!r}, {self.size} bytes>"


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
        raise TypeError("a ResourceKey is not pickled: its bytes would be copied")
