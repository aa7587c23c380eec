"""
Every function of every lit file means the same before and after the pass of its RUN line.

Inputs are random small integers; memory that a function may write is compared afterwards. A lit
file says what a pass does, this says that it may. Functions whose inputs cannot be drawn are
skipped with the reason.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp, TensorType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import PassPipeline

from irees.dialects import get_context
from irees.dialects.hal import TensorImportOp
from irees.dialects.iree_tensor_ext import DispatchTensorType
from irees.dialects.util import FuncOp as UtilFuncOp
from irees.errors import IreesError, RuntimeTrap, UnsupportedError
from irees.frontends.mlir import import_mlir
from irees.interpreters.interpreter import Interpreter
from irees.interpreters.machine import quietly
from irees.interpreters.values import MemRef, dtype_of, poison
from irees.testing.tolerances import Tolerance, mismatch
from irees.transforms import get_all_passes

ROOT = Path(__file__).parents[2] / "filecheck" / "transforms"
FILES = sorted(ROOT.rglob("*.mlir"))
RUN = re.compile(r"RUN:.* -p (?:'([^']*)'|\"([^\"]*)\"|(\S+))")
SIZES = (8, 5, 16, 1)
"""What dynamic sizes and index arguments are, tried in this order until the program runs."""
ROUNDED = {
    "expand_math": Tolerance("U", 8),
    "expand_math_issue_33": Tolerance("U", 8),
    # The interpreter takes numpy's logarithm of complex numbers, which depends on the processor.
    "expand_arith": Tolerance("R", 8),
    "decompose_softmax": Tolerance("U", 16),
    "raise_special_ops": Tolerance("R", 32),
    "decompose_attention": Tolerance("R", 32),
    "convert_attention_to_online_attention": Tolerance("R", 32),
    "tile_attention_reduction": Tolerance("R", 32),
    "gpu_lower_attention": Tolerance("R", 32),
    "decompose_exp_reduction": Tolerance("R", 32),
    "decompose_winograd": Tolerance("R", 64),
    "convert_conv2d_to_winograd": Tolerance("R", 64),
    "decompose_fft": Tolerance("R", 16),
    "widen_accumulators": Tolerance("R", 32),
    "merge_variance_passes": Tolerance("R", 32),
    "fold_reciprocals": Tolerance("U", 2),
    # Logarithms of sums are shifted by the maximum of a chunk.
    "cpu_lower_scans": Tolerance("R", 32),
}
"""Passes that change the last bits."""
RETURNED = {
    "raise_buffers": "writes become results: tests/properties/test_raised_buffers.py compares them"
}
"""Passes after which a function is called in another way, and where that is compared."""
ELSEWHERE = dict.fromkeys(
    ("gpu.shuffle", "gpu.barrier", "nvvm.match.sync", "nvvm.bar.warp.sync"),
    "threads need each other: tests/backends/cuda",
)
"""Ops that the interpreter does not run, why, and where programs of them are compared."""


def pipeline(path: Path) -> PassPipeline | None:
    """The passes of the RUN line, or None when it checks something else."""
    text = path.read_text()
    found = RUN.search(text)
    first = text.split("\n", 1)[0]
    # What fails, or asks an analysis by ops that exist only for that, has no meaning to keep.
    unanswered = ("RUN: not", "verify-diagnostics", "allow-unregistered-dialect")
    if found is None or any(each in first for each in unanswered):
        return None
    spec = next(group for group in found.groups() if group is not None)
    return PassPipeline.parse_spec(dict(get_all_passes()), spec)


def functions(module: ModuleOp) -> dict[str, Operation]:
    """Functions with a body, by their path of symbols."""
    found: dict[str, Operation] = {}

    def visit(op: Operation, path: str) -> None:
        name = op.properties.get("sym_name")
        here = f"{path}::{name.data}" if name is not None else path  # pyright: ignore
        if isinstance(op, func.FuncOp | UtilFuncOp):
            if op.regions[0].blocks:
                found[here] = op
            return
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    visit(inner, here)

    visit(module, "")
    return found


def shape_of(kind: Attribute, size: int) -> list[int] | None:
    """The shape to draw, or None for a scalar."""
    if isinstance(kind, DispatchTensorType):
        kind = kind.bound_type
    if isinstance(kind, TensorType | MemRefType | VectorType):
        return [size if n == DYNAMIC_INDEX else n for n in kind.get_shape()]
    return None


def drawn_type(parameter: SSAValue) -> Attribute:
    """The type of an argument: of a view, that of the tensor it is imported as."""
    users = (use.operation for use in parameter.uses)
    imported = (user.target.type for user in users if isinstance(user, TensorImportOp))
    return next(imported, parameter.type)


def draw(kind: Attribute, size: int, random: np.random.Generator) -> np.ndarray:
    """An argument of a type."""
    element = kind.bound_type if isinstance(kind, DispatchTensorType) else kind
    dtype = dtype_of(element)
    shape = shape_of(kind, size)
    if shape is None:
        if str(kind) == "index":
            return np.array(size, dtype)
        shape = []
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    numbers = random.integers(1, 4, shape)
    return np.asarray(numbers * random.choice([-1, 1], shape)).astype(dtype)


def stored_as(array: np.ndarray, like: np.dtype[Any]) -> np.ndarray:
    """An array of floats of at most 8 bits as their codes, where a pass stores them so."""
    is_narrow = array.dtype.itemsize == 1 and array.dtype.kind not in "biu"
    return array.view(like) if is_narrow and like == np.int8 else array


def call(module: ModuleOp, name: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Results, and then what memory arguments hold."""
    op = functions(module)[name]
    parameters = (
        op.regions[0].block.args if len(op.regions[0].blocks) == 1 else op.regions[0].blocks[0].args
    )
    values: list[Any] = []
    memory: list[MemRef] = []
    for parameter, array in zip(parameters, arrays, strict=True):
        array = stored_as(array, dtype_of(drawn_type(parameter)))
        if isinstance(parameter.type, MemRefType | DispatchTensorType):
            values.append(MemRef.of(array.copy()))
            memory.append(values[-1])
        else:
            values.append(
                array
                if array.ndim or isinstance(parameter.type, TensorType | VectorType)
                else array[()]
            )
    interpreter = Interpreter(module)
    interpreter.initial_globals()
    with quietly():
        results = interpreter.machine.call_op(op, values)
    whole = [np.asarray(r.array if isinstance(r, MemRef) else r) for r in results]
    return [*whole, *(m.array for m in memory)]


def unwritten(array: np.ndarray) -> np.ndarray:
    """Where an array still holds the pattern of fresh memory."""
    pattern = poison((), array.dtype)
    return array != array if pattern != pattern else (array == pattern) & (array.dtype.kind in "iu")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pass_keeps_the_meaning(path: Path):
    passes = pipeline(path)
    if passes is None:
        pytest.skip("no single pass in the RUN line")
    if path.stem in RETURNED:
        pytest.skip(RETURNED[path.stem])
    ctx = get_context()
    # Kernels may hold what MLIR refuses of programs, such as lanes that are apart.
    before = import_mlir(path.read_text(), verify=False)
    before.verify()
    after = before.clone()
    passes.apply(ctx, after)
    rewritten = functions(after)
    compared, skipped, wrong = 0, [], []
    tolerance = ROUNDED.get(path.stem, Tolerance())
    for name, op in functions(before).items():
        if name not in rewritten:
            skipped.append(f"{name}: gone")
            continue
        found = (
            ELSEWHERE[inner.name] for inner in rewritten[name].walk() if inner.name in ELSEWHERE
        )
        if reason := next(found, ""):
            skipped.append(f"{name}: {reason}")
            continue
        parameters = op.regions[0].blocks[0].args
        if len(parameters) != len(rewritten[name].regions[0].blocks[0].args):
            # A kernel whose operands are tied: its dispatches are compared.
            skipped.append(f"{name}: takes other arguments")
            continue
        expected, reason = None, ""
        for size in SIZES:
            random = np.random.default_rng(size)
            try:
                arrays = [draw(drawn_type(p), size, random) for p in parameters]
                expected = call(before, name, arrays)
                break
            except (RuntimeTrap, UnsupportedError) as error:
                reason = str(error)
        if expected is None:
            skipped.append(f"{name}: {reason}")
            continue
        compared += 1
        try:
            actual = call(after, name, arrays)
        except IreesError as error:
            wrong.append(f"{name}: {error}")
            continue
        if len(actual) < len(expected):
            wrong.append(f"{name}: {len(actual)} results instead of {len(expected)}")
        for number, (a, e) in enumerate(zip(actual, expected)):
            e = stored_as(e, a.dtype)
            if a.shape == e.shape:
                # inputs have no NaN, so this is memory that nobody wrote: it may hold anything
                a = np.where(unwritten(e), e, a)
            if (difference := mismatch(a, e, tolerance)) is not None:
                wrong.append(f"{name}, value {number}: {difference}")
    assert not wrong, "\n".join(wrong)
    if not compared:
        pytest.skip("; ".join(skipped) or "no functions")
