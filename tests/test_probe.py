"""
Ops that irees knows by their interfaces only, through the whole pipeline on every target
(`tests/probe_dialect.py`).
"""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import arith, test
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.utils.test_value import create_ssa_value

import irees
from irees.dialects import get_context
from irees.dialects.iree_tensor_ext import DispatchTensorStoreOp
from irees.errors import ArgumentError, PluginError, RuntimeTrap, UnsupportedError
from irees.frontends.mlir import import_mlir
from irees.interfaces import Domain
from irees.options import Options
from irees.pipeline import OPTIONAL, run_phases
from irees.remarks import collect
from irees.testing.oracles import Case, phases_agree
from tests import probe_dialect as probe
from tests.plugged import plugged

TARGETS = ("reference", "cpu", "cuda-emulated")
M, D = AffineMap.identity(2), [AffineDimExpr(loop) for loop in range(3)]


@pytest.fixture(autouse=True)
def _installed(monkeypatch):
    plugins = plugged(monkeypatch)
    next(plugins)(probe.PLUGIN, dialects=lambda: {"probe": probe.Probe})
    yield
    next(plugins, None)


# All kinds of ops in one program of dynamic sizes, as producers and consumers of ops of irees.
PROGRAM = """
func.func @main(%x: tensor<?x?xf32>, %s: f32) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %k = probe.scalar %s : f32 -> f32
  %f = linalg.fill ins(%k : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %a = arith.subf %x, %f : tensor<?x?xf32>
  %r = probe.rows %a into %e : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %b = probe.fused %r : tensor<?x?xf32> -> tensor<?x?xf32>
  %v = probe.view %b : tensor<?x?xf32> -> tensor<?xf32>
  %l = tensor.dim %v, %c0 : tensor<?xf32>
  %l1 = arith.subi %l, %c1 : index
  %p = tensor.empty(%l1) : tensor<?xf32>
  %q:2 = probe.pair %v into %p, %p : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
      -> tensor<?xf32>, tensor<?xf32>
  %t = math.absf %q#0 : tensor<?xf32>
  return %r, %t, %q#1 : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
}
"""


def expected(x: np.ndarray, s: float) -> tuple[np.ndarray, ...]:
    r = np.maximum.accumulate(x - np.float32(2 * s + 1), 1)
    v = (2 * r + 1).reshape(-1)
    return r, abs(v[:-1] + v[1:]), v[:-1] * v[1:]


def check(program: irees.Program) -> None:
    rng = np.random.default_rng(0)
    for shape in ((5, 7), (1, 1), (33, 100)):
        x = rng.standard_normal(shape).astype(np.float32)
        for got, want in zip(program(x, np.float32(0.25)), expected(x, 0.25), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("fp", ["default", "strict"])
def test_every_kind_of_op_on_every_target(target, fp):
    check(irees.compile(PROGRAM, target=target, fp=fp))


@pytest.mark.parametrize("target", TARGETS[1:])
def test_no_optional_pass_is_needed(target):
    check(irees.compile(PROGRAM, target=target, opt_level=0, disable_pass=tuple(sorted(OPTIONAL))))


def test_rows_fuse_with_what_is_around_them():
    """The element-wise ops on both sides are in the kernel of the rows."""
    text = PROGRAM.split("  %v = ")[0] + "  return %b : tensor<?x?xf32>\n}"
    text = text.replace(", tensor<?xf32>, tensor<?xf32>)", ")")
    program = irees.compile(text)
    assert len(program.manifest["kernels"]) == 1
    x = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(program(x, np.float32(0)), 1)


ROWS = """
func.func @main(%x: tensor<?x?xf32>, %o: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = probe.rows %x into %o : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}"""


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_that_disagree_are_refused(target):
    """Nobody wrote these relations: they follow from the maps of the domain."""
    program = irees.compile(ROWS, target=target)
    x = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(program(x, x), x)
    for shape in ((2, 4), (4, 4), (3, 3), (3, 5)):
        with pytest.raises((ArgumentError, RuntimeTrap), match=r"dim \d.*must equal"):
            program(x, np.ones(shape, np.float32))


@pytest.mark.parametrize("target", TARGETS)
def test_a_stencil_that_leaves_its_operand_is_refused(target):
    text = """
    func.func @main(%x: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
      %r:2 = probe.pair %x into %o, %o : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
          -> tensor<?xf32>, tensor<?xf32>
      return %r#0 : tensor<?xf32>
    }"""
    program = irees.compile(text, target=target)
    np.testing.assert_array_equal(program(np.arange(4.0, dtype="f"), np.zeros(3, "f")), [1, 3, 5])
    assert program(np.ones(0, "f"), np.ones(0, "f")).shape == (0,)
    for size in (4, 5):
        with pytest.raises((ArgumentError, RuntimeTrap), match="the window of"):
            program(np.arange(4.0, dtype="f"), np.zeros(size, "f"))


@pytest.mark.parametrize("text", [ROWS, ROWS.replace("?x?", "3x4")])
def test_an_evaluation_has_the_shape_of_the_output(text, monkeypatch):
    """A wrong shape would be the meaning of the program, and irees bisect would believe it."""
    program = irees.compile(text, target="reference")
    x = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(program(x, x), x)
    for shape in ((3, 3), (1, 4), (4,)):
        wrong = staticmethod(lambda op, x, init, shape=shape: [np.ones(shape, np.float32)])
        monkeypatch.setattr(probe.Rows, "evaluate", wrong)
        with pytest.raises(PluginError, match="evaluate returns float32 of shape"):
            irees.compile(text, target="reference")(x, x)


def test_in_place_is_safe():
    """The input stays what it is, although the output starts as the same tensor."""
    text = (
        ROWS.replace(", %o: tensor<?x?xf32>)", ")")
        .replace("%o", "%x")
        .replace("return %r :", "%y = arith.addf %r, %x : tensor<?x?xf32>\n  return %y :")
    )
    x = np.array([[3, 1, 2]], np.float32)
    np.testing.assert_array_equal(irees.compile(text)(x), [[6, 4, 5]])


UNWRITTEN = """
func.func @main(%x: tensor<?x?xf32>, %n: index, %m: index) -> tensor<?x?xf32> {
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %r = probe.rows %x into %e : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}"""


def test_an_output_that_is_not_read_needs_no_zeros(monkeypatch):
    def filled() -> bool:
        with collect() as remarks:
            x = np.float32([[1, 3, 2]])
            np.testing.assert_array_equal(irees.compile(UNWRITTEN)(x, 1, 3), [[1, 3, 3]])
        return any("filled with 0" in remark.text for remark in remarks)

    assert not filled()
    monkeypatch.delattr(probe.Rows, "reads")
    assert filled()
    monkeypatch.setattr(probe.Rows, "reads", staticmethod(lambda op, n: 1 / 0), raising=False)
    with pytest.raises(PluginError, match="reads failed: ZeroDivisionError"):
        irees.compile(UNWRITTEN)


PUT = """
func.func @main(%x: tensor<2xf32>, %c: tensor<5xf32>) -> (tensor<5xf32> {irees.updates = 1 : index}) {
  %r = probe.put %x into %c : tensor<2xf32>, tensor<5xf32> -> tensor<5xf32>
  return %r : tensor<5xf32>
}"""


def test_an_update_is_in_place(monkeypatch):
    """One dispatch that is tied to the argument, and no copy of it."""
    assert stores_of(PUT) == ["readwrite"]
    cache, x = np.arange(5, dtype="f"), np.float32([7, 8])
    irees.compile(PUT)(x, cache)
    np.testing.assert_array_equal(cache, [7, 1, 8, 3, 4])
    monkeypatch.delattr(probe.Put, "updates")
    assert stores_of(PUT) == ["writeonly"]


def stores_of(text: str) -> list[str]:
    """How the kernels of a program access what they write."""
    module = import_mlir(text)
    run_phases(get_context(), module, Options(), to="dispatch-creation")
    stores = [op for op in module.walk() if isinstance(op, DispatchTensorStoreOp)]
    return [op.target.type.access.data for op in stores]


@pytest.mark.parametrize("target", TARGETS)
def test_an_update_keeps_the_old_value_for_others(target):
    text = PUT.replace(" {irees.updates = 1 : index}", "").replace(
        "(tensor<5xf32>) {", "tensor<5xf32> {"
    )
    text = text.replace("return %r", "%s = arith.addf %r, %c : tensor<5xf32>\n  return %s")
    program = irees.compile(text, target=target)
    cache = np.arange(5, dtype="f")
    np.testing.assert_array_equal(program(np.float32([7, 8]), cache), [7, 2, 10, 6, 8])
    np.testing.assert_array_equal(cache, np.arange(5))


def test_an_op_by_threads_has_a_workgroup_per_row(monkeypatch):
    text = ROWS.replace("?x?", "64x32")

    def tile() -> list[int]:
        program = irees.compile(text, target="cuda-emulated")
        return program.manifest["kernels"][0]["configs"][0]["workgroup"]

    assert tile() == [0, 0]
    why_not = staticmethod(lambda op, builder, room: "not here")
    monkeypatch.setattr(probe.Rows, "to_threads", why_not, raising=False)
    assert tile() == [1, 0]


@pytest.mark.parametrize("target", TARGETS)
def test_on_buffers(target):
    """A program that writes to its arguments may have the op on memrefs."""
    program = irees.compile(
        """
    func.func @main(%x: memref<?x6xf32>, %o: memref<?x6xf32>) {
      probe.rows %x into %o : memref<?x6xf32>, memref<?x6xf32>
      linalg.abs ins(%o : memref<?x6xf32>) outs(%o : memref<?x6xf32>)
      return
    }""",
        target=target,
    )
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    out = np.zeros_like(x)
    returned = program(x, out)
    # Other targets return what they write: their arguments are copies.
    written = out if target == "cpu" else returned
    np.testing.assert_array_equal(written, abs(np.maximum.accumulate(x, 1)))


@pytest.mark.parametrize("target", TARGETS[1:])
def test_loops_that_leave_the_operands_stay_in_memory(target, monkeypatch):
    """A wrong `to_loops` cannot read or write memory that is not the program's."""

    def to_loops(op, builder):
        size = probe.buffer_dim(op.x, 1, builder)
        far = builder.add(size, 1 << 20)
        value = probe.load(op.x, [0, far], builder)
        probe.store(value, op.init, [0, builder.add(far, 5)], builder)

    monkeypatch.delattr(probe.Rows, "reads")  # A wrong one keeps the old value of its output.
    monkeypatch.setattr(probe.Rows, "to_loops", staticmethod(to_loops))
    program = irees.compile(ROWS, target=target)
    assert program.manifest["kernels"][0]["accesses"]["guarded"] == 2
    x = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(program(x, x + 1), x + 1)


@pytest.mark.parametrize(
    ("method", "replacement", "problem"),
    [
        ("domain", lambda op: 1 / 0, "domain failed: ZeroDivisionError: division by zero ("),
        ("domain", lambda op: None, "domain returns nothing"),
        ("domain", lambda op: 3, "domain returns a int, but must return an irees.interfaces.Dom"),
        (
            "domain",
            lambda op: Domain(("parallel",), (probe.identity_map(op.x),) * 2),
            "has 1 loops, but map 0 has others",
        ),
        (
            "domain",
            lambda op: Domain(("parallel",) * 2, (probe.identity_map(op.x),)),
            "has 1 maps for 2 operands",
        ),
        (
            "domain",
            lambda op: Domain(("parallel", "window"), (probe.identity_map(op.x),) * 2),
            "has loops of the kinds parallel, window",
        ),
        (
            "domain",
            lambda op: Domain(("parallel",) * 2, (probe.identity_map(op.x), None)),
            "must have a map for operand 1",
        ),
        ("domain", lambda op: Domain(3, (M,) * 2), "a tuple of kinds and a tuple of maps"),
        ("domain", lambda op: Domain(("parallel",) * 2, M), "a tuple of kinds and a tuple of maps"),
        ("domain", lambda op: Domain((3, 4), (M,) * 2), "has loops of the kinds 3, 4"),
        ("domain", lambda op: Domain(("parallel",) * 2, ("x", M)), "has a str for operand 0, but"),
        (
            "domain",
            lambda op: Domain(("parallel",) * 2, (AffineMap(2, 0, (D[0], D[2])), M)),
            "has 2 loops, but map 0 uses others",
        ),
        (
            "domain",
            lambda op: Domain(("parallel",) * 3, (AffineMap(3, 0, (D[0], D[1] + D[2])),) * 2),
            "no operand that says how far loop 1 goes",
        ),
        (
            "domain",
            lambda op: Domain(("parallel",) * 2, (M, M), frozenset({(0, 2)})),
            "pairs of an operand and one of its axes",
        ),
        ("domain", lambda op: Domain(("parallel",) * 2, (M, M), 3), "pairs of an operand and one"),
        (
            "domain",
            lambda op: Domain(("parallel",) * 2, (M, M), frozenset({(0, 0), (1, 0)})),
            "no operand that says how far loop 0 goes",
        ),
        ("flops", lambda op, n: "many", "flops returns 'many', but must return an int"),
        ("flops", lambda op, n: -1, "flops returns -1, but must return an int"),
        ("flops", lambda op, n: 1 / 0, "flops failed: ZeroDivisionError"),
        ("to_loops", lambda op, b: [][0], "to_loops failed: IndexError"),
        (
            "to_loops",
            lambda op, b: b.op(arith.AddfOp, b.value(1), b.value(1)),
            "to_loops builds an invalid arith.addf: operand 'lhs' at position 0",
        ),
    ],
)
def test_an_interface_that_fails_names_the_op(monkeypatch, method, replacement, problem):
    monkeypatch.setattr(probe.Rows, method, staticmethod(replacement), raising=False)
    with pytest.raises(PluginError) as caught:
        irees.compile(ROWS.replace("?x?", "3x4"))
    assert problem in str(caught.value)
    assert ":3:3" in str(caught.value)
    assert "probe.rows" in str(caught.value)


def test_an_op_that_is_not_in_destination_style(monkeypatch):
    monkeypatch.setattr(probe.RowsOp, "outputs", property(lambda self: (self.x,)))
    with pytest.raises(PluginError, match="must have its outputs as its last operands"):
        irees.compile(ROWS)
    monkeypatch.delattr(probe.RowsOp, "outputs")
    with pytest.raises(PluginError, match="has no property `outputs`"):
        irees.compile(ROWS)


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.delattr(probe.Rows, "evaluate")
    with pytest.raises(PluginError, match=r"has to_loops, but no evaluate; implement evaluate"):
        irees.compile(ROWS)
    monkeypatch.delattr(probe.Rows, "to_loops")
    with pytest.raises(PluginError, match="does not say how the op is lowered"):
        irees.compile(ROWS)


def test_on_two_devices():
    program = irees.compile(
        PROGRAM,
        devices={"a": "cpu", "b": "cpu"},
        pipeline_stages=2,
    )
    check(program)


def test_every_phase_can_be_interpreted():
    """What `irees bisect` needs: the op on buffers means what it means on tensors."""
    x = np.random.default_rng(1).standard_normal((4, 6)).astype(np.float32)
    cases = [Case("main", (x, np.float32(0.5)))]
    expected = {"main": irees.compile(PROGRAM, target="reference")(*cases[0].inputs)}
    assert phases_agree(import_mlir(PROGRAM), cases, expected) == []


def test_the_trip_counts_of_a_domain():
    """The largest static size of a loop, but for dims that may be shorter."""
    kinds = [TensorType(f32, shape) for shape in ([-1, 4], [3, -1], [-1, 2])]
    op = test.TestOp(operands=[create_ssa_value(kind) for kind in kinds])
    maps = (AffineMap.identity(2),) * 3
    assert Domain(("parallel",) * 2, maps, frozenset({(2, 1)})).sizes(op) == (3, 4)
    last = test.TestOp(operands=[create_ssa_value(kinds[2])])
    assert Domain(("parallel",) * 2, maps[:1], frozenset({(0, 1)})).sizes(last) == (-1, -1)


def test_an_op_that_no_interface_lowers_does_not_reach_the_c_text(monkeypatch):
    """A phase refuses what its passes left, whoever inserted it."""
    monkeypatch.setattr(probe.Rows, "to_loops", staticmethod(lambda op, b: b.insert(op.clone())))
    with pytest.raises(
        UnsupportedError, match=r"^<text>:3:3: error: probe.rows: this op has no C form"
    ):
        irees.compile(ROWS)
    with pytest.raises(UnsupportedError, match="nothing lowers this op up to the end of phase co"):
        run_phases(get_context(), import_mlir(ROWS), Options(), to="codegen")
