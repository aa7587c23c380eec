"""`trace_dispatch_tensors`: what goes into each dispatch and comes out of it, printed or saved."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import irees
from irees.dialects import get_context
from irees.errors import ArgumentError
from irees.frontends.mlir import import_mlir, print_module
from irees.options import Options
from irees.pipeline import run_phases
from irees.tools.main import main

# Two reductions, each a kernel; the second reads what the first has made.
ROWS = "affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>"
COLUMN = "affine_map<(i) -> (i)>, affine_map<(i) -> ()>"
TEXT = f"""
func.func @main(%x: tensor<?x4xf32>) -> tensor<f32> {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.generic {{indexing_maps = [{ROWS}], iterator_types = ["parallel", "reduction"]}} ins(%x : tensor<?x4xf32>) outs(%f : tensor<?xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  }} -> tensor<?xf32>
  %g = tensor.empty() : tensor<f32>
  %h = linalg.fill ins(%zero : f32) outs(%g : tensor<f32>) -> tensor<f32>
  %t = linalg.generic {{indexing_maps = [{COLUMN}], iterator_types = ["reduction"]}} ins(%r : tensor<?xf32>) outs(%h : tensor<f32>) {{
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %o : f32
    linalg.yield %s : f32
  }} -> tensor<f32>
  return %t : tensor<f32>
}}
"""
X = np.arange(12, dtype=np.float32).reshape(3, 4)
PRINTED = """\
=== 000 main_dispatch_0::main_dispatch_0 inputs ===
[0] float32 3x4
[[ 0.  1.  2.  3.]
 [ 4.  5.  6.  7.]
 [ 8.  9. 10. 11.]]
=== 000 main_dispatch_0::main_dispatch_0 outputs ===
[0] float32 3
[ 6. 22. 38.]
=== 001 main_dispatch_1::main_dispatch_1 inputs ===
[0] float32 3
[ 6. 22. 38.]
=== 001 main_dispatch_1::main_dispatch_1 outputs ===
[0] float32 scalar
38.
"""
LOOP = """
func.func @main(%x: tensor<4xi32>, %n: index) -> tensor<4xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> (tensor<4xi32>) {
    %y = linalg.add ins(%t, %x : tensor<4xi32>, tensor<4xi32>) outs(%x : tensor<4xi32>) -> tensor<4xi32>
    scf.yield %y : tensor<4xi32>
  }
  return %r : tensor<4xi32>
}
"""
each_target = pytest.mark.parametrize("target", ["cpu", "reference"])


def stem(name: str) -> str:
    return name.removesuffix(".npy")


@each_target
def test_printed(target, capsys):
    program = irees.compile(TEXT, target=target, trace_dispatch_tensors=True)
    assert program(X) == 38
    assert capsys.readouterr().err == PRINTED


@each_target
def test_saved(target, tmp_path, capsys):
    folder = tmp_path / "new" / "folder"
    program = irees.compile(TEXT, target=target, trace_dispatch_tensors=str(folder))
    assert not folder.exists()
    assert program(X) == 38
    saved = {stem(name): np.load(folder / name) for name in sorted(os.listdir(folder))}
    assert list(saved) == [
        "000_main_dispatch_0_inputs_0",
        "000_main_dispatch_0_outputs_0",
        "001_main_dispatch_1_inputs_0",
        "001_main_dispatch_1_outputs_0",
    ]
    wanted = [X, X.sum(1), X.sum(1), np.float32(38)]
    for array, expected in zip(saved.values(), wanted, strict=True):
        assert array.dtype == np.float32
        assert np.array_equal(array, expected)
    assert capsys.readouterr().err == ""
    # The numbers go on.
    program(X[:0])
    assert np.load(folder / "002_main_dispatch_0_inputs_0.npy").shape == (0, 4)


@each_target
def test_each_iteration_of_a_loop(target, tmp_path):
    program = irees.compile(LOOP, target=target, trace_dispatch_tensors=str(tmp_path))
    x = np.array([1, 2, 3, -4], np.int32)
    assert np.array_equal(program(x, 3), 4 * x)
    outputs = sorted(name for name in os.listdir(tmp_path) if "outputs" in name)
    assert [name[:3] for name in outputs] == ["000", "001", "002"]
    for i, name in enumerate(outputs):
        assert np.array_equal(np.load(tmp_path / name), (i + 2) * x)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f64", "i1", "i8", "complex<f32>"])
def test_element_types(kind, tmp_path, capsys):
    text = f"""
func.func @main(%x: tensor<2x3x{kind}>) -> tensor<3x2x{kind}> {{
  %e = tensor.empty() : tensor<3x2x{kind}>
  %t = linalg.transpose ins(%x : tensor<2x3x{kind}>) outs(%e : tensor<3x2x{kind}>) permutation = [1, 0]
  return %t : tensor<3x2x{kind}>
}}"""
    program = irees.compile(text, trace_dispatch_tensors=True)
    dtype = program.functions["main"].arguments[0].dtype
    x = np.array([[1, 0, 1], [0, 1, 1]]).astype(dtype)
    program(x)
    printed = capsys.readouterr().err
    # Kernels that only move complex numbers see their parts.
    shown = x.view(np.float32).reshape(2, 3, 2) if dtype.kind == "c" else x
    for array in (shown, shown.swapaxes(0, 1)):
        sizes = "x".join(map(str, array.shape))
        assert f"[0] {array.dtype.name} {sizes}\n{np.array2string(array)}\n" in printed


def test_many_values_are_abbreviated(capsys):
    irees.compile(TEXT, trace_dispatch_tensors=True)(np.ones((1000, 4), np.float32))
    printed = capsys.readouterr().err
    assert "[0] float32 1000x4\n[[1. 1. 1. 1.]\n [1. 1. 1. 1.]\n [1. 1. 1. 1.]\n ...\n" in printed


def test_without_the_option_there_is_no_trace_of_it(capsys):
    program = irees.compile(TEXT)
    assert program.tracer is None
    assert "trace" not in str({k: v for k, v in program.manifest.items() if k != "remarks"})
    assert "call->trace" not in program.sources["host"]
    assert program(X) == 38
    assert capsys.readouterr().err == ""
    with pytest.raises(
        ArgumentError, match="the program was compiled without dispatch traces; compile it with"
    ):
        program.trace_to(None)


def test_kernels_are_the_same():
    plain, traced = irees.compile(TEXT), irees.compile(TEXT, trace_dispatch_tensors=True)
    assert {k: v for k, v in plain.sources.items() if k != "host"} == {
        k: v for k, v in traced.sources.items() if k != "host"
    }
    plain, traced = (import_mlir(TEXT) for _ in range(2))
    run_phases(get_context(), plain, Options(), to="stream")
    run_phases(get_context(), traced, Options(trace_dispatch_tensors=True), to="stream")
    lines = [line for line in print_module(traced).splitlines() if "stream.cmd.trace" not in line]
    assert lines == print_module(plain).splitlines()


@each_target
def test_threads_do_not_mix_their_pairs(target, tmp_path):
    program = irees.compile(TEXT, target=target, trace_dispatch_tensors=str(tmp_path))
    inputs = [X + i for i in range(8)]
    threads = [threading.Thread(target=program, args=(x,)) for x in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(os.listdir(tmp_path)) == 8 * 4
    for name in os.listdir(tmp_path):
        if "dispatch_0_inputs" in name:
            made = np.load(tmp_path / name.replace("inputs", "outputs"))
            assert np.array_equal(np.load(tmp_path / name).sum(1), made)


@each_target
def test_a_folder_that_cannot_be_made(target, tmp_path):
    (tmp_path / "file").write_text("")
    program = irees.compile(TEXT, target=target, trace_dispatch_tensors=str(tmp_path / "file"))
    with pytest.raises(ArgumentError, match=r"cannot write traces to .*; name a folder"):
        program(X)


@each_target
def test_a_file_that_cannot_be_written(target, tmp_path):
    (tmp_path / "000_main_dispatch_0_inputs_0.npy").mkdir()
    program = irees.compile(TEXT, target=target, trace_dispatch_tensors=str(tmp_path))
    with pytest.raises(ArgumentError, match=r"cannot write traces to .*: Is a directory"):
        program(X)
    assert program(X) == 38


@pytest.mark.parametrize("value", ["", 3, None])
def test_a_bad_option(value):
    with pytest.raises(ArgumentError, match="must be True, False or a folder"):
        irees.compile(TEXT, trace_dispatch_tensors=value)


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.mlir").write_text(TEXT)
    return f"--input=3x4xf32={','.join(str(n) for n in range(12))}"


@each_target
@pytest.mark.parametrize("flag", ["--trace-dispatch-tensors", "--iree_flow_trace_dispatch_tensors"])
def test_irees_run_prints(source, target, flag, capsys):
    assert main(["run", flag, "x.mlir", source, f"--target={target}"]) == 0
    printed = capsys.readouterr()
    assert printed.err == PRINTED
    assert "f32=38" in printed.out


def test_irees_run_saves(source, tmp_path, capsys):
    assert main(["run", "x.mlir", source, "--trace-dispatch-tensors=d"]) == 0
    assert len(os.listdir(tmp_path / "d")) == 4
    assert capsys.readouterr().err == ""
    (tmp_path / "f").write_text("")
    assert main(["run", "x.mlir", source, "--trace-dispatch-tensors=f"]) == 1
    assert "cannot write traces to 'f': File exists; name a folder" in capsys.readouterr().err


def test_a_saved_program(source, tmp_path, capsys):
    assert main(["compile", "x.mlir", "--trace-dispatch-tensors", "-o", "t.irees"]) == 0
    assert main(["run", "t.irees", source]) == 0
    assert capsys.readouterr().err == PRINTED
    assert main(["run", "t.irees", source, "--trace-dispatch-tensors=d"]) == 0
    assert len(os.listdir(tmp_path / "d")) == 4
    assert main(["compile", "x.mlir", "-o", "p.irees"]) == 0
    assert main(["run", "p.irees", source, "--trace-dispatch-tensors"]) == 1
    assert (
        "the program was compiled without dispatch traces; compile it with"
        in capsys.readouterr().err
    )


def test_the_reference_target_interprets_the_source(monkeypatch, capsys):
    """A fault of a pass is in the trace of the dispatches, never in a result."""
    from irees.transforms import load_pass

    chosen = load_pass("irees-fuse-elementwise-ops")
    apply = chosen.apply

    def faulty(self, ctx, module):
        for op in [o for o in module.walk() if o.name == "arith.maximumf"]:
            op.operands[0] = op.operands[1]
        apply(self, ctx, module)

    monkeypatch.setattr(chosen, "apply", faulty)
    for options in ({}, {"trace_dispatch_tensors": True}):
        assert irees.compile(TEXT, target="reference", **options)(X) == 38.0
    assert "=== 001 main_dispatch_1::main_dispatch_1 outputs ===" in capsys.readouterr().err


def test_the_reference_target_has_no_phases():
    for options in ({"to": "stream"}, {"start": "stream"}):
        with pytest.raises(ArgumentError, match="target=reference interprets the source"):
            irees.compile(import_mlir(TEXT), target="reference", **options)
