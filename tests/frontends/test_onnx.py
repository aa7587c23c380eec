"""ONNX models, against what they say."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import irees
from irees.errors import (
    ArgumentError,
    LimitExceededError,
    ParseError,
    UnsupportedError,
)

WAY = "needs onnx and torch-mlir: pip install 'irees[onnx]'"
onnx = pytest.importorskip("onnx", reason=WAY)
pytest.importorskip("torch_mlir", reason=WAY)
torch = pytest.importorskip("torch", reason="needs torch: pip install 'irees[torch]'")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from irees.frontends.onnx import import_onnx  # noqa: E402
from irees.tools.main import main  # noqa: E402

WEIGHT = np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32)


def model(rows: int | str):
    """softmax(relu(x) @ w)"""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["m"]),
        helper.make_node("Softmax", ["m"], ["y"], axis=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 16])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, 4])
    graph = helper.make_graph(nodes, "main", [x], [y], [numpy_helper.from_array(WEIGHT, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def check(module, rows: int) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, 16)).astype(np.float32)
    scores = np.exp(np.maximum(x, 0) @ WEIGHT)
    wanted = scores / scores.sum(1, keepdims=True)
    # Sums of 16 products, of which the exponential multiplies the error by at most their size.
    np.testing.assert_allclose(irees.compile(module)(x), wanted, rtol=1e-5)


def test_a_model_from_memory():
    check(import_onnx(model(3)), 3)


def test_a_model_from_a_file_with_a_dim_that_is_named(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(model("rows"), str(path))
    for rows in (1, 5):
        check(import_onnx(path), rows)


def graph_of(nodes, inputs, outputs, weights=()):
    """A model; each input and output is a name, an element type and a shape."""
    given, made = ([helper.make_tensor_value_info(*v) for v in vs] for vs in (inputs, outputs))
    graph = helper.make_graph(nodes, "graph", given, made, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_compile_takes_a_path_and_a_model_and_its_names(tmp_path):
    nodes = [helper.make_node("Sub", ["a", "b"], ["y"])]
    inputs = [(name, TensorProto.FLOAT, [3]) for name in "ab"]
    made = graph_of(nodes, inputs, [("y", TensorProto.FLOAT, [3])])
    path = tmp_path / "model.onnx"
    onnx.save(made, str(path))
    a, b = np.float32([5, 6, 7]), np.float32([1, 2, 3])
    for source in (made, path, str(path)):
        program = irees.compile(source)
        np.testing.assert_array_equal(program(a, b), a - b)
        np.testing.assert_array_equal(program(b=a, a=b), b - a)
        with pytest.raises(ArgumentError, match="argument 'b' is missing"):
            program(a)
    program.save(tmp_path / "saved.irees")
    loaded = irees.load(tmp_path / "saved.irees")
    np.testing.assert_array_equal(loaded(b=b, a=a), a - b)


def test_weights_among_the_inputs_and_several_results():
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Relu", ["y"], ["z"])]
    inputs = [("x", TensorProto.FLOAT, ["n", 16]), ("w", TensorProto.FLOAT, [16, 4])]
    outputs = [(name, TensorProto.FLOAT, ["n", 4]) for name in "zy"]
    program = irees.compile(
        graph_of(nodes, inputs, outputs, [numpy_helper.from_array(WEIGHT, "w")])
    )
    x = np.random.default_rng(1).integers(-4, 4, (5, 16)).astype(np.float32)
    z, y = program(x=x)
    # Sums of 16 products of small integers and weights: rounded once per addition.
    np.testing.assert_allclose(y, x @ WEIGHT, atol=1e-5)
    np.testing.assert_array_equal(z, np.maximum(y, 0))


def test_unsigned_results_stay_unsigned():
    nodes = [helper.make_node("Add", ["a", "a"], ["y"])]
    made = graph_of(nodes, [("a", TensorProto.UINT8, [2])], [("y", TensorProto.UINT8, [2])])
    for program in (irees.compile(made), irees.compile(import_onnx(made))):
        result = program(np.uint8([100, 3]))
        assert result.dtype == np.uint8
        np.testing.assert_array_equal(result, np.uint8([200, 6]))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ParseError, match=r"cannot read .*none\.onnx"):
        irees.compile(tmp_path / "none.onnx")


def test_the_command_line_runs_a_model(tmp_path, capfd):
    nodes = [helper.make_node("Neg", ["x"], ["y"])]
    made = graph_of(nodes, [("x", TensorProto.FLOAT, [2])], [("y", TensorProto.FLOAT, [2])])
    path = tmp_path / "model.onnx"
    onnx.save(made, str(path))
    assert main(["run", str(path), "--input=2xf32=1,2"]) == 0
    assert "2xf32=-1 -2" in capfd.readouterr().out


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("shape", [(2, 16, 3, 5), (1, 8, 4, 4)])
def test_depth_to_space(mode, shape):
    batch, channels, height, width = shape
    kept = channels // 4
    nodes = [helper.make_node("DepthToSpace", ["x"], ["y"], mode=mode, blocksize=2)]
    result = [batch, kept, height * 2, width * 2]
    y = ("y", TensorProto.FLOAT, result)
    program = irees.compile(graph_of(nodes, [("x", TensorProto.FLOAT, shape)], [y]))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    if mode == "DCR":
        parts = x.reshape(batch, 2, 2, kept, height, width).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = x.reshape(batch, kept, 2, 2, height, width).transpose(0, 1, 4, 2, 5, 3)
    np.testing.assert_array_equal(program(x), parts.reshape(result))


def test_branches_are_rewritten_too():
    y, z = ("y", TensorProto.FLOAT, [1, 4, 4, 4]), ("z", TensorProto.FLOAT, [1, 4, 4, 4])
    branches = [
        helper.make_graph(
            [helper.make_node("DepthToSpace", ["x"], [name], mode=mode, blocksize=2)],
            mode, [], [helper.make_tensor_value_info(*value)],
        )
        for mode, value in (("CRD", y), ("DCR", z))
        for name in value[:1]
    ]  # fmt: skip
    then, other = branches
    nodes = [helper.make_node("If", ["c"], ["r"], then_branch=then, else_branch=other)]
    inputs = [("c", TensorProto.BOOL, []), ("x", TensorProto.FLOAT, [1, 16, 2, 2])]
    program = irees.compile(graph_of(nodes, inputs, [("r", TensorProto.FLOAT, [1, 4, 4, 4])]))
    x = np.arange(64, dtype=np.float32).reshape(1, 16, 2, 2)
    crd = x.reshape(1, 4, 2, 2, 2, 2).transpose(0, 1, 4, 2, 5, 3).reshape(1, 4, 4, 4)
    dcr = x.reshape(1, 2, 2, 4, 2, 2).transpose(0, 3, 4, 1, 5, 2).reshape(1, 4, 4, 4)
    np.testing.assert_array_equal(program(np.array(True), x), crd)
    np.testing.assert_array_equal(program(np.array(False), x), dcr)


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_places_outside_of_an_image_are_zero(mode, aligned):
    image = ("x", TensorProto.FLOAT, [1, 2, 4, 5])
    grid, y = ("g", TensorProto.FLOAT, [1, 3, 7, 2]), ("y", TensorProto.FLOAT, [1, 2, 3, 7])
    nodes = [
        helper.make_node(
            "GridSample", ["x", "g"], ["y"], mode=mode, align_corners=aligned, padding_mode="zeros"
        )
    ]
    program = irees.compile(graph_of(nodes, [image, grid], [y]))
    random = np.random.default_rng(0)
    x = random.standard_normal((1, 2, 4, 5)).astype(np.float32)
    g = random.uniform(-2.5, 2.5, (1, 3, 7, 2)).astype(np.float32)
    options = {"mode": mode, "align_corners": bool(aligned), "padding_mode": "zeros"}
    sample = torch.nn.functional.grid_sample
    wanted = sample(torch.from_numpy(x), torch.from_numpy(g), **options).numpy()
    # A place has an error of a few units in the last place, times the difference of two pixels.
    np.testing.assert_allclose(program(x, g), wanted, atol=1e-5)


def test_an_image_of_unknown_size_is_not_sampled_wrongly():
    nodes = [helper.make_node("DepthToSpace", ["x"], ["y"], mode="CRD", blocksize=2)]
    x, y = ("x", TensorProto.FLOAT, [1, 16, "h", 4]), ("y", TensorProto.FLOAT, [1, 4, "g", 8])
    with pytest.raises(UnsupportedError, match="DepthToSpace needs an image of rank 4 and known"):
        irees.compile(graph_of(nodes, [x], [y]))


@pytest.mark.parametrize("axes", [None, [2, 3], [-2, -1]])
def test_a_pad_that_wraps(axes):
    pads = [0, 0, 2, 1, 0, 0, 3, 0] if axes is None else [2, 1, 3, 0]
    given = [numpy_helper.from_array(np.int64(pads), "pads")]
    names = ["x", "pads"]
    if axes is not None:
        given.append(numpy_helper.from_array(np.int64(axes), "axes"))
        names += ["", "axes"]
    nodes = [helper.make_node("Pad", names, ["y"], mode="wrap")]
    x, y = ("x", TensorProto.FLOAT, [1, 2, 4, 5]), ("y", TensorProto.FLOAT, [1, 2, 9, 6])
    opset = [helper.make_opsetid("", 19)]
    graph = graph_of(nodes, [x], [y], given).graph
    program = irees.compile(helper.make_model(graph, opset_imports=opset))
    image = np.arange(40, dtype=np.float32).reshape(1, 2, 4, 5)
    wanted = np.pad(image, ((0, 0), (0, 0), (2, 3), (1, 0)), mode="wrap")
    np.testing.assert_array_equal(program(image), wanted)


def test_a_child_that_never_ends_has_a_limit(tmp_path, monkeypatch):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 60\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(LimitExceededError, match="has not lowered the model in 1 s"):
        irees.compile(model(3), limits={"import_seconds": 1})


@pytest.mark.parametrize(
    ("script", "words"),
    [("kill -SEGV $$", "crashed on the model: SIGSEGV"), ("echo why >&2; exit 3", "model: why")],
)
def test_a_crash_of_torch_mlir_is_an_error(tmp_path, monkeypatch, script, words):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(UnsupportedError, match=words):
        irees.compile(model(3))


def test_a_file_of_the_working_folder_hides_no_module(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('hidden')")
    monkeypatch.chdir(tmp_path)
    check(import_onnx(model(3)), 3)


def test_weights_beside_a_model(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(model(3), str(path), save_as_external_data=True, location="data", size_threshold=0)
    check(import_onnx(path), 3)
    check(import_onnx(onnx.load(str(path))), 3)
    with pytest.raises(UnsupportedError, match="in a file beside it; name the model's file"):
        import_onnx(onnx.load(str(path), load_external_data=False))


def test_what_is_no_model_is_refused(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"no model")
    with pytest.raises(UnsupportedError, match="not an ONNX model"):
        import_onnx(path)
    with pytest.raises(ArgumentError, match="the model is a int"):
        import_onnx(5)


def test_an_op_that_nobody_knows_is_refused():
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in "xy")
    nodes = [helper.make_node("Nonsense", ["x"], ["y"], domain="nobody.knows")]
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("nobody.knows", 1)]
    graph = helper.make_graph(nodes, "main", [x], [y])
    with pytest.raises(UnsupportedError, match=r"torch-mlir cannot lower the model: .*") as info:
        import_onnx(helper.make_model(graph, opset_imports=imports))
    assert "\n" not in str(info.value)


def test_an_op_without_a_lowering_is_named():
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4, 2]) for n in "xy")
    nodes = [helper.make_node("DFT", ["x"], ["y"], name="spectrum")]
    graph = helper.make_graph(nodes, "main", [x], [y])
    wanted = r"it has no lowering of DFT \(node 'spectrum'\)"
    with pytest.raises(UnsupportedError, match=wanted):
        import_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
