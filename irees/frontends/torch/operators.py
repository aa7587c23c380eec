"""
Access to the operators of the installed PyTorch version.

    from ..operators import aten

An operator that the installed PyTorch lacks is `ABSENT`, and so are its overloads; `lowers` skips
them. PyTorch itself would raise AttributeError and abort the import of all lowerings.
"""

from __future__ import annotations

from typing import Any

import torch


class _Absent:
    """A missing operator and its overloads."""

    def __getattr__(self, name: str) -> _Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return self


ABSENT = _Absent()


class _Operators:
    """The operators of one library, with `ABSENT` for missing ones."""

    def __init__(self, library: Any):
        self._library = library

    def __getattr__(self, name: str) -> Any:
        packet = getattr(self._library, name, None)
        found = ABSENT if packet is None else packet
        setattr(self, name, found)
        return found


aten: Any = _Operators(torch.ops.aten)
