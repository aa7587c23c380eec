"""xDSL's IR classes with irees' faster methods behave as xDSL's own."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import FunctionType, IntegerType, ModuleOp, f32, i32
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.utils.exceptions import VerifyException

from irees.dialects.upstream import _core
from irees.frontends.mlir import import_mlir

NESTED = """
func.func @f(%n: index, %b: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %t = arith.cmpi eq, %i, %c1 : index
    scf.if %t {
      scf.for %j = %c0 to %i step %c1 {
        %x = memref.load %b[%j] : memref<?xf32>
        memref.store %x, %b[%i] : memref<?xf32>
      }
    } else {
      %x = memref.load %b[%c0] : memref<?xf32>
      memref.store %x, %b[%i] : memref<?xf32>
    }
  }
  cf.br ^bb1
^bb1:
  return
}
func.func private @g()
"""


def test_a_walk_visits_ops_in_xdsls_order():
    module = import_mlir(NESTED)
    assert list(module.walk()) == list(_core._walk(module))
    for flags in ({"reverse": True}, {"region_first": True}):
        assert list(module.walk(**flags)) == list(_core._walk(module, **flags))
    for op in module.walk():
        assert list(op.walk()) == list(_core._walk(op))


def kept(walk) -> list[str]:
    """Erases stores as they are handed out, and puts an op before each load."""
    module = import_mlir(NESTED)
    seen: list[str] = []
    for op in walk(module):
        seen.append(op.name)
        if op.name == "memref.store":
            op.detach()
            op.erase()
        elif op.name == "memref.load":
            assert op.parent is not None
            op.parent.insert_op_before(arith.ConstantOp.from_int_and_width(1, 32), op)
    return seen


def test_ops_may_be_erased_and_inserted_in_a_walk():
    assert kept(Operation.walk) == kept(_core._walk)


def test_ir_classes_are_plain():
    assert isinstance(f32, Attribute)
    assert isinstance(i32, IntegerType)
    assert not isinstance(f32, IntegerType)

    class Own(Operation):
        """A class made later."""

        name = "own.op"

    assert isinstance(Own.create(), Operation)
    assert not isinstance(arith.ConstantOp.from_int_and_width(1, 32), Own)
    assert type(Operation).__instancecheck__ is type.__instancecheck__


def function_with(op: Operation) -> func.FuncOp:
    block = Block([op, func.ReturnOp()])
    return func.FuncOp("f", FunctionType.from_lists([], []), Region(block))


def test_a_function_uses_only_its_own_values():
    outside = arith.ConstantOp.from_int_and_width(1, 32)
    ModuleOp([outside, function := function_with(arith.AddiOp(outside, outside))])
    with pytest.raises(VerifyException, match="defined out of its IsolatedFromAbove parent"):
        function.verify()
    inner = arith.ConstantOp.from_int_and_width(1, 32)
    function_with(inner).verify()


def test_nested_functions_are_checked_on_their_own():
    used = arith.ConstantOp.from_int_and_width(1, 32)
    nested = ModuleOp([used, function_with(arith.AddiOp(used, used))])
    outer = ModuleOp([nested])
    with pytest.raises(VerifyException, match="IsolatedFromAbove"):
        outer.verify()
