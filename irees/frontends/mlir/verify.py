"""
Verifies a module op by op, so that errors can name the location in the user's text.

xDSL's verifier reports an error as the printed module with a note in it. This verifier checks the
same ops in the same order, and more: that values dominate their uses, that every block ends with a
terminator, that symbols are in a symbol table and are defined once, and the rules of
`irees.dialects.rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.traits import NoTerminator, SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

from irees.analysis.dominance import Dominance
from irees.dialects.rules import check_rules
from irees.errors import VerifyError

NO_TERMINATOR = "terminates block"
"""xDSL's message for a block that ends with an op that is not a terminator."""

_NOT_OURS = (RecursionError, MemoryError)
"""Exceptions that are not the op's fault. Any other one means malformed IR."""


def verify_module(module: Operation, copied: Collection[Operation] = ()) -> None:
    """
    Raises a VerifyError for the first op that breaks a rule. Ops in `copied` are clones of verified
    ops, so only the dominance of their operands is checked.
    """
    ops = list(module.walk(reverse=False))
    for op in ops:
        for value in op.operands:
            if not isinstance(value, BlockArgument | OpResult):
                raise VerifyError("use of undeclared SSA value name", op=op)
    for op in ops:
        if op not in copied:
            _verify_op(op)
    definitions = _Definitions()
    for region in module.regions:
        definitions.verify(region)


def _verify_op(op: Operation) -> None:
    # Checks rules first: they report the terminator's line, verifiers that of the enclosing op.
    broken = _malformed(op, check_rules)
    broken = _malformed(op, _verify_itself) or broken
    if broken is not None:
        reason = _innermost(broken) or type(broken).__name__
        raise VerifyError(f"the op is malformed: {reason}", op=op) from broken
    _verify_place(op)
    if op.regions and op.get_trait(SymbolTable) is not None:
        _verify_symbols(op)


def _malformed(op: Operation, check: Callable[[Operation], None]) -> Exception | None:
    """
    Returns the exception of a check that only malformed IR causes, None if there is none.

    Raises VerifyError if the op breaks a rule.
    """
    try:
        check(op)
    except (VerifyError, *_NOT_OURS):
        raise
    except VerifyException as error:
        raise VerifyError(_innermost(error), op=op) from None
    except Exception as error:
        return error
    return None


def _verify_itself(op: Operation) -> None:
    """Verifies an op, but an op inside of it first if that is why a block has no terminator."""
    try:
        op.verify(verify_nested_ops=False)
    except VerifyException as error:
        if NO_TERMINATOR in str(error):
            for region in op.regions:
                for inner in region.walk():
                    _verify_op(inner)
        raise


def _verify_place(op: Operation) -> None:
    """Checks that blocks in an op have terminators and that symbols are in a symbol table."""
    if not op.has_trait(NoTerminator, value_if_unregistered=True):
        for region in op.regions:
            if any(block.is_empty for block in region.blocks):
                raise VerifyError("empty block: expected at least a terminator", op=op)
    parent, symbol = op.parent_op(), op.get_trait(SymbolOpInterface)
    if parent is None or symbol is None or symbol.get_sym_attr_name(op) is None:
        return
    if not parent.has_trait(SymbolTable, value_if_unregistered=True):
        raise VerifyError(f"a symbol must be in a symbol table, not in {parent.name}", op=op)


def _innermost(error: BaseException) -> str:
    """The message without the printed module that xDSL puts around it."""
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


@dataclass
class _Definitions:
    """Checks dominance; keeps the ops visited so far and the dominance of each region."""

    seen: set[Operation] = field(default_factory=set[Operation])
    known: dict[Region, Dominance] = field(default_factory=dict[Region, Dominance])

    def verify(self, region: Region) -> None:
        """
        Checks that every operand in `region` dominates its use. A nested region may use values
        defined before its op, but neither the op's results nor values defined later.
        """
        for block in region.blocks:
            for op in block.ops:
                for operand in op.operands:
                    self._verify_operand(op, operand, block)
                for nested in op.regions:
                    self.verify(nested)
                self.seen.add(op)

    def _verify_operand(self, op: Operation, operand: SSAValue, block: Block) -> None:
        here = None if isinstance(operand, BlockArgument) else operand.owner
        if here is not None and not isinstance(here, Operation):
            raise VerifyError("an operand is used but not defined", op=op)
        owner = operand.owner if here is None else here.parent
        assert owner is None or isinstance(owner, Block)
        around = self._enclosing(owner, block)
        if around is None:
            raise VerifyError("an operand does not dominate its use", op=op)
        if owner is around and here is not None and here not in self.seen:
            raise VerifyError("an operand is used before it is defined", op=op)
        if owner is not around and not self._dominates(owner, around):
            raise VerifyError("an operand does not dominate its use", op=op)

    @staticmethod
    def _enclosing(owner: Block | None, block: Block) -> Block | None:
        """The block that is or encloses `block` in the region of `owner`."""
        around: Block | None = block
        while around is not None and owner is not None:
            if around.parent is owner.parent:
                return around
            parent = around.parent_op()
            around = None if parent is None else parent.parent
        return None

    def _dominates(self, owner: Block | None, block: Block) -> bool:
        region = block.parent
        if owner is None or region is None or region.first_block is None:
            return False
        if region not in self.known:
            self.known[region] = Dominance(region.first_block)
        return self.known[region].dominates(owner, block)
