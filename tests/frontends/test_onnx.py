"""ONNX models, against what they say."""

from __future__ import annotations

import numpy as np
import pytest

import irees
from irees.errors import UnsupportedError

WAY = "needs onnx and torch-mlir: pip install 'irees[onnx]'"
onnx = pytest.importorskip("onnx", reason=WAY)
pytest.importorskip("torch_mlir", reason=WAY)

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from irees.frontends.onnx import import_onnx  # noqa: E402

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


def test_what_is_no_model_is_refused(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"no model")
    with pytest.raises(UnsupportedError, match="not an ONNX model"):
        import_onnx(path)


def test_an_op_that_nobody_knows_is_refused():
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in "xy")
    nodes = [helper.make_node("Nonsense", ["x"], ["y"], domain="nobody.knows")]
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("nobody.knows", 1)]
    graph = helper.make_graph(nodes, "main", [x], [y])
    with pytest.raises(UnsupportedError, match="torch-mlir cannot lower the model"):
        import_onnx(helper.make_model(graph, opset_imports=imports))
