"""
`irees check-module`: runs the functions of a module that uses the check dialect, like
`iree-check-module`.

The compiler does not support check ops. Each function is rewritten to return the operands of its
checks, and this command compares them.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from irees.errors import ArgumentError, RuntimeTrap, UnsupportedError, describe_location
from irees.runtime.services import set_num_threads
from irees.tools.common import add_program, import_source, options_of, progress, source_of
from irees.tools.values import Tolerance, compare

_PAIRS = ("eq", "almost_eq", "eq_const", "almost_eq_const")
_SINGLES = {"true": True, "all_true": True, "false": False}


@dataclass(frozen=True)
class Check:
    """One check of a function; its operands are the results from `first` on."""

    kind: str
    first: int
    rules: Tolerance
    location: str | None

    def failures(self, results: list[Any]) -> list[str]:
        """Messages about the results that fail the check."""
        actual = results[self.first]
        if self.kind in _SINGLES:
            good = np.asarray(actual).astype(bool).all() == _SINGLES[self.kind]
            return [] if good else [f"expected {self.kind.replace('_', ' ')}"]
        return compare(self.first, actual, results[self.first + 1], self.rules)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    add_program(parser, function=False)
    parser.add_argument("--function", help="only this one")


def run(arguments: argparse.Namespace) -> int:
    """Runs all tests; returns 1 if one fails. Raises an IreesError if the module has none."""
    from irees.compiler import compile
    from irees.dialects import get_context
    from irees.transforms import load_pass

    if arguments.num_threads is not None:
        set_num_threads(arguments.num_threads)
    module = import_source(source_of(arguments))
    # A test may call functions that contain its checks.
    load_pass("irees-inline-calls")().apply(get_context(), module)
    tests = {name: found for name, found in _return_checks(module).items() if found}
    if arguments.function is not None:
        tests = {name: found for name, found in tests.items() if name == arguments.function}
    if not tests:
        raise ArgumentError(
            "no tests found: a test is a function without arguments that contains 'check' ops"
        )
    with progress():
        program = compile(module, **options_of(arguments))
    print(f"[==========] Running {len(tests)} tests.")
    failed = [name for name, checks in tests.items() if not _passes(program, name, checks)]
    print(f"[==========] {len(tests)} tests ran.")
    print(f"[  PASSED  ] {len(tests) - len(failed)} tests.")
    for name in failed:
        print(f"[  FAILED  ] {name}")
    return 1 if failed else 0


def _passes(program: Any, name: str, checks: list[Check]) -> bool:
    print(f"[ RUN      ] {name}")
    try:
        results = program.functions[name]()
    except RuntimeTrap as error:
        lines = [str(error)]
    else:
        results = list(results) if isinstance(results, tuple) else [results]
        lines = [
            f"{check.location or name}: {line}"
            for check in checks
            for line in check.failures(results)
        ]
    for line in lines:
        print(line)
    print(f"[  FAILED  ] {name}" if lines else f"[       OK ] {name}")
    return not lines


def _return_checks(module: Any) -> dict[str, list[Check]]:
    """Makes tests return the operands of their checks; returns function name => its checks."""
    from xdsl.dialects import func

    return {
        function.sym_name.data: _return_checks_of(function)
        for function in module.body.block.ops
        if isinstance(function, func.FuncOp) and not function.is_declaration
        if not function.function_type.inputs.data
    }


def _return_checks_of(function: Any) -> list[Check]:
    from xdsl.dialects import func
    from xdsl.dialects.builtin import FunctionType

    found = [op for op in function.walk() if op.name.startswith("check.expect_")]
    if not found:
        return []
    block = function.body.blocks[0]
    end = block.last_op
    if not isinstance(end, func.ReturnOp) or any(op.parent is not block for op in found):
        raise UnsupportedError("checks must be in the body of a function", op=found[0])
    values = list(end.arguments)
    checks: list[Check] = []
    for op in found:
        operands, check = _check(op, block, len(values))
        values += operands
        checks.append(check)
        op.detach()
        op.erase()
    block.add_op(func.ReturnOp(*values))
    end.detach()
    end.erase()
    function.function_type = FunctionType.from_lists([], [value.type for value in values])
    return checks


def _check(op: Any, block: Any, first: int) -> tuple[list[Any], Check]:
    from xdsl.dialects import arith

    kind = op.name.removeprefix("check.expect_")
    if kind not in (*_PAIRS, *_SINGLES):
        raise UnsupportedError("unknown check op", op=op)
    operands = list(op.operands)
    facts = {**op.attributes, **op.properties}
    if kind.endswith("_const"):
        constant = arith.ConstantOp(facts["value"])
        block.insert_op_before(constant, op)
        operands.append(constant.result)
    if kind.startswith("almost_eq"):
        atol, rtol = (getattr(facts.get(name), "value", None) for name in ("atol", "rtol"))
        rules = Tolerance(
            atol=None if atol is None else float(atol.data),
            rtol=0.0 if rtol is None else float(rtol.data),
        )
    else:
        rules = Tolerance(exact=True)
    if len(operands) != (1 if kind in _SINGLES else 2):
        raise UnsupportedError(f"{len(operands)} values cannot be compared", op=op)
    return operands, Check(kind, first, rules, describe_location(op.location))
