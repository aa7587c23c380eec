"""Rewrites are counted and limited, drivers have fuel, and the command line says so."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i32
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

import irees
from irees.errors import ArgumentError
from irees.frontends.mlir import import_mlir, open_source
from irees.options import Options
from irees.program_cache import program_key
from irees.remarks import collect
from irees.rewrites import Fuel, limited, may_rewrite
from irees.target import Target
from irees.tools.main import main
from irees.transforms.utils.greedy import rewrite_greedily

TEXT = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"


class Flip(RewritePattern):
    """constant {flag}  <=>  constant {}"""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if isinstance(op, arith.ConstantOp):
            if op.attributes.pop("flag", None) is None:
                op.attributes["flag"] = StringAttr("up")
            rewriter.notify_op_modified(op)


class Grow(RewritePattern):
    """constant n  =>  constant n + 1"""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            rewriter.replace(op, arith.ConstantOp.from_int_and_width(op.value.value.data + 1, i32))


@pytest.mark.parametrize("pattern", [Flip(), Grow()])
def test_patterns_that_never_end_run_out_of_fuel(pattern):
    module = import_mlir("func.func @f() -> i32 { %c = arith.constant 0 : i32 return %c : i32 }")
    fuel = Fuel.of("loop", module).given
    with collect() as remarks, limited(None) as counter:
        rewrite_greedily("loop", module, [pattern])
    assert counter.count == fuel
    (remark,) = remarks
    assert remark.kind == "failed"
    assert f"stopped after {fuel} rewrites, the last {type(pattern).__name__}" in remark.text
    module.verify()


def test_fuel_grows_with_the_module():
    small, large = (
        import_mlir(
            "func.func @f() { "
            + " ".join(f"%c{i} = arith.constant 0 : i32" for i in range(n))
            + " return }"
        )
        for n in (0, 100)
    )
    assert Fuel.of("p", large).given - Fuel.of("p", small).given == 3200


def test_nothing_is_counted_outside():
    assert may_rewrite("p", None, "x")
    with limited(1) as counter:
        assert may_rewrite("p", None, "x")
        assert not may_rewrite("p", None, "x")
    assert counter.count == 1
    assert may_rewrite("p", None, "x")


def test_a_block_without_limit_goes_on_with_the_outer_one():
    with limited(3) as outer:
        assert may_rewrite("p", None, "x")
        with limited(None) as inner:
            assert may_rewrite("p", None, "x")
        assert (outer.count, inner.count) == (2, 2)
        with suppress(KeyError), limited(None):
            assert may_rewrite("p", None, "x")
            raise KeyError
        assert outer.count == 2


@pytest.mark.parametrize("limit", [-1, "3", 1.5])
def test_a_bad_limit(limit):
    with pytest.raises(ArgumentError, match="but must be 0 or more"):
        irees.compile(TEXT, rewrite_limit=limit)


def test_the_limit_is_in_the_key_of_the_cache():
    source, options = open_source(TEXT), Options()
    keys = {
        program_key(source, replace(options, rewrite_limit=n), Target.parse("cpu"))
        for n in (None, 0, 1)
    }
    assert len(keys) == 3


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "x.mlir"
    path.write_text("func.func @f(%x: i32) -> i32 {\n  %c = arith.constant 0 : i32\n"
                    "  %y = arith.addi %x, %c : i32\n  %d = arith.constant 1 : i32\n"
                    "  return %y : i32\n}\n")  # fmt: skip
    return str(path)


def test_irees_opt_counts_over_all_passes(source, capsys):
    assert main(["opt", source, "-p", "canonicalize,cse", "--rewrite-limit=0", "--remarks"]) == 0
    printed = capsys.readouterr()
    assert "arith.addi" in printed.out
    assert "canonicalize: rewrite 1 (" in printed.err
    assert main(["opt", source, "-p", "canonicalize,cse"]) == 0
    assert "arith.addi" not in capsys.readouterr().out
    assert main(["opt", source, "-p", "irees-pipeline{to=global-opt}", "--rewrite-limit=0"]) == 0
    assert "arith.addi" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (
            ["opt", "--rewrite-limit=-1"],
            1,
            "rewrite_limit is -1, but must be 0 or more; 0 disables",
        ),
        (
            ["run", "--rewrite-limit=-1"],
            1,
            "rewrite_limit is -1, but must be 0 or more; 0 disables",
        ),
        (["opt", "--rewrite-limit=x"], 2, "invalid int value: 'x'"),
        (["compile", "--rewrite-limit=1.5"], 2, "invalid int value: '1.5'"),
    ],
)
def test_a_bad_limit_on_the_command_line(words, code, text, source, capsys):
    assert main([words[0], source, *words[1:]]) == code
    assert text in capsys.readouterr().err


def test_the_command_line_limits(source, capsys, tmp_path):
    run = ["run", source, "--input=5", "--rewrite-limit=0"]
    assert main(run) == 0
    assert "5" in capsys.readouterr().out
    compiled = ["compile", source, "--compile-to=global-opt", "--rewrite-limit=0", "--remarks"]
    assert main(compiled) == 0
    printed = capsys.readouterr()
    assert "arith.addi" in printed.out
    assert "beyond the limit" in printed.err
