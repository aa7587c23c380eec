"""Plug-ins: discovery, keys, lowerings of their ops; and the examples in an environment of theirs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import venv
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType, f32
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def
from xdsl.utils.test_value import create_ssa_value

import irees
from irees import interfaces, plugins
from irees.errors import PluginError
from irees.interpreters import evaluate as interpret_op
from irees.options import Options
from irees.pipeline import phases
from irees.places import ANCHORS, inserted_passes
from irees.plugins import Plugin, active, installed
from tests.plugged import Entry, plugged

EXAMPLES = Path(__file__).parents[1] / "examples" / "plugins"
DOUBLED = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = arith.addf %x, %x : tensor<4xf32>
  return %r : tensor<4xf32>
}"""


@pytest.fixture
def having(monkeypatch):
    yield from plugged(monkeypatch)


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        (ImportError("no module named 'foo'\nmore"), "does not import: ImportError: no module na"),
        (SystemExit(3), "does not import: SystemExit: 3"),
        ("a text", "it is a str, but must be an irees.plugins.Plugin"),
        (Plugin("x", api=99), "made for version 99 of the interface, and this is 1"),
        (Plugin("x", passes={"irees-x": "a:b"}), "names of passes that begin with irees-"),
        (Plugin("x", dialects={"x": 3}), "dialects must map names to names"),  # type: ignore
        (Plugin("x", leaves={"input": "acme"}), "leaves must map phases to sequences of dialects"),
    ],
)
def test_one_that_does_not_work_is_named_and_left_out(having, plugin, problem):
    having(Entry("bad", plugin), Entry("good", Plugin("good")))
    with pytest.warns(RuntimeWarning, match=r"plug-in 'bad' \(irees.plugins:PLUGIN\)"):
        found = installed()
    assert problem in (found[0].problem or "")
    assert [each.name for each in active()] == ["good"]
    np.testing.assert_array_equal(irees.compile(DOUBLED)(np.ones(4, np.float32)), 2)
    # Asked for by name, its failure is an error.
    with pytest.raises(PluginError, match="'bad'"):
        irees.compile(DOUBLED, plugins=("bad",))


def test_of_two_that_offer_one_name_the_first_wins(having):
    having(*(Entry(name, Plugin(name, passes={"acme-x": "a:b"})) for name in "ab"))
    with pytest.warns(RuntimeWarning, match="plug-in 'a' has the pass acme-x, too"):
        assert [each.plugin is None for each in installed()] == [False, True]


def test_one_that_is_not_installed(having):
    having(Entry("acme", Plugin("acme")))
    with pytest.raises(PluginError, match="'acne' is not installed; installed: acme"):
        irees.compile(DOUBLED, plugins=("acne",))


def test_passes_of_plugins_come_before_those_of_the_caller(having):
    having(
        Entry("b", Plugin("b", inserts={"after:structured": "cse"})),
        Entry("a", Plugin("a", inserts={"after:structured": "canonicalize"})),
    )
    options = Options(passes={"after:structured": "lower-affine"})
    assert [each.name for each in inserted_passes(options)] == [
        "canonicalize",
        "cse",
        "lower-affine",
    ]
    names = [each.name for phase in phases(options) for each in phase.passes]
    at = names.index("irees-generalize-linalg-named-ops")
    assert names[at + 1 : at + 4] == ["canonicalize", "cse", "lower-affine"]
    alone = [each.name for phase in phases(Options(plugins=())) for each in phase.passes]
    assert len(alone) == len(names) - 3


def test_an_insertion_that_does_not_exist_names_the_plugin(having):
    having(Entry("acme", Plugin("acme", inserts={"after:nowhere": "cse"})))
    with pytest.raises(PluginError, match="plug-in 'acme': there is no 'nowhere'"):
        irees.compile(DOUBLED)


def test_what_is_installed_is_part_of_the_key(having):
    from irees.frontends.mlir import open_source
    from irees.program_cache import program_key
    from irees.target import Target

    def key(options: Options) -> str:
        return program_key(open_source(DOUBLED), options, Target.parse("cpu"))

    having()
    alone = key(Options())
    having(Entry("acme", Plugin("acme", version="1"), "json:dumps"))
    first = key(Options())
    having(Entry("acme", Plugin("acme", version="2"), "json:dumps"))
    assert len({alone, first, key(Options())}) == 3
    assert key(Options(passes={"after:input": "cse"})) != key(Options())


class Lowering:
    """Methods that stand in for an interface."""


KIND = TensorType(f32, [4])


@irdl_op_definition
class TwiceOp(IRDLOperation):
    """An op of two operands."""

    name = "test.twice"
    x = operand_def()
    y = operand_def()
    result = result_def()


@pytest.mark.parametrize(
    ("lowering", "problem"),
    [
        (lambda op, b: 1 / 0, "to_structured failed: ZeroDivisionError"),
        (lambda op, b: [], "to_structured returns nothing, but must return tensor<4xf32>"),
        (lambda op, b: [op.operands[0]], "to_structured returns i1, but must return tensor<4xf32>"),
        (lambda op, b: [b.insert(op.clone()).results[0]], "its decomposition contains itself"),
        (lambda op, b: None, "to_structured returns nothing, but must return a list"),
        (lambda op, b: op.operands[1], "to_structured returns a BlockArgument, but must return a "),
        (lambda op, b: [b.op(arith.AddiOp, *op.operands[1:])], "builds an invalid arith.addi: "),
    ],
)
def test_a_lowering_that_fails_names_the_op(having, monkeypatch, lowering, problem):
    monkeypatch.setattr(Lowering, "to_structured", staticmethod(lowering), raising=False)
    having(Entry("t", Plugin("t", interfaces={"arith.select": f"{__name__}:Lowering"})))
    text = """
    func.func @main(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
      %r = "arith.select"(%c, %x, %x) : (i1, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      return %r : tensor<4xf32>
    }"""
    with pytest.raises(PluginError) as caught:
        irees.compile(text)
    assert problem in str(caught.value)
    assert "arith.select" in str(caught.value)
    assert ":3:7" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = 1\nclass Faulty:\n    y = x.missing\n", r"'missing' \(.*faulty_\w+.py:3\)"),
        ("import no_such_package\n", r"no_such_package' \(.*faulty_\w+.py:1\)"),
        ("x = 1\ny = (\n", r"SyntaxError: '\(' was never closed.* \(.*faulty_\w+.py:2\)"),
        ("x = 1\n", r"has no attribute 'Lowering'$"),
    ],
)
def test_a_module_that_does_not_import_names_the_line(having, monkeypatch, tmp_path, text, problem):
    name = f"faulty_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    having(Entry("t", Plugin("t", interfaces={"arith.addf": f"{name}:Lowering"})))
    with pytest.raises(PluginError) as caught:
        irees.compile(DOUBLED)
    assert re.search(problem, str(caught.value))


def test_an_op_on_scalars_is_built_with_op_and_number(having, monkeypatch):
    def lower(op, builder):
        return [builder.op(arith.MulfOp, op.lhs, builder.number(5.0, op.lhs.type))]

    monkeypatch.setattr(Lowering, "to_structured", staticmethod(lower), raising=False)
    monkeypatch.delattr(Lowering, "evaluate", raising=False)
    having(Entry("t", Plugin("t", interfaces={"arith.maximumf": f"{__name__}:Lowering"})))
    text = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %e = tensor.empty() : tensor<4xf32>
      %r = linalg.map { arith.maximumf } ins(%x, %x : tensor<4xf32>, tensor<4xf32>)
          outs(%e : tensor<4xf32>)
      return %r : tensor<4xf32>
    }"""
    np.testing.assert_array_equal(irees.compile(text)(np.ones(4, np.float32)), 5)


def test_an_interface_says_how_its_op_is_lowered(having):
    having(Entry("t", Plugin("t", interfaces={"arith.addf": "json:JSONDecoder"})))
    with pytest.raises(PluginError, match="decode is no method of an interface"):
        irees.compile(DOUBLED)


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Path:
    """A fresh environment that sees the packages of this one, with the examples installed."""
    root = tmp_path_factory.mktemp("environment")
    venv.create(root / "venv", with_pip=False)
    python = root / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    paths = {"base": str(root / "venv"), "platbase": str(root / "venv")}
    into = Path(sysconfig.get_path("purelib", "venv", paths))
    ours = [p for p in sys.path if p.endswith("site-packages")]
    lines = [f"import site; site.addsitedir({path!r})" for path in ours]
    (into / "parent.pth").write_text("\n".join([*lines, str(Path(irees.__file__).parents[1])]))
    for example in sorted(EXAMPLES.iterdir()):
        # A copy, since a build leaves files beside the sources.
        copy = shutil.copytree(example, root / example.name)
        flags = ["--no-deps", "--no-build-isolation", "--no-index", "-q"]
        command = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            *flags,
            str(copy),
        ]
        subprocess.run(command, check=True, capture_output=True, text=True)
    return python


def run(python: Path, *words: str, cache: Path) -> str:
    """What a command of irees prints in that environment."""
    environment = os.environ | {"IREES_CACHE_DIR": str(cache)}
    environment.pop("PYTHONPATH", None)
    command = [str(python), "-m", "irees.tools.main", *words]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


SQUASHED = """
func.func @main(%a: tensor<?x8xf32>, %b: tensor<8x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %n = tensor.dim %a, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %m = linalg.matmul ins(%a, %b : tensor<?x8xf32>, tensor<8x4xf32>)
      outs(%f : tensor<?x4xf32>) -> tensor<?x4xf32>
  %r = acme.squash %m : tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
"""
CALL = ("--input=3x8xf32=0.5", "--input=8x4xf32=-1", "--expected-output=3x4xf32=-0.8")


@pytest.mark.parametrize("target", ["reference", "cpu", "cuda-emulated"])
def test_acme_ops(environment, tmp_path, target):
    """An op that decomposes runs on every target, as the epilogue of the kernel before it."""
    path = tmp_path / "squashed.mlir"
    path.write_text(SQUASHED)
    run(environment, "run", str(path), f"--target={target}", *CALL, cache=tmp_path)
    if target == "cpu":
        ir = run(
            environment, "compile", str(path), "--compile-to=dispatch-creation", cache=tmp_path
        )
        assert ir.count("flow.executable ") == 1
        assert "acme" not in ir


SMOOTHED = """
func.func @main(%x: tensor<?x?xf32>, %f: f32) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %y = acme.smooth %x by %f into %e along 1 : tensor<?x?xf32>, f32, tensor<?x?xf32>
      -> tensor<?x?xf32>
  %r = acme.squash %y : tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
"""


@pytest.mark.parametrize("target", ["reference", "cpu", "cuda-emulated"])
def test_acme_smooth(environment, tmp_path, target):
    """An op with loops of its own runs on every target, in one kernel with what follows it."""
    path = tmp_path / "smoothed.mlir"
    path.write_text(SMOOTHED)
    for values, wanted in (("4 0 0", "0.8 0.6666667 0.5"), ("8", "0.88888889")):
        shape = f"1x{len(values.split())}xf32"
        call = (
            f"--input={shape}={values}",
            "--input=f32=0.5",
            f"--expected-output={shape}={wanted}",
        )
        run(environment, "run", str(path), f"--target={target}", *call, cache=tmp_path)
    if target == "cpu":
        ir = run(
            environment, "compile", str(path), "--compile-to=dispatch-creation", cache=tmp_path
        )
        assert ir.count("flow.executable ") == 1


ATTENDED = """
func.func @main(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x1xf32>,
    %bias: tensor<3xf32>) -> tensor<2x?x1xf32> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %q, %c1 : tensor<2x?x8xf32>
  %e = tensor.empty(%n) : tensor<2x?x1xf32>
  %y = local.attention %q, %k, %v by %bias into %e : tensor<2x?x8xf32>, tensor<2x?x8xf32>,
      tensor<2x?x1xf32>, tensor<3xf32>, tensor<2x?x1xf32> -> tensor<2x?x1xf32>
  return %y : tensor<2x?x1xf32>
}
"""


@pytest.mark.parametrize("target", ["reference", "cpu", "cuda-emulated"])
def test_acme_attention(environment, tmp_path, target):
    """A plug-in written from docs/plugins.md: windows of keys, and tile sizes of its own."""
    path = tmp_path / "attended.mlir"
    path.write_text(ATTENDED)
    inputs = ["2x2x8xf32=0", "2x4x8xf32=1", "2x4x1xf32=1 2 3 4 5 6 7 8", "3xf32=0 0 -1000"]
    call = [*(f"--input={each}" for each in inputs), "--expected-output=2x2x1xf32=1.5 2.5 5.5 6.5"]
    run(environment, "run", str(path), f"--target={target}", *call, cache=tmp_path)
    if target == "cpu":
        assert "1x64x0x0x0" in run(environment, "explain", str(path), cache=tmp_path)
        short = [f"--input={each}" for each in (inputs[0], "2x3x8xf32=1", *inputs[2:])]
        with pytest.raises(AssertionError, match=r"the window of local.attention must lie inside"):
            run(environment, "run", str(path), *short, cache=tmp_path)


def test_acme_npu(environment, tmp_path):
    """A target of a plug-in, by its name on the command line."""
    path = tmp_path / "squashed.mlir"
    path.write_text(SQUASHED)
    run(environment, "run", str(path), "--target=acme-npu", *CALL, cache=tmp_path)
    out = tmp_path / "squashed.c"
    run(environment, "compile", str(path), "--target=acme-npu", "-o", str(out), cache=tmp_path)
    assert "npu_multiply(&npu, 2, 0, 1);" in out.read_text()
    assert "targets acme-npu" in run(environment, "doctor", cache=tmp_path)


def test_acme_passes(environment, tmp_path):
    """A pass of a plug-in by its name: in the pipeline, alone, and in xdsl-opt."""
    path = tmp_path / "doubled.mlir"
    path.write_text(
        "func.func @main(%x: f32) -> f32 {\n  %c = arith.constant 2.0 : f32\n"
        "  %r = arith.mulf %x, %c : f32\n  return %r : f32\n}"
    )
    name = "acme-double-by-adding"
    for flags in (("opt", "-p", name), ("compile", f"--insert=after:input={name}")):
        tail = ("--compile-to=input",) if flags[0] == "compile" else ()
        assert "arith.addf %x, %x" in run(environment, *flags, *tail, str(path), cache=tmp_path)
    code = textwrap.dedent(f"""
        import sys
        from xdsl.tools.xdsl_opt import main
        insert = 'irees-pipeline{{to="input" insert="after:input={name}"}}'
        sys.argv = ["xdsl-opt", {str(path)!r}, "-p", insert]
        main()
    """)
    answer = subprocess.run(
        [str(environment), "-c", code], capture_output=True, text=True, check=False
    )
    assert "arith.addf %x, %x" in answer.stdout, answer.stderr


def test_they_are_listed(environment, tmp_path):
    assert "plug-in acme 1.0" in run(environment, "--version", cache=tmp_path)
    assert "interfaces acme.smooth, acme.squash" in run(environment, "doctor", cache=tmp_path)
    assert "acme-double-by-adding" in run(environment, "opt", "--list-passes", cache=tmp_path)


def test_without_plugins_their_ops_are_refused(environment, tmp_path):
    path = tmp_path / "squashed.mlir"
    path.write_text(SQUASHED)
    with pytest.raises(AssertionError, match=r"squashed.mlir:10:\d+: error: acme.squash: nothing"):
        run(environment, "run", str(path), "--no-plugins", *CALL, cache=tmp_path)


def test_the_page_is_true():
    page = (EXAMPLES.parents[1] / "docs" / "plugins.md").read_text()
    for name, anchor in ANCHORS.items():
        assert f"| `{name}` | {anchor.holds}" in page
    declared = (EXAMPLES / "acme-ops" / "acme_ops" / "__init__.py").read_text()
    assert declared[declared.index("from irees") :] in page
    for name in plugins.Plugin.__dataclass_fields__:
        assert f"`{name}`" in page or f"{name}=" in page or name == "api"
    assert all(f"`{name}" in page for name in interfaces.METHODS)


@pytest.mark.parametrize(
    ("evaluate", "problem"),
    [
        (lambda op, x, y: 1 / 0, "evaluate failed: ZeroDivisionError: division by zero"),
        (lambda op, x, y: x, "evaluate returns a ndarray, but must return a list; return a list"),
        (lambda op, x, y: [x.astype(np.float64)], "returns float64 of shape (4,), but must return"),
        (lambda op, x, y: [x[:3]], "evaluate returns float32 of shape (3,), but must return a ten"),
        (lambda op, x, y: [x[:, None]], "evaluate returns float32 of shape (4, 1), but must ret"),
    ],
)
def test_an_evaluation_that_fails_names_the_op(having, monkeypatch, evaluate, problem):
    monkeypatch.setattr(Lowering, "to_structured", staticmethod(lambda op, b: []), raising=False)
    monkeypatch.setattr(Lowering, "evaluate", staticmethod(evaluate), raising=False)
    having(Entry("t", Plugin("t", interfaces={"test.twice": f"{__name__}:Lowering"})))
    op = TwiceOp.create(
        operands=[create_ssa_value(KIND), create_ssa_value(KIND)], result_types=[KIND]
    )
    x = np.ones(4, np.float32)
    with pytest.raises(PluginError) as caught:
        interpret_op(op, [x, x])
    assert problem in str(caught.value)
    assert "test.twice" in str(caught.value)
