"""
A phase: a named list of passes, and the dialects that may remain after it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from irees.dialects.flow import ExecutableOp
from irees.dialects.irees import walk_outside_kernels
from irees.errors import InternalError, IreesError, UnsupportedError, describe_location
from irees.hooks import NO_HOOKS, Hooks
from irees.interfaces import model_of
from irees.remarks import made_progress
from irees.verification import InvalidOp, verify


class PassError(InternalError):
    """A pass failed; `pass_name` is its name."""

    def __init__(self, pass_name: str, error: Exception):
        text = f"{pass_name} failed: {type(error).__name__}: {error}"
        super().__init__(text, op=op_at_fault(error))
        self.pass_name = pass_name


def op_at_fault(error: BaseException) -> Operation | None:
    """
    Returns the op that was rewritten when an error was raised: of the innermost call of a function
    with an argument `op`, as patterns and passes have it.
    """
    found: Operation | None = None
    trace = error.__traceback__
    while trace is not None:
        op = trace.tb_frame.f_locals.get("op")
        if isinstance(op, Operation) and not isinstance(op, ModuleOp):
            found = op
        trace = trace.tb_next
    return found


@dataclass(frozen=True)
class Phase:
    """A step of the pipeline: its purpose, its passes in order, and the dialects it may leave."""

    name: str
    meaning: str
    passes: tuple[ModulePass, ...]
    leaves: frozenset[str]
    fault: type[IreesError] = InternalError
    """Error class for an op outside `leaves`: a bug of irees, or the user's error (`input`)."""
    each_executable: bool = False
    """Whether the passes run on each executable separately, in its own module."""
    keeps: str = "to_loops"
    """Plug-in ops whose interface has this method may remain (`irees.interfaces`)."""

    def run(
        self,
        ctx: Context,
        module: ModuleOp,
        hooks: Hooks = NO_HOOKS,
        *,
        without: Collection[str] = (),
        verify_each: bool = False,
    ) -> None:
        """
        Runs the passes, except those in `without`, on the module in place, then checks the result.

        Raises PassError if a pass raises an exception other than IreesError or, with `verify_each`,
        leaves invalid IR. Raises InternalError if the IR is invalid after the phase.
        """

        def apply(part: ModuleOp) -> None:
            self._apply(ctx, part, hooks, without, verify_each)

        if not self.each_executable:
            apply(module)
        else:
            for executable in [o for o in module.body.block.ops if isinstance(o, ExecutableOp)]:
                with alone(executable) as part:
                    apply(part)
                if hooks.ready is not None:
                    hooks.ready(module, executable)
        self.check(module)

    def _apply(
        self,
        ctx: Context,
        module: ModuleOp,
        hooks: Hooks,
        without: Collection[str],
        verify_each: bool,
    ) -> None:
        for each in self.passes:
            if each.name in without:
                continue
            if hooks.before is not None:
                hooks.before(each.name, module)
            start = time.perf_counter()
            try:
                each.apply(ctx, module)
                if verify_each:
                    verify(module)
            except IreesError as error:
                if error.location is None and (op := op_at_fault(error)) is not None:
                    error.location = describe_location(op.location)
                if isinstance(error, InternalError):
                    error.pass_name = each.name
                raise
            except Exception as error:
                raise PassError(each.name, error) from error
            made_progress(each.name)
            if hooks.listener is not None:
                hooks.listener(each.name, module, time.perf_counter() - start)

    def check(self, module: ModuleOp) -> None:
        """Raises InternalError for invalid IR, `fault` for an op of a dialect not in `leaves`."""
        try:
            verify(module)
        except InvalidOp as error:
            text = f"invalid IR after phase {self.name}: {error}"
            raise InternalError(text, op=error.op) from error
        # What a program has in kernels of its own needs no lowering on tensors.
        for op in walk_outside_kernels(module):
            if op.dialect_name() in self.leaves:
                continue
            if not hasattr(model_of(op), self.keeps):
                raise self._left(op)

    def _left(self, op: Operation) -> IreesError:
        """Returns the error for an op that no pass has lowered."""
        if type(op).__module__.partition(".")[0] in ("irees", "xdsl"):
            return self.fault(
                f"this op is not supported: no pass of phase {self.name} lowers it", op=op
            )
        return UnsupportedError(
            f"nothing lowers this op up to the end of phase {self.name}",
            op=op,
            hint="insert a pass that lowers it, or give it an interface (docs/plugins.md)",
        )


@contextmanager
def alone(executable: ExecutableOp) -> Iterator[ModuleOp]:
    """Yields a module that holds only an executable; moves the executable back at the end."""
    block, after, around = executable.parent, executable.next_op, executable.parent_op()
    assert block is not None
    assert around is not None
    executable.detach()
    try:
        # The target is an attribute of the module.
        yield ModuleOp([executable], attributes=dict(around.attributes))
    finally:
        executable.detach()
        if after is None:
            block.add_op(executable)
        else:
            block.insert_op_before(executable, after)
