"""
Makes the interface of a program explicit: imports its arguments and exports its results.

The attribute `iree.abi.affinity` of an argument or result states its device. On a function, it is
the default of all arguments and results, and the affinity of the body. Without an affinity, an
import is placed on the device of its uses, an export on that of its operand.

    func.func @main(%x: tensor<4xf32> {iree.abi.affinity = @a}) -> tensor<4xf32> {
      return %x : tensor<4xf32>
    }
  =>
    func.func @main(%view: !hal.buffer_view) -> !hal.buffer_view {
      %x = hal.tensor.import on(@a) %view : !hal.buffer_view -> tensor<4xf32>
      %0 = hal.tensor.export %x : tensor<4xf32> -> !hal.buffer_view
      return %0 : !hal.buffer_view
    }

(`@a` is `#hal.device.promise<@a>`.) Private functions and scalars are unchanged. IREE's
`WrapEntryPoints` keeps the function and calls it from a wrapper, with fences; in irees, a call
waits for its results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    TensorType,
)
from xdsl.ir import Attribute
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint
from xdsl.utils.hints import isa

from irees.dialects.hal import Affinity, BufferViewType
from irees.dialects.signature import is_entry
from irees.transforms.devices.utils.border import export_of, import_of
from irees.transforms.devices.utils.places import PLACE

ABI = "iree.abi.affinity"


def _take(attributes: ArrayAttr | None, index: int) -> tuple[dict[str, Attribute], Affinity | None]:
    """Splits the attributes of an argument or result into the others and its affinity."""
    data = attributes.data if attributes is not None else ()
    given = data[index] if index < len(data) else None
    found = dict(given.data) if isinstance(given, DictionaryAttr) else {}
    affinity = found.pop(ABI, None)
    return found, affinity if isa(affinity, Affinity) else None


def _or_none(given: Sequence[dict[str, Attribute]]) -> ArrayAttr | None:
    return ArrayAttr(DictionaryAttr(each) for each in given) if any(given) else None


def wrap(function: func.FuncOp) -> None:
    """func @f(%x: tensor) -> tensor  =>  func @f(%v: view) -> view with an import and an export"""
    default = function.attributes.pop(ABI, None)
    default = default if isa(default, Affinity) else None
    if default is not None:
        function.attributes.setdefault(PLACE, default)
    entry = function.body.blocks[0]
    first = entry.first_op
    assert first is not None
    given: list[dict[str, Attribute]] = []
    for index, argument in enumerate(list(entry.args)):
        rest, affinity = _take(function.arg_attrs, index)
        given.append(rest)
        kind = argument.type
        if isinstance(kind, TensorType):
            view = entry.insert_arg(BufferViewType(), index)
            view.name_hint = argument.name_hint
            at = InsertPoint.before(first)
            argument.replace_all_uses_with(import_of(view, kind, affinity or default, at))
            entry.erase_arg(argument)
    marks: list[dict[str, Attribute]] = []
    outputs = list(function.function_type.outputs)
    for index, kind in enumerate(outputs):
        rest, affinity = _take(function.res_attrs, index)
        marks.append(rest)
        if not isinstance(kind, TensorType):
            continue
        outputs[index] = BufferViewType()
        for block in function.body.blocks:
            if isinstance(end := block.last_op, func.ReturnOp):
                value = export_of(end.operands[index], affinity or default, InsertPoint.before(end))
                end.operands[index] = value
    function.arg_attrs, function.res_attrs = _or_none(given), _or_none(marks)
    function.function_type = FunctionType.from_lists([a.type for a in entry.args], outputs)


@dataclass(frozen=True)
class WrapEntryPointsPass(ModulePass):
    """Wraps tensors of public functions in imports and exports of views."""

    name = "irees-wrap-entry-points"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]:
            if is_entry(function):
                wrap(function)
