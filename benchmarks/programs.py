"""
The programs of the benchmark: each as MLIR for the compilers and as a torch module for the rest.

Models come from the shared catalogue, everything else is written here. Constant weights are a
resource section, as importers write them.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
EXPORT = ROOT.parent / "shared" / "models" / "export.py"
MODELS = (
    "resnet50", "mobilenet_v2", "bert_base", "gpt2", "llama_decode", "deepseek_moe",
    "group_norm_silu", "softmax_eltwise", "two_matmul", "topk_both", "topk_indices",
)  # fmt: skip
MATMULS = (512, 1024, 2048)
GEMMS = (
    *((128, 768, 768), (128, 768, 3072), (128, 3072, 768)),
    *((64, 768, 2304), (64, 768, 3072), (64, 3072, 768), (64, 768, 50257)),
)
"""M, K, N of the products of BERT (128 tokens) and GPT-2 (64 tokens); B is constant."""
STREAM = 1 << 24
ROWS = (4096, 1024)
SQUARE = 4096
SORTS = ((64, 4096), (1, 1 << 22))
"""Rows to sort, and how long they are."""


@dataclass
class Program:
    """
    One row of the table. `source` is its MLIR; None when compilers take the torch module itself.
    `onnx` makes the bytes of its ONNX model, where torch cannot. `dynamic` marks the dynamic dims
    of the inputs, as for `torch.export.export`.
    """

    name: str
    source: str | Path | None
    inputs: list[np.ndarray]
    module: Any
    onnx: Callable[[], bytes] | None = None
    dynamic: tuple[Any, ...] | None = None


def names() -> list[str]:
    """All rows, in order."""
    return [
        *MODELS,
        *(f"matmul_{n}" for n in MATMULS),
        *(f"gemm_{m}x{k}x{n}" for m, k, n in GEMMS),
        *("matmul_bf16_1024", "matmul_i8_1024"),
        *("add_2e24", "gelu_2e24", "softmax_4096x1024", "layer_norm_4096x1024"),
        *("rms_norm_4096x1024", "transpose_4096x4096"),
        *(f"sort_{rows}x{size}" for rows, size in SORTS),
    ]


def program(name: str, folder: Path) -> Program:
    """The program of that name; what it needs as files is put into the folder."""
    if name in MODELS:
        return model(name, folder)
    kind, _, rest = name.partition("_")
    if kind == "gemm":
        m, k, n = map(int, rest.split("x"))
        return gemm(name, m, k, n, folder)
    if kind == "attention":
        element, sizes = rest.split("_")
        return attention(name, *map(int, sizes.split("x")), element)
    if kind == "sort":
        rows, size = map(int, rest.split("x"))
        return sort(name, rows, size)
    if kind == "matmul":
        *element, size = rest.split("_")
        return matmul(name, int(size), element[0] if element else "f32")
    return MEMORY_BOUND[name](name)


def random(*shape: int) -> np.ndarray:
    """Normal numbers, the same each time."""
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def model(name: str, folder: Path) -> Program:
    """A model of the shared catalogue, from IREES_MODELS or exported now."""
    given = os.environ.get("IREES_MODELS")
    base = Path(given) if given else folder
    source = base / f"{name}.mlir"
    if not source.exists():
        command = [sys.executable, str(EXPORT), str(base), name]
        subprocess.run(command, check=True, capture_output=True)
    data = np.load(source.with_suffix(".npz"))
    inputs = [data[f"in{i}"] for i in range(sum(k.startswith("in") for k in data))]
    return replace(model_of_torch(name), source=source, inputs=inputs)


def model_of_torch(name: str) -> Program:
    """A model of the shared catalogue as a torch module, with its inputs; without MLIR."""
    import torch

    spec = importlib.util.spec_from_file_location("export", EXPORT)
    assert spec is not None
    assert spec.loader is not None
    export = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(export)
    torch.manual_seed(0)
    module, inputs, *_ = export.catalogue()[name]()
    return Program(name, "", [x.numpy() for x in inputs], module.eval())


def module_of(function: Callable[..., Any], **buffers: Any) -> Any:
    """A torch module whose forward is the function, of its buffers and then the inputs."""
    import torch

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for key, value in buffers.items():
                self.register_buffer(key, value)

        def forward(self, *inputs):
            return function(*(getattr(self, key) for key in buffers), *inputs)

    return Module().eval()


def product_text(m: int, k: int, n: int, elements: tuple[str, str], b: str, head: str) -> str:
    """A function around one product of a and b; integers and halves are widened as they are read."""
    element, wide = elements
    zero = "0.0" if wide.startswith("f") else "0"
    a_type, b_type = f"tensor<{m}x{k}x{element}>", f"tensor<{k}x{n}x{element}>"
    c_type, narrow = f"tensor<{m}x{n}x{wide}>", f"tensor<{m}x{n}x{element}>"
    text = f"""{head}
  %zero = arith.constant {zero} : {wide}
  %e = tensor.empty() : {c_type}
  %f = linalg.fill ins(%zero : {wide}) outs(%e : {c_type}) -> {c_type}
  %r = linalg.matmul ins(%a, {b} : {a_type}, {b_type}) outs(%f : {c_type}) -> {c_type}
"""
    if element not in ("f16", "bf16"):
        return text + f"  return %r : {c_type}\n}}\n"
    return f"""#id = affine_map<(i, j) -> (i, j)>
{text}  %o = tensor.empty() : {narrow}
  %t = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%r : {c_type}) outs(%o : {narrow}) {{
  ^bb0(%x: {wide}, %y: {element}):
    %s = arith.truncf %x : {wide} to {element}
    linalg.yield %s : {element}
  }} -> {narrow}
  return %t : {narrow}
}}
"""


def matmul(name: str, n: int, element: str) -> Program:
    """An n x n x n product of f32, of halves added up in f32, or of i8 added up in i32."""
    import torch

    wide = {"f32": "f32", "f16": "f32", "bf16": "f32", "i8": "i32"}[element]
    result = wide if element == "i8" else element
    a, b = (f"tensor<{n}x{n}x{element}>" for _ in range(2))
    head = f"func.func @main(%a: {a}, %b: {b}) -> tensor<{n}x{n}x{result}> {{"
    text = product_text(n, n, n, (element, wide), "%b", head)
    if element == "i8":
        rng = np.random.default_rng(0)
        inputs = [rng.integers(-128, 128, (n, n), dtype=np.int8) for _ in range(2)]
        return Program(name, text, inputs, module_of(torch._int_mm), lambda: integer_onnx(n))
    inputs = [random(n, n), random(n, n).T.copy()]
    return Program(name, text, [narrow(x, element) for x in inputs], module_of(torch.matmul))


def narrow(array: np.ndarray, element: str) -> np.ndarray:
    """The numbers as f32, f16 or bf16."""
    if element == "bf16":
        import ml_dtypes

        return array.astype(ml_dtypes.bfloat16)
    return array.astype({"f32": np.float32, "f16": np.float16}[element])


def attention(name: str, heads: int, tokens: int, features: int, element: str) -> Program:
    """softmax(q . k / sqrt(features)) . v"""
    import torch

    kind = f"tensor<{heads}x{tokens}x{features}x{element}>"
    loops = ("b, m, d", "b, k, d", "b, k, n", "", "b, m, n")
    maps = ", ".join(f"affine_map<(b, m, n, d, k) -> ({x})>" for x in loops)
    text = f"""func.func @main(%q: {kind}, %k: {kind}, %v: {kind}) -> {kind} {{
  %scale = arith.constant {features**-0.5} : f32
  %e = tensor.empty() : {kind}
  %r = iree_linalg_ext.attention {{indexing_maps = [{maps}]}}
      ins(%q, %k, %v, %scale : {kind}, {kind}, {kind}, f32) outs(%e : {kind}) {{
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  }} -> {kind}
  return %r : {kind}
}}"""
    inputs = [narrow(random(heads, tokens, features), element) for _ in range(3)]

    def reference(*tensors: Any) -> Any:
        # Its kernels take four dims.
        attend = torch.nn.functional.scaled_dot_product_attention
        return attend(*(x[None] for x in tensors))[0]

    return Program(name, text, inputs, module_of(reference))


def integer_onnx(n: int) -> bytes:
    """MatMulInteger of two n x n arguments of i8."""
    from onnx import TensorProto, helper

    def value(name: str, element: int) -> Any:
        return helper.make_tensor_value_info(name, element, [n, n])

    node = helper.make_node("MatMulInteger", ["a", "b"], ["c"])
    inputs = [value("a", TensorProto.INT8), value("b", TensorProto.INT8)]
    graph = helper.make_graph([node], "product", inputs, [value("c", TensorProto.INT32)])
    opset = helper.make_opsetid("", 21)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10).SerializeToString()


def gemm(name: str, m: int, k: int, n: int, folder: Path) -> Program:
    """x @ w of an M x K argument and a K x N weight."""
    import torch

    weight = random(k, n)
    kind = f"tensor<{k}x{n}xf32>"
    head = f"func.func @main(%a: tensor<{m}x{k}xf32>) -> tensor<{m}x{n}xf32> {{\n"
    head += f"  %b = arith.constant dense_resource<w> : {kind}"
    path = folder / f"{name}.mlir"
    with path.open("w") as file:
        file.write(product_text(m, k, n, ("f32", "f32"), "%b", head))
        file.write('{-#\n  dialect_resources: {\n    builtin: {\n      w: "0x04000000')
        file.write(weight.tobytes().hex())
        file.write('"\n    }\n  }\n#-}\n')
    module = module_of(lambda w, x: x @ w, w=torch.from_numpy(weight))
    return Program(name, path, [random(m, k)], module)


def sort(name: str, rows: int, size: int) -> Program:
    """torch.sort of rows of f32, as torch-mlir lowers it."""
    import torch

    values, places = f"tensor<{rows}x{size}xf32>", f"tensor<{rows}x{size}xi64>"
    text = f"""#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%x: {values}) -> ({values}, {places}) {{
  %e = tensor.empty() : {places}
  %i = linalg.generic {{indexing_maps = [#map], iterator_types = ["parallel", "parallel"]}}
      outs(%e : {places}) {{
  ^bb0(%o: i64):
    %d = linalg.index 1 : index
    %c = arith.index_cast %d : index to i64
    linalg.yield %c : i64
  }} -> {places}
  %s:2 = iree_linalg_ext.sort dimension(1) outs(%x, %i : {values}, {places}) {{
  ^bb0(%a: f32, %b: f32, %p: i64, %q: i64):
    %less = arith.cmpf ole, %a, %b : f32
    iree_linalg_ext.yield %less : i1
  }} -> {values}, {places}
  return %s#0, %s#1 : {values}, {places}
}}"""
    return Program(name, text, [random(rows, size)], module_of(lambda x: torch.sort(x, dim=1)))


def add(name: str) -> Program:
    """The sum of two long vectors."""
    import torch

    t = f"tensor<{STREAM}xf32>"
    text = f"""func.func @main(%a: {t}, %b: {t}) -> {t} {{
  %e = tensor.empty() : {t}
  %r = linalg.add ins(%a, %b : {t}, {t}) outs(%e : {t}) -> {t}
  return %r : {t}
}}"""
    return Program(name, text, [random(STREAM), random(STREAM)], module_of(torch.add))


def gelu(name: str) -> Program:
    """x / 2 * (1 + erf(x / sqrt 2)) of a long vector."""
    import torch

    t = f"tensor<{STREAM}xf32>"
    text = f"""#id = affine_map<(i) -> (i)>
func.func @main(%a: {t}) -> {t} {{
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %root = arith.constant 0.70710678118654752 : f32
  %e = tensor.empty() : {t}
  %r = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel"]}}
      ins(%a : {t}) outs(%e : {t}) {{
  ^bb0(%x: f32, %o: f32):
    %0 = arith.mulf %x, %root : f32
    %1 = math.erf %0 : f32
    %2 = arith.addf %1, %one : f32
    %3 = arith.mulf %x, %half : f32
    %4 = arith.mulf %3, %2 : f32
    linalg.yield %4 : f32
  }} -> {t}
  return %r : {t}
}}"""
    return Program(name, text, [random(STREAM)], module_of(torch.nn.functional.gelu))


def softmax(name: str) -> Program:
    """Softmax of rows."""
    import torch

    t = f"tensor<{ROWS[0]}x{ROWS[1]}xf32>"
    text = f"""func.func @main(%a: {t}) -> {t} {{
  %e = tensor.empty() : {t}
  %r = linalg.softmax dimension(1) ins(%a : {t}) outs(%e : {t}) -> {t}
  return %r : {t}
}}"""
    return Program(name, text, [random(*ROWS)], module_of(lambda x: torch.softmax(x, -1)))


RMS = """#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
func.func @main(%a: {t}, %w: {c}) -> {t} {{
  %zero = arith.constant 0.0 : f32
  %size = arith.constant {size}.0 : f32
  %eps = arith.constant 1.0e-05 : f32
  %re = tensor.empty() : {r}
  %z = linalg.fill ins(%zero : f32) outs(%re : {r}) -> {r}
  %squares = linalg.generic {{indexing_maps = [#id, #row],
      iterator_types = ["parallel", "reduction"]}} ins(%a : {t}) outs(%z : {r}) {{
  ^bb0(%x: f32, %o: f32):
    %0 = arith.mulf %x, %x : f32
    %1 = arith.addf %0, %o : f32
    linalg.yield %1 : f32
  }} -> {r}
  %e = tensor.empty() : {t}
  %y = linalg.generic {{indexing_maps = [#id, #row, #column, #id],
      iterator_types = ["parallel", "parallel"]}}
      ins(%a, %squares, %w : {t}, {r}, {c}) outs(%e : {t}) {{
  ^bb0(%x: f32, %q: f32, %g: f32, %o: f32):
    %v = arith.divf %q, %size : f32
    %u = arith.addf %v, %eps : f32
    %k = math.rsqrt %u : f32
    %0 = arith.mulf %x, %k : f32
    %1 = arith.mulf %0, %g : f32
    linalg.yield %1 : f32
  }} -> {t}
  return %y : {t}
}}
"""
LAYER = """#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
func.func @main(%a: {t}, %w: {c}, %b: {c}) -> {t} {{
  %zero = arith.constant 0.0 : f32
  %size = arith.constant {size}.0 : f32
  %eps = arith.constant 1.0e-05 : f32
  %re = tensor.empty() : {r}
  %z = linalg.fill ins(%zero : f32) outs(%re : {r}) -> {r}
  %sum = linalg.generic {{indexing_maps = [#id, #row],
      iterator_types = ["parallel", "reduction"]}} ins(%a : {t}) outs(%z : {r}) {{
  ^bb0(%x: f32, %o: f32):
    %0 = arith.addf %x, %o : f32
    linalg.yield %0 : f32
  }} -> {r}
  %squares = linalg.generic {{indexing_maps = [#id, #row, #row],
      iterator_types = ["parallel", "reduction"]}} ins(%a, %sum : {t}, {r}) outs(%z : {r}) {{
  ^bb0(%x: f32, %s: f32, %o: f32):
    %m = arith.divf %s, %size : f32
    %d = arith.subf %x, %m : f32
    %0 = arith.mulf %d, %d : f32
    %1 = arith.addf %0, %o : f32
    linalg.yield %1 : f32
  }} -> {r}
  %e = tensor.empty() : {t}
  %y = linalg.generic {{indexing_maps = [#id, #row, #row, #column, #column, #id],
      iterator_types = ["parallel", "parallel"]}}
      ins(%a, %sum, %squares, %w, %b : {t}, {r}, {r}, {c}, {c}) outs(%e : {t}) {{
  ^bb0(%x: f32, %s: f32, %q: f32, %g: f32, %h: f32, %o: f32):
    %m = arith.divf %s, %size : f32
    %d = arith.subf %x, %m : f32
    %v = arith.divf %q, %size : f32
    %u = arith.addf %v, %eps : f32
    %k = math.rsqrt %u : f32
    %0 = arith.mulf %d, %k : f32
    %1 = arith.mulf %0, %g : f32
    %2 = arith.addf %1, %h : f32
    linalg.yield %2 : f32
  }} -> {t}
  return %y : {t}
}}
"""


def norm(name: str) -> Program:
    """Layer norm of rows with weight and bias, or RMS norm with a weight."""
    from torch.nn.functional import layer_norm, rms_norm

    rows, size = ROWS
    t, r, c = f"tensor<{rows}x{size}xf32>", f"tensor<{rows}xf32>", f"tensor<{size}xf32>"
    inputs = [random(rows, size), random(size), random(size)]
    if name.startswith("layer"):
        text = LAYER.format(t=t, r=r, c=c, size=size)
        return Program(name, text, inputs, module_of(lambda x, w, b: layer_norm(x, (size,), w, b)))
    text = RMS.format(t=t, r=r, c=c, size=size)
    module = module_of(lambda x, w: rms_norm(x, (size,), w, 1e-5))
    return Program(name, text, inputs[:2], module)


def transpose(name: str) -> Program:
    """The transpose of a square, in memory."""
    t = f"tensor<{SQUARE}x{SQUARE}xf32>"
    text = f"""func.func @main(%a: {t}) -> {t} {{
  %e = tensor.empty() : {t}
  %r = linalg.transpose ins(%a : {t}) outs(%e : {t}) permutation = [1, 0]
  return %r : {t}
}}"""
    module = module_of(lambda x: x.t().contiguous())
    return Program(name, text, [random(SQUARE, SQUARE)], module)


MEMORY_BOUND = {
    "add_2e24": add,
    "gelu_2e24": gelu,
    "softmax_4096x1024": softmax,
    "layer_norm_4096x1024": norm,
    "rms_norm_4096x1024": norm,
    "transpose_4096x4096": transpose,
}
