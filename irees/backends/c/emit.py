"""
Prints kernels as C: a launcher, and a workgroup function for each of its parallel loops.
"""

from __future__ import annotations

from xdsl.dialects import func

from irees.backends.c import print_forall  # noqa: F401  (register)
from irees.backends.common.emit import launcher
from irees.backends.common.emit_ops import Expressions
from irees.backends.common.printer import Printer, Unit


def kernel(function: func.FuncOp, name: str, unit: Unit) -> tuple[str, Expressions]:
    """Prints an executable's function as C; returns the text and the vector types it needs."""
    p = Printer(unit, Expressions())
    text = launcher(p, function, name)
    return "\n".join([*p.functions, text]), p.expressions
