"""
Annotates test ops with the result of the divisibility analysis for their operand.

    %1 = arith.muli %0, %c12 : index
    %2 = "iree_unregistered.test_int_divisibility"(%1) : (index) -> index
  =>
    %1 = arith.muli %0, %c12 : index
    %2 = "iree_unregistered.test_int_divisibility"(%1)
           {divisibility = "udiv = 12, sdiv = 12"} : (index) -> index

For tests of `irees.analysis.divisibility`; no pipeline runs the pass. By default, like IREE's pass,
it assumes that integers do not overflow. With `wraps`, the product above is only known to be a
multiple of 4, because it may overflow. Other ops are unchanged. IREE:
`iree-util-test-integer-divisibility-analysis`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnregisteredOp
from xdsl.passes import ModulePass

from irees.analysis.divisibility import IntegerDivisibility

QUERY = "iree_unregistered.test_int_divisibility"


@dataclass(frozen=True)
class TestIntegerDivisibilityPass(ModulePass):
    """Annotates test ops with the known divisors of their operand."""

    name = "irees-test-integer-divisibility"

    wraps: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        divisors = IntegerDivisibility(wraps=self.wraps)
        for query in list(op.walk()):
            if not isinstance(query, UnregisteredOp) or query.op_name.data != QUERY:
                continue
            if len(query.operands) == 1:
                found = divisors.of(query.operands[0])
                query.attributes["divisibility"] = StringAttr(str(found))
