"""The compiler's own check of IR finds what xDSL's finds."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, ModuleOp, f32, f64
from xdsl.ir import Block, Operation, Region
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

import irees
from irees.dialects import all_factories
from irees.errors import ParseError, UnsupportedError, VerifyError
from irees.verification import InvalidOp, verify


def function(*ops: Operation) -> ModuleOp:
    """A function of those ops."""
    return ModuleOp([func.FuncOp("f", ((), ()), Region(Block([*ops, func.ReturnOp()])))])


def add(left, right, result=f32) -> Operation:
    """An addition of any operands."""
    return arith.AddfOp.create(operands=[left, right], result_types=[result])


def constant(value: float = 1.0, kind=f32) -> arith.ConstantOp:
    """A constant of f32 or f64."""
    return arith.ConstantOp(FloatAttr(value, kind))


def test_alike_ops_that_are_valid():
    one, two = constant(), constant(2.0)
    sums = [add(one.results[0], two.results[0]) for _ in range(3)]
    verify(function(one, two, *sums))


@pytest.mark.parametrize("before", [0, 1, 3])
def test_an_op_that_is_like_valid_ones_but_for_an_operand(before):
    one, other = constant(), constant(kind=f64)
    valid = [add(one.results[0], one.results[0]) for _ in range(before)]
    module = function(one, other, *valid, add(one.results[0], other.results[0]))
    with pytest.raises(VerifyException):
        module.verify()
    with pytest.raises(VerifyException):
        verify(module)


def test_an_op_that_is_like_valid_ones_but_for_a_result():
    one = constant()
    valid = add(one.results[0], one.results[0])
    with pytest.raises(VerifyException):
        verify(function(one, valid, add(one.results[0], one.results[0], f64)))


def test_an_op_that_is_like_valid_ones_but_for_an_attribute():
    one, other = constant(), constant(2.0)
    broken = arith.ConstantOp.create(
        result_types=[f32], properties=dict(constant(1, f64).properties)
    )
    with pytest.raises(VerifyException):
        verify(function(one, other, broken))


def test_an_erased_value():
    one = constant()
    valid, last = add(one.results[0], one.results[0]), add(one.results[0], one.results[0])
    other = constant()
    broken = add(other.results[0], one.results[0])
    module = function(one, valid, other, broken, last)
    other.results[0].erase(safe_erase=False)
    with pytest.raises(InvalidOp, match=r"[Ee]rased"):
        verify(module)


def test_a_block_ends_with_a_terminator():
    one = constant()
    zero = arith.ConstantOp.from_int_and_width(0, IndexType())
    inside = add(one.results[0], one.results[0])
    body = Block([inside], arg_types=[IndexType()])
    loop = scf.ForOp(zero.results[0], zero.results[0], zero.results[0], [], Region(body))
    with pytest.raises(VerifyException):
        verify(function(one, add(one.results[0], one.results[0]), zero, loop))
    zero = arith.ConstantOp.from_int_and_width(0, IndexType())
    empty = Region(Block(arg_types=[IndexType()]))
    loop = scf.ForOp(zero.results[0], zero.results[0], zero.results[0], [], empty)
    with pytest.raises(VerifyException):
        verify(function(zero, loop))


PLACES = {
    "a module": '"{}"() : () -> ()',
    "a module, with a region": '"{}"() ({{ }}) : () -> ()',
    "a function": 'func.func @f() {{ "{}"() : () -> () }}',
    "a branch": 'func.func @f(%c: i1) {{ scf.if %c {{ "{}"() : () -> () }} return }}',
}
ALLOWED = {("func.return", "a function"), ("scf.yield", "a branch")}


def terminators() -> list[str]:
    """The names of all registered ops that end a block."""
    ops = (op for make in all_factories().values() for op in make().operations)
    return sorted({op.name for op in ops if op.has_trait(IsTerminator)})


@pytest.mark.parametrize("place", PLACES)
def test_a_terminator_stands_in_an_op_that_it_belongs_to(place):
    found = terminators()
    assert {"tensor.yield", "iree_linalg_ext.yield", "affine.yield", "linalg.yield"} <= set(found)
    for name in found:
        if (name, place) in ALLOWED:
            irees.compile(PLACES[place].format(name))
            continue
        with pytest.raises((VerifyError, UnsupportedError, ParseError)) as error:
            irees.compile(PLACES[place].format(name))
        assert error.value.location is not None, name
