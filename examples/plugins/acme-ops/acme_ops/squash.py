"""`acme.squash`: x / (1 + |x|) of each element, known as softsign."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, TensorType
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    result_def,
)

from irees.building import TensorBuilder, dims, identity_map


@irdl_op_definition
class SquashOp(IRDLOperation):
    """%r = acme.squash %x : tensor<?x4xf32>"""

    name = "acme.squash"
    T: ClassVar = VarConstraint("T", TensorType.constr(AnyFloat))
    x = operand_def(T)
    result = result_def(T)
    assembly_format = "$x attr-dict `:` type($x)"


class Squash:
    """How the op is lowered, and what it means."""

    @staticmethod
    def to_structured(op: SquashOp, builder: TensorBuilder) -> Sequence[SSAValue]:
        kind = op.x.type.element_type

        def body(scalars, values):
            x = values[0]
            one, size = scalars.number(1.0, kind), scalars.op(math.AbsFOp, x)
            return [scalars.op(arith.DivfOp, x, scalars.op(arith.AddfOp, size, one))]

        init = builder.empty(kind, dims(op.x, builder))
        return builder.compute([op.x], [init], [identity_map(op.x)] * 2, body)

    @staticmethod
    def evaluate(op: SquashOp, x: Any) -> Sequence[Any]:
        return [x / (1 + np.abs(x))]
