"""The interface of `irees.kernel` (see `irees.interfaces`)."""

from __future__ import annotations


class Kernel:
    """
    irees.kernel: has no domain, since its block may access any element of its operands, so it is
    never tiled. `irees-inline-kernels` lowers it.
    """

    updates = True
