"""
Imports JAX programs: JAX lowers them to StableHLO, and IREE's importer lowers that to linalg on
tensors.

    module = import_jax(jax.jit(f), (x, y))
    program = irees.compile(jax.jit(f), (x, y))

Tree arguments and results are flattened to their leaves, in JAX's order. Constants that the
function captures become constants of the program. Ops keep the location of their Python line.
Unsigned results are marked as such, because IREE's integer types are signless.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from irees.dialects.signature import is_entry, mark_unsigned
from irees.errors import UnsupportedError
from irees.fence import fenced
from irees.runtime.objects import encoded, is_constant
from irees.runtime.signature import Signature
from irees.runtime.trees import LEAF, Tree, class_path, count_leaves

from .imported import Imported
from .mlir import import_mlir


def is_jax(program: Any) -> bool:
    """Whether an object is a jitted, lowered or exported JAX function; does not import jax."""
    return type(program).__module__.split(".")[0] in ("jax", "jaxlib")


@fenced
def import_jax(program: Any, inputs: Sequence[Any] = (), *, ctx: Context | None = None) -> ModuleOp:
    """
    Imports a JAX function as a module with one function, `main`. Takes the arguments of
    `import_jax_program` and raises the same errors.
    """
    return import_jax_program(program, inputs, ctx=ctx).module


def import_jax_program(
    program: Any,
    inputs: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    ctx: Context | None = None,
) -> Imported:
    """
    Imports a JAX function as a module with one function, `main`, and its signature.

    `program` is the result of `jax.jit`, called with example arguments (arrays or
    `jax.ShapeDtypeStruct`), or the result of its `lower`, or of `jax.export`. Raises
    UnsupportedError if JAX cannot trace the function or IREE's importer cannot lower it.
    """
    if hasattr(program, "mlir_module"):
        return _imported(program, program.mlir_module(), program.module_kept_var_idx, ctx)
    lowered = program
    if not hasattr(program, "compiler_ir"):
        try:
            lowered = program.lower(*inputs, **kwargs or {})
        except Exception as error:
            raise UnsupportedError(f"JAX cannot trace the function: {error}") from error
    text = lowered.compiler_ir("stablehlo").operation.get_asm(enable_debug_info=True)
    return _imported(lowered, text, lowered._lowering.compile_args.get("kept_var_idx"), ctx)


def _imported(
    lowered: Any, text: str, kept: Collection[int] | None, ctx: Context | None
) -> Imported:
    """The module and the signature of StableHLO; `kept` are the leaves that are arguments of it."""
    from jax import tree_util

    module = import_mlir(linalg_of(text.encode()), ctx, name="<jax>")
    (function,) = (op for op in module.body.block.ops if _is_main(op))
    results = getattr(lowered, "out_avals", None)
    results = tree_util.tree_leaves(lowered.out_info) if results is None else results
    unsigned = [i for i, leaf in enumerate(results) if str(leaf.dtype).startswith("uint")]
    mark_unsigned(function, unsigned)
    return Imported(module, _signature(lowered, kept))


def _signature(lowered: Any, arguments: Collection[int] | None) -> Signature | None:
    """Returns the signature of the function; None if its trees contain user-defined classes."""
    args, kwargs = lowered.in_tree.children()
    try:
        positional = tuple(_tree(child) for child in args.children())
        names = list(kwargs.node_data()[1]) if kwargs.node_data() else []
        named = dict(zip(names, map(_tree, kwargs.children())))
        outputs = _tree(lowered.out_tree)
    except TypeError:
        return None
    count = sum(map(count_leaves, (*positional, *named.values())))
    kept = sorted(range(count) if arguments is None else arguments)
    leaves = [{"argument": kept.index(i)} if i in kept else {"ignored": True} for i in range(count)]
    results = tuple({"result": i} for i in range(count_leaves(outputs)))
    return Signature(
        positional, named, (), {}, tuple(leaves), outputs, results, origin="jax", variadic=True
    )


def _tree(definition: Any) -> Tree:
    """Converts a PyTreeDef to a `Tree`. Raises TypeError for a user-defined class."""
    data = definition.node_data()
    if data is None:
        return LEAF if definition.num_leaves else {"kind": "none"}
    kind, keys = data
    children = [_tree(child) for child in definition.children()]
    if kind in (tuple, list):
        return {"kind": kind.__name__, "children": children}
    if kind is dict and all(map(is_constant, keys)):
        return {"kind": "dict", "keys": [encoded(key) for key in keys], "children": children}
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        fields = list(kind._fields)
        return {"kind": "named", "class": class_path(kind), "fields": fields, "children": children}
    raise TypeError(kind)


def linalg_of(text: bytes) -> bytes:
    """
    Lowers a StableHLO program to linalg with IREE's compiler.

    Raises UnsupportedError if IREE's compiler is not installed or rejects the program.
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
        raise UnsupportedError(f"IREE's importer rejects the program: {said}") from error


def _is_main(op: Operation) -> bool:
    return op.name in ("util.func", "func.func") and is_entry(op)
