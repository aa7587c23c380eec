"""
Prints a whole program, for any backend: kernel IR to texts, a manifest and constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects import arith, cf, func, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseResourceAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from irees.analysis.arena import arena_use
from irees.backends.common.emit import entry
from irees.backends.common.emit_ops import Expressions
from irees.backends.common.printer import Printer, Unit
from irees.backends.common.types import vector_typedef
from irees.blobs import Blob
from irees.dialects.flow import ExecutableOp
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.dialects.resources import blob_of, constant_array, dtype_of
from irees.dialects.signature import element_names, is_entry, unsigned_results, written_results
from irees.dialects.stream import CmdDispatchOp
from irees.errors import OutOfMemoryError, UnsupportedError, describe_location
from irees.runtime.alignment import aligned_rooms
from irees.transforms.utils.shapes import constant_value

HERE = Path(__file__).parent
FILLERS = 2
"""Constants computed concurrently: one is packed while another one is decoded."""


@dataclass
class Sources:
    """A program as text and data."""

    texts: dict[str, str]
    manifest: dict[str, Any]
    constants: dict[str, np.ndarray]


@dataclass(frozen=True)
class Backend:
    """The parts of program printing that differ between backends: printers and prelude."""

    printer: Callable[[Unit, Expressions], Printer]
    """The printer of the host program."""
    kernel: Callable[[func.FuncOp, str, Unit], tuple[dict[str, str], str, Expressions]]
    """Returns the kernel's texts by name, its launcher for the host text, and its vector types."""
    unit: Callable[[], Unit] = Unit
    host_header: str = ""
    finish: Callable[[Unit, Sources], None] | None = None


@cache
def host_support() -> str:
    """The C prelude of every text for the C compiler."""
    return '#include "irees.h"\n' + "".join(
        (HERE / f"irees_{name}.h").read_text() for name in ("libm", "c", "widen", "support")
    )


def unit_text(text: str, expressions: Expressions, header: str = "") -> str:
    """A complete C translation unit: prelude, vector types, text."""
    typedefs = "\n".join(vector_typedef(name) for name in sorted(expressions.vectors))
    return f"{host_support()}{header}\n{typedefs}\n\n{text}"


def joined_texts(texts: Mapping[str, str]) -> str:
    """
    All C texts of a program as one translation unit, with the shared prelude and each vector
    type only once.
    """
    parts, typedefs = [host_support()], set[str]()
    for name, text in texts.items():
        lines = [f"/* ---- {name}.c ---- */"]
        for line in text.removeprefix(host_support()).splitlines():
            if line.startswith("IREES_VECTOR"):
                if line in typedefs:
                    continue
                typedefs.add(line)
            lines.append(line)
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


@dataclass(frozen=True)
class Printed:
    """A printed kernel: its texts by name, its launcher, and the launcher's vector types."""

    texts: dict[str, str]
    launcher: str
    vectors: dict[str, None]


class ProgramText:
    """
    Prints a module kernel by kernel, each as soon as its code is final.

    Raises UnsupportedError for an op or type that has no C.
    """

    def __init__(self, module: ModuleOp, backend: Backend):
        self.module = module
        self.backend = backend
        self.unit = backend.unit()
        self.printed: dict[str, Printed] = {}
        self.trapping: set[str] = set()
        """Executables that have traps."""
        self.host = Expressions()
        for op in module.body.block.ops:
            if not isinstance(op, ExecutableOp | func.FuncOp | memref.GlobalOp):
                raise UnsupportedError("unsupported op at the top level of a lowered module", op=op)
        self.globals = [op for op in module.body.block.ops if isinstance(op, memref.GlobalOp)]
        for number, op in enumerate(self.globals):
            self.unit.constants[op.sym_name.data] = number
        # Weights are packed while kernels are lowered and compiled: no pass changes them any more.
        background = ThreadPoolExecutor(1)
        self.constants = background.submit(held, self.globals)
        background.shutdown(wait=False)

    def print_kernel(self, executable: ExecutableOp) -> dict[str, str]:
        """Prints the next executable, in module order; returns its texts by name."""
        symbol = executable.sym_name.data
        name = self.unit.kernels.setdefault(symbol, f"irees_k{len(self.unit.kernels)}")
        function = next(f for f in executable.walk() if isinstance(f, func.FuncOp))
        before = len(self.unit.traps)
        texts, launcher, expressions = self.backend.kernel(function, name, self.unit)
        self.printed[symbol] = Printed(texts, launcher, expressions.vectors)
        if len(self.unit.traps) > before:
            self.trapping.add(symbol)
        return texts

    def print_again(self, executables: Iterable[ExecutableOp]) -> bool:
        """
        Reprints executables that have changed since they were printed. Returns whether that was
        possible. It is not if an executable has traps or device launches: those are numbered in
        the order of all kernels.
        """
        changed = list(executables)
        if changed and self.backend.finish is not None:
            return False
        if any(executable.sym_name.data in self.trapping for executable in changed):
            return False
        for executable in changed:
            self.print_kernel(executable)
        return not any(executable.sym_name.data in self.trapping for executable in changed)

    def finish(self) -> Sources:
        """Returns the whole program. Call it after all kernels are printed."""
        top = self.module.body.block.ops
        public = [op for op in top if isinstance(op, func.FuncOp) and is_entry(op)]
        constants = self.constants.result()
        texts: dict[str, str] = {}
        for each in self.printed.values():
            texts |= each.texts
            self.host.vectors |= each.vectors
        texts["host"] = self._host(public)
        sources = Sources(texts, self._manifest(public, constants), constants)
        if self.backend.finish is not None:
            self.backend.finish(self.unit, sources)
        return sources

    def _host(self, public: list[func.FuncOp]) -> str:
        """The host text: launchers, kernel prototypes, function entries."""
        prototype = "int32_t {}(const irees_runtime *, void *const *, const int64_t *, int32_t *);"
        launchers = (each.launcher for each in self.printed.values())
        host = [*launchers, *map(prototype.format, self.unit.kernels.values())]
        for number, function in enumerate(public):
            p = self.backend.printer(self.unit, Expressions())
            host.append(entry(p, function, number))
            self.host.vectors |= p.expressions.vectors
        return unit_text("\n".join(host), self.host, self.backend.host_header)

    def _manifest(
        self, public: list[func.FuncOp], constants: dict[str, np.ndarray]
    ) -> dict[str, Any]:
        """The manifest that the runtime reads. Call it after the host is printed."""
        unit = self.unit
        traps = [
            {"message": t.message, "loc": describe_location(t.op.location) or "", "op": t.op.name}
            for t in unit.traps
        ]
        shared = {"constants": list(constants), "traps": traps}
        arenas = {function.sym_name.data: arena_use(function) for function in public}
        executables = (op for op in self.module.body.block.ops if isinstance(op, ExecutableOp))
        manifest: dict[str, Any] = {
            "functions": [{**_function_record(f, n), **shared} for n, f in enumerate(public)],
            "kernels": [_kernel_record(e, unit, public) for e in executables],
            "memory": {
                "constant_bytes": sum(a.nbytes for a in constants.values()),
                "arena_bytes": {name: use.bytes for name, use in arenas.items()},
                "live_bytes": {name: use.live for name, use in arenas.items()},
            },
        }
        if unit.traces:
            manifest["traces"] = [
                {"key": t.key.data, "values": [spec_record(value.type) for value in t.values]}
                for t in unit.traces
            ]
        return manifest


def print_program(module: ModuleOp, backend: Backend) -> Sources:
    """
    Prints a module that was lowered through all phases: a text per kernel, one for the host.

    Raises UnsupportedError for an op or type that has no C.
    """
    program = ProgramText(module, backend)
    for op in module.body.block.ops:
        if isinstance(op, ExecutableOp):
            program.print_kernel(op)
    return program.finish()


def held(globals_: Sequence[memref.GlobalOp]) -> dict[str, np.ndarray]:
    """
    Returns the data of globals by name. Constant resources are decoded or computed directly into
    one aligned allocation that the program keeps, FILLERS at a time.

    Raises OutOfMemoryError.
    """
    blobs = {op: blob for op in globals_ if (blob := _placed_blob(op)) is not None}
    try:
        rooms = dict(zip(blobs, aligned_rooms([b.size for b in blobs.values()]), strict=True))
        with ThreadPoolExecutor(FILLERS) as pool:
            # The largest first: a copy without the interpreter lock delays no pass.
            largest = sorted(blobs, key=lambda op: -blobs[op].size)
            for _ in pool.map(lambda op: blobs[op].fill(rooms[op]), largest):
                pass
    except (MemoryError, OSError):
        raise _too_large(sum(blob.size for blob in blobs.values()), next(iter(blobs))) from None
    constants: dict[str, np.ndarray] = {}
    for op in globals_:
        kind = op.type
        assert isinstance(kind, MemRefType)
        constants[op.sym_name.data] = (
            rooms[op].view(dtype_of(kind.element_type)).reshape(kind.get_shape())
            if op in rooms
            else _held(op)
        )
    return constants


def _placed_blob(op: memref.GlobalOp) -> Blob | None:
    """The blob of a constant resource whose bytes are its elements in memory, or None."""
    value = op.initial_value
    if not isinstance(value, DenseResourceAttr) or op.constant is None:
        return None
    blob, type_ = blob_of(value), value.type
    dtype = dtype_of(type_.get_element_type())
    whole = blob.size == prod(type_.get_shape()) * dtype.itemsize
    return blob if whole and dtype != np.bool_ else None


def _held(op: memref.GlobalOp) -> np.ndarray:
    """
    The data of a global: a view of the attribute if it is constant, a copy if it is mutable.

    Raises OutOfMemoryError.
    """
    assert op.initial_value is not None
    data = constant_array(op.initial_value)
    try:
        return np.ascontiguousarray(data) if op.constant is not None else np.array(data)
    except MemoryError:
        raise _too_large(data.nbytes, op) from None


def _too_large(size: int, op: memref.GlobalOp) -> OutOfMemoryError:
    return OutOfMemoryError(
        f"cannot allocate the {size} bytes of this value",
        op="util.global" if op.constant is None else "arith.constant",
        location=op.location,
        hint="use a smaller initial value and write the rest in a function",
    )


def _kernel_record(
    executable: ExecutableOp, unit: Unit, functions: list[func.FuncOp]
) -> dict[str, Any]:
    name = executable.sym_name.data
    calls = sum(
        isinstance(op, CmdDispatchOp) and op.entry_point.root_reference.data == name
        for function in functions
        for op in function.walk()
    )
    return {
        "name": name,
        "symbol": unit.kernels[name],
        "calls": calls,
        "summary": _text(executable, "summary"),
        "key": _text(executable, "key"),
        "configs": _configs(executable),
        "tuned": "tuned" in executable.attributes,
        "vector": widest_vector(executable),
        **_work(executable),
        "cycles": _cycles(executable),
    }


def _text(op: Operation, name: str) -> str:
    attribute = op.attributes.get(name)
    return attribute.data if isinstance(attribute, StringAttr) else ""


def _work(op: Operation) -> dict[str, int | None]:
    """Flops and bytes recorded by `irees-annotate-dispatches`, None where unknown."""
    work = op.attributes.get("work")
    found: dict[str, int | None] = {}
    for name in ("flops", "bytes"):
        number = work.data.get(name) if isinstance(work, DictionaryAttr) else None
        found[name] = number.value.data if isinstance(number, IntegerAttr) else None
    return found


def _cycles(executable: ExecutableOp) -> int | None:
    """Returns the predicted cycles of one call on a GPU, or None without a prediction."""
    cycles = executable.attributes.get("cycles")
    return cycles.value.data if isinstance(cycles, IntegerAttr) else None


def _configs(executable: ExecutableOp) -> list[dict[str, Any]]:
    """The lowering configs of a kernel's structured ops, in order."""
    configs = executable.attributes.get("configs")
    if not isinstance(configs, ArrayAttr):
        return []
    return [c.as_data() for c in configs if isinstance(c, LoweringConfigAttr)]


def widest_vector(executable: ExecutableOp) -> str | None:
    """The widest vector type of a kernel as `16xf32`, None if it has no vectors."""
    best, best_bits = None, 0
    for op in executable.walk():
        for kind in (v.type for v in (*op.results, *op.operands)):
            if not isinstance(kind, VectorType):
                continue
            shape, element = kind.get_shape(), kind.get_element_type()
            bits = prod(shape) * int(getattr(element, "bitwidth", 0))
            if bits > best_bits:
                best, best_bits = f"{'x'.join(map(str, shape))}x{element}", bits
    return best


def _function_record(function: func.FuncOp, entry: int) -> dict[str, Any]:
    return {
        "name": function.sym_name.data,
        "entry": entry,
        "args": argument_records(function),
        "results": result_records(function, function.function_type.outputs),
        "equal_dims": equal_dims(function),
        "updates": [list(pair) for pair in written_results(function).items()],
        **_work(function),
    }


def equal_dims(function: func.FuncOp) -> list[dict[str, Any]]:
    """Pairs of argument dims that the function asserts to be equal before its first dispatch."""
    arguments = function.body.block.args

    def argument_dim(value: SSAValue) -> list[int] | None:
        op = value.owner
        if not isinstance(op, memref.DimOp) or op.source not in arguments:
            return None
        axis = constant_value(op.index)
        return None if axis is None else [arguments.index(op.source), axis]

    found: list[dict[str, Any]] = []
    for op in function.body.block.ops:
        if isinstance(op, CmdDispatchOp):
            break
        condition = op.operands[0].owner if isinstance(op, cf.AssertOp) else None
        if not isinstance(condition, arith.CmpiOp) or condition.predicate.value.data != 0:
            continue
        sides = [argument_dim(v) for v in condition.operands]
        if None not in sides:
            place = describe_location(op.location) or ""
            found.append({"a": sides[0], "b": sides[1], "op": _subject(op), "loc": place})
    return found


def _subject(op: Operation) -> str:
    """Returns the op that an assertion checks: the part of its message after the last ' of '."""
    message = op.properties["msg"].data
    return message.rpartition(" of ")[2] if " of " in message else "cf.assert"


def argument_records(
    function: Operation, kinds: Sequence[Attribute] | None = None
) -> list[dict[str, Any]]:
    """Manifest records of a function's arguments; `kinds` overrides their types."""
    named = element_names(function, "arg")
    if kinds is None:
        kinds = function.properties["function_type"].inputs  # pyright: ignore
    return [spec_record(kind, element=named.get(i)) for i, kind in enumerate(kinds)]


def result_records(function: Operation, kinds: Iterable[Attribute]) -> list[dict[str, Any]]:
    """Manifest records of a function's results of these types."""
    unsigned, named = unsigned_results(function), element_names(function, "res")
    return [spec_record(kind, i in unsigned, named.get(i)) for i, kind in enumerate(kinds)]


def spec_record(
    kind: Attribute, unsigned: bool = False, element: str | None = None
) -> dict[str, Any]:
    """
    Manifest record of an argument or result. `unsigned` applies to integers except i1; `element`
    is the caller's element type if it is stored as another type.
    """
    if not isinstance(kind, MemRefType | TensorType):
        return {"kind": "scalar", "dtype": element or _dtype(kind, unsigned)}
    shape = [None if size == DYNAMIC_INDEX else size for size in kind.get_shape()]
    dtype = element or _dtype(kind.get_element_type(), unsigned)
    return {"kind": "tensor", "dtype": dtype, "shape": shape}


def _dtype(kind: Attribute, unsigned: bool) -> str:
    name = "i64" if isinstance(kind, IndexType) else str(kind)
    return f"u{name}" if unsigned and name.startswith("i") and name != "i1" else name
