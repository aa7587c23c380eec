"""
The reference backend: a module at any phase as something to call, run by the interpreter.

Nothing is generated. It needs no compiler and no hardware, every value is exact, and it is slow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from irees.dialects.util import FuncOp as UtilFuncOp
from irees.errors import ArgumentError
from irees.interpreters import Interpreter


class ReferenceFunction:
    """A public function; takes numpy arrays, or what becomes one."""

    def __init__(self, interpreter: Interpreter, name: str):
        self.interpreter = interpreter
        self.name = name

    def __call__(self, *arguments: Any) -> Any:
        """The result, or a tuple when there are several. Raises ArgumentError and RuntimeTrap."""
        results = self.interpreter.call(self.name, *(np.asarray(a) for a in arguments))
        return results[0] if len(results) == 1 else results


class ReferenceProgram:
    """
    A module that is interpreted. `program(...)` calls `main`, or the only public function; all
    of them are in `program.functions`.
    """

    def __init__(self, module: ModuleOp):
        self.module = module
        interpreter = Interpreter(module)
        self.functions = {
            name: ReferenceFunction(interpreter, name) for name in public_functions(module)
        }
        self._main = self.functions.get("main")
        if self._main is None and len(self.functions) == 1:
            self._main = next(iter(self.functions.values()))

    def __call__(self, *arguments: Any) -> Any:
        """Calls `main`, or the only public function. Raises what that raises."""
        if self._main is None:
            names = ", ".join(self.functions) or "none"
            raise ArgumentError(
                f"the program has no single function to call (it has {names})",
                hint="choose one of program.functions",
            )
        return self._main(*arguments)

    def __repr__(self) -> str:
        return f"<irees reference program with {', '.join(self.functions) or 'no functions'}>"


def public_functions(module: ModuleOp) -> list[str]:
    """Names of the functions that can be called from outside."""
    return [
        op.sym_name.data
        for op in module.body.block.ops
        if isinstance(op, func.FuncOp | UtilFuncOp)
        and op.regions[0].blocks
        and (op.sym_visibility is None or op.sym_visibility.data == "public")
    ]
