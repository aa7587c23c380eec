"""
Verifies a module op by op, so that the error can name the place in the user's text.

xDSL's own check of a whole module reports the module printed with a note in it. This walks the same
ops in the same order, and checks two more things that xDSL leaves: that a value is defined before
it is used, and that no symbol is defined twice.
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, BlockArgument, Operation, Region
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import DiagnosticException, VerifyException

from irees.analysis.dominance import Dominance
from irees.errors import VerifyError

_MALFORMED = (
    DiagnosticException,
    ValueError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    NotImplementedError,
    OverflowError,
)
"""What verifiers of xDSL raise on IR that they did not expect."""


def verify_module(module: Operation) -> None:
    """Raise a VerifyError for the first op that breaks a rule."""
    for op in module.walk(reverse=False):
        _verify_op(op)
    for region in module.regions:
        _verify_dominance(region)


def _verify_op(op: Operation) -> None:
    try:
        op.verify(verify_nested_ops=False)
    except VerifyError:
        raise
    except VerifyException as error:
        raise VerifyError(_innermost(error), op=op) from None
    except _MALFORMED as error:
        reason = _innermost(error) or type(error).__name__
        raise VerifyError(f"the op is malformed: {reason}", op=op) from error
    if op.regions and op.get_trait(SymbolTable) is not None:
        _verify_symbols(op)


def _innermost(error: BaseException) -> str:
    """The message without the module that xDSL prints around it."""
    cause = error.__cause__
    while isinstance(cause, VerifyException):
        error, cause = cause, cause.__cause__
    text = str(error)
    if "Operation does not verify: " in text:
        text = text.rsplit("Operation does not verify: ", 1)[1]
    lines = [line.strip(" |^-") for line in text.splitlines()]
    return " ".join(line for line in lines if line)[:500]


def _verify_symbols(op: Operation) -> None:
    seen: set[str] = set()
    for region in op.regions:
        for block in region.blocks:
            for child in block.ops:
                name = child.properties.get("sym_name", child.attributes.get("sym_name"))
                if not isinstance(name, StringAttr):
                    continue
                if name.data in seen:
                    raise VerifyError(f"redefinition of symbol @{name.data}", op=child)
                seen.add(name.data)


def _verify_dominance(region: Region) -> None:
    """
    Every operand in `region` is defined above its use, in a block that dominates it or around
    it.
    """
    entry = region.first_block
    dominance = Dominance(entry) if entry is not None and entry is not region.last_block else None
    for block in region.blocks:
        seen: set[Operation] = set()
        for op in block.ops:
            for operand in op.operands:
                if isinstance(operand, BlockArgument):
                    owner: Block | None = operand.block
                    here = None
                else:
                    here = operand.owner
                    if not isinstance(here, Operation):
                        raise VerifyError("an operand is used but not defined", op=op)
                    owner = here.parent
                if owner is block:
                    if here is not None and here not in seen:
                        raise VerifyError("an operand is used before it is defined", op=op)
                elif not _visible(owner, block, dominance):
                    raise VerifyError("an operand does not dominate its use", op=op)
            for nested in op.regions:
                _verify_dominance(nested)
            seen.add(op)


def _visible(owner: Block | None, block: Block, dominance: Dominance | None) -> bool:
    if owner is None:
        return False
    if owner.parent is block.parent:
        return dominance is not None and dominance.dominates(owner, block)
    ancestor = block.parent_op()
    while ancestor is not None and ancestor.parent is not None:
        outer = ancestor.parent
        if owner is outer:
            return True
        if owner.parent is outer.parent:
            entry = outer.parent.first_block if outer.parent is not None else None
            return entry is not None and Dominance(entry).dominates(owner, outer)
        ancestor = outer.parent_op()
    return False
