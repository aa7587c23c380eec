"""
Prints executables as CUDA C++ kernels with a launcher in C.
"""

from __future__ import annotations

from xdsl.dialects import func

from irees.backends.common.emit import launcher
from irees.backends.common.emit_ops import Expressions
from irees.backends.cuda.print_forall import HostPrinter
from irees.backends.cuda.unit import CudaUnit, Kernel


def kernel(
    function: func.FuncOp, name: str, unit: CudaUnit
) -> tuple[list[Kernel], str, Expressions]:
    """Returns an executable's kernels, its launcher in C, and the launcher's vector types."""
    first = len(unit.launches)
    p = HostPrinter(unit, Expressions())
    text = launcher(p, function, name)
    return unit.launches[first:], text, p.expressions
