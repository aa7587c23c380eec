"""
JAX programs in: JAX lowers them to StableHLO, and IREE's importer that to linalg on tensors.

    module = import_jax(jax.jit(f), (x, y))
    program = irees.compile(jax.jit(f), (x, y))

Arguments and results that are trees are their leaves, in JAX's order. Constants that the function
holds are constants of the program. Ops know the line of Python that they come from, and results
whether they are unsigned, which IREE's integers do not say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from irees.dialects.signature import is_entry, mark_unsigned
from irees.errors import UnsupportedError

from .mlir import import_mlir


def is_jax(program: Any) -> bool:
    """Whether an object is a jitted function, or one that was lowered; jax is not imported."""
    return type(program).__module__.split(".")[0] in ("jax", "jaxlib")


def import_jax(program: Any, inputs: Sequence[Any] = (), *, ctx: Context | None = None) -> ModuleOp:
    """
    A module with one function, `main`, that computes what the JAX function does.

    `program` is what `jax.jit` makes of a function, with example arguments (arrays, or
    `jax.ShapeDtypeStruct`), or what its `lower` returns. Raises UnsupportedError for a function
    that JAX cannot trace, or IREE's importer cannot lower.
    """
    lowered = program
    if not hasattr(program, "compiler_ir"):
        try:
            lowered = program.lower(*inputs)
        except Exception as error:
            raise UnsupportedError(f"JAX cannot trace the function: {error}") from error
    text = lowered.compiler_ir("stablehlo").operation.get_asm(enable_debug_info=True)
    module = import_mlir(linalg_of(text.encode()), ctx, name="<jax>")
    (function,) = (op for op in module.body.block.ops if _is_main(op))
    from jax import tree_util

    dtypes = [str(leaf.dtype) for leaf in tree_util.tree_leaves(lowered.out_info)]
    mark_unsigned(function, [i for i, dtype in enumerate(dtypes) if dtype.startswith("uint")])
    return module


def linalg_of(text: bytes) -> bytes:
    """
    A program of StableHLO as one of linalg.

    Raises UnsupportedError where IREE's compiler is not installed, or refuses the program.
    """
    try:
        from iree import compiler
    except ImportError as error:
        raise UnsupportedError(
            f"importing a JAX program needs {error.name}", hint="pip install 'irees[jax]'"
        ) from None
    try:
        return compiler.compile_str(
            text,
            input_type="stablehlo",
            target_backends=["llvm-cpu"],
            extra_args=["--compile-to=input", "--mlir-print-debuginfo"],
        )
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines()]
        said = next((line for line in lines if "error:" in line), repr(error))
        raise UnsupportedError(f"IREE's importer refuses the program: {said}") from error


def _is_main(op: Operation) -> bool:
    return op.name in ("util.func", "func.func") and is_entry(op)
