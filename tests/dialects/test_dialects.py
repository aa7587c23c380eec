"""The tables of dialects: cheap to import, polite to others, and complete."""

from __future__ import annotations

import subprocess
import sys

import pytest
from xdsl.context import Context
from xdsl.dialects.arith import CmpfOp, ConstantOp
from xdsl.dialects.builtin import Builtin, FloatAttr, TensorType, f32, i1
from xdsl.dialects.tensor import EmptyOp
from xdsl.dialects.vector import Vector

from irees.dialects import EXTENDED, OWN, all_factories, extend_context, get_context
from irees.frontends.mlir import import_mlir, print_module


def test_importing_the_universe_imports_no_dialect():
    code = (
        "import sys, irees.universe\n"
        "print([m for m in sys.modules if m.startswith('irees.dialects.') "
        "or m.startswith('xdsl.dialects.linalg') or m.startswith('irees.transforms.')])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("name", [*OWN, *EXTENDED])
def test_every_dialect_loads_and_loading_twice_is_harmless(name):
    factories = all_factories()
    first, second = factories[name](), factories[name]()
    assert first.name == second.name == name
    names = [op.name for op in second.operations]
    assert len(names) == len(set(names))


def test_a_context_that_loaded_a_dialect_before_gets_the_missing_ops():
    ctx = Context()
    ctx.load_dialect(Builtin)
    ctx.load_dialect(Vector)
    extend_context(ctx)
    assert ctx.get_optional_op("vector.gather") is not None
    assert ctx.get_optional_op("scf.forall") is not None
    assert ctx.get_optional_op("iree_linalg_ext.sort") is not None


def test_a_neighbour_that_has_the_dialect_keeps_it(monkeypatch):
    from xdsl.ir import Dialect
    from xdsl.universe import Universe

    import irees.universe as universe

    class EntryPoint:
        def load(self):
            return Universe(all_dialects={"util": lambda: Dialect("util")})

    monkeypatch.setattr(universe, "entry_points", lambda group: [EntryPoint()])
    assert "util" not in dict(universe.UNIVERSE.all_dialects.items())
    assert "flow" in dict(universe.UNIVERSE.all_dialects.items())


def test_a_broken_neighbour_is_not_our_error(monkeypatch):
    import irees.universe as universe

    class EntryPoint:
        def load(self):
            raise RuntimeError("broken")

    monkeypatch.setattr(universe, "entry_points", lambda group: [EntryPoint()])
    assert set(dict(universe.UNIVERSE.all_dialects.items())) == set(OWN)


def test_compares_of_tensors_give_tensors_of_i1():
    get_context().load_registered_dialect("arith")
    value = EmptyOp([], TensorType(f32, [4])).tensor
    compare = CmpfOp(value, value, "oeq")
    compare.verify()
    assert compare.result.type == TensorType(i1, [4])
    scalar = ConstantOp(FloatAttr(1.0, f32)).result
    assert CmpfOp(scalar, scalar, "oeq").result.type == i1


@pytest.mark.parametrize(
    "op",
    [
        "arith.cmpi eq, %x, %x : tensor<4xf32>",
        "arith.extf %x : tensor<4xf32> to tensor<4xf16>",
        "arith.truncf %x : tensor<4xf32> to tensor<8xf16>",
        "arith.sitofp %x : tensor<4xf32> to tensor<4xf32>",
        "arith.select %c, %x, %x : tensor<8xi1>, tensor<4xf32>",
    ],
)
def test_shaped_arith_is_still_checked(op):
    from irees.errors import IreesError

    with pytest.raises(IreesError):
        import_mlir(
            f"func.func @f(%x: tensor<4xf32>, %c: tensor<8xi1>) {{\n  %0 = {op}\n  return\n}}"
        )


@pytest.mark.parametrize("value", ["0x7FC00000", "0xFF800000", "0x7F800000"])
def test_floats_that_are_bits(value):
    text = f"%0 = arith.constant dense<{value}> : tensor<f32>\n%1 = arith.constant {value} : f32\n"
    printed = print_module(import_mlir(text))
    assert printed.count(value) == 2


class PlugIn:
    """An entry point of `xdsl.universe`."""

    value = "another.universe:UNIVERSE"

    def __init__(self, name, made):
        self.name, self.made = name, made

    def load(self):
        if isinstance(self.made, BaseException):
            raise self.made
        return self.made


def test_a_plug_in_that_is_broken_is_named_and_costs_itself(monkeypatch, capsys):
    from importlib.metadata import entry_points

    from xdsl.universe import Universe

    import irees.dialects as dialects
    from irees.tools.main import main

    plug_ins = [
        *entry_points(group="xdsl.universe"),
        PlugIn("a-broken", ImportError("No module named 'nowhere'")),
        PlugIn("b-exits", SystemExit(3)),
        PlugIn("c-other", object()),
        PlugIn("d-clash", Universe(all_passes={"irees-simplify-scf": object, "d-own": object})),
        PlugIn("e-good", Universe(all_passes={"e-own": object})),
    ]
    monkeypatch.setattr(dialects, "entry_points", lambda group: plug_ins)
    found = dialects.neighbours()
    assert found.dialects.keys() >= {"flow", "arith"}
    assert len(found.problems) == 4
    assert main(["opt", "--list-passes"]) == 0
    out, error = capsys.readouterr()
    assert {"irees-simplify-scf", "canonicalize", "d-own", "e-own"} <= set(out.split())
    for text in (
        "'a-broken' (another.universe:UNIVERSE) does not import: ImportError: No module named",
        "'b-exits' (another.universe:UNIVERSE) does not import: SystemExit: 3",
        "'c-other' (another.universe:UNIVERSE) is no Universe",
        "'irees' offers what another does: irees-simplify-scf",
    ):
        assert text in error, error
