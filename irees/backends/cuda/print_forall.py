"""
Prints parallel loops as CUDA C++: a loop over workgroups becomes a kernel and its launch, and a
loop over the threads of a workgroup becomes a loop strided by the block size.
"""

from __future__ import annotations

from collections import ChainMap
from functools import reduce
from math import prod

from xdsl.dialects import memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp, NoneAttr
from xdsl.ir import Operation, SSAValue

from irees.analysis.kernel_aliases import dispatches_of, exclusive_buffers
from irees.backends.common.emit_ops import Expressions
from irees.backends.common.print_dispatch import BY_BITS, pack_scalar, unpack_scalar
from irees.backends.common.print_memory import (
    buffer_bytes,
    mixed,
    place_scratch,
    scratch_buffer,
    upper_operands,
)
from irees.backends.common.printer import HANDLERS, Handler, Printer, handles, times
from irees.backends.common.types import is_bool, scalar, size_of
from irees.backends.cuda.expressions import CudaExpressions
from irees.backends.cuda.print_boxes import BOXES, MAPS
from irees.backends.cuda.print_counters import ATOMICS, COUNTERS
from irees.backends.cuda.print_matrices import MATRICES
from irees.backends.cuda.print_warpgroups import WARPGROUPS
from irees.backends.cuda.unit import CudaUnit, Kernel
from irees.dialects.flow import ExecutableOp
from irees.dialects.nvvm import FEWEST_WORKGROUPS, MATCHED_BITS, MatchSyncOp, SyncWarpOp
from irees.dialects.storage import root
from irees.dialects.upstream.gpu import ShuffleMode, ShuffleOp
from irees.dialects.upstream.scf import UNROLL
from irees.errors import UnsupportedError
from irees.targets.nvidia import NVIDIA
from irees.transforms.utils.shapes import constant_value

STATIC_SHARED_BYTES = 48 << 10
"""Limit of static shared memory in bytes; kernels above it use dynamic shared memory."""

SCRATCH_BLOCKS = 256
"""Maximum grid size of kernels with per-workgroup scratch memory, which bounds its size."""

SCRATCH_LINE = 128
"""Alignment of scratch buffers in bytes: an L2 cache line."""

SHARED_ALIGNMENT = 128
"""Minimum alignment of a kernel's shared memory, in bytes."""

TENSOR_MAP = "irees_tensor_map"

EVERY_LANE = -1
"""The lane mask of a full warp."""

HOST: dict[str, Handler] = {}
KERNEL: dict[str, Handler] = {}


class HostPrinter(Printer):
    """Prints the host program; buffers are on the device and accessed through runtime services."""

    handlers = ChainMap(HOST, MAPS, COUNTERS, HANDLERS)

    def __init__(self, unit: CudaUnit, expressions: Expressions):
        super().__init__(unit, expressions)
        self.counters: dict[str, int] = {}
        """C name of a counter buffer => its size in bytes."""

    def trap_word(self) -> tuple[list[str], list[str]]:
        assert isinstance(self.unit, CudaUnit)
        if not any(kernel.traps for kernel in self.unit.launches):
            return super().trap_word()
        begin = [
            "  int32_t failed = 0, *const trap = IREES_TRAP_WORD(failed);",
            "  if (!trap) { status = IREES_OUT_OF_MEMORY; goto done; }",
        ]
        return begin, ["status = IREES_TRAPPED(failed, status);"]


class KernelPrinter(Printer):
    """Prints one kernel."""

    handlers = ChainMap(KERNEL, MATRICES, WARPGROUPS, BOXES, ATOMICS, HANDLERS)

    def __init__(self, unit: CudaUnit, outer: Printer, loop: Operation):
        super().__init__(unit, CudaExpressions(), outer)
        self.threads = threads_of(loop)
        self.few_registers = FEWEST_WORKGROUPS in loop.attributes
        """Whether a minimum of workgroups per multiprocessor limits the registers."""
        self.shared_bytes = 0
        self.shared_alignment = SHARED_ALIGNMENT
        self.waits = False
        self.warpgroups = False
        self.traps = False
        self.exclusive: set[str] = set()
        """Parameters whose memory no other pointer accesses: `__restrict__`."""
        self.captured_maps: dict[SSAValue, tuple[str, str]] = {}
        """Tensor map => its C names in the launcher and in the kernel."""

    def before_loop(self, op: Operation) -> None:
        """Prints the pragma of a loop that is marked for unrolling."""
        if UNROLL in op.attributes:
            self.line("IREES_UNROLL")

    def tensor_map(self, value: SSAValue) -> str:
        """Passes a tensor map of the launcher to the kernel; returns its name there."""
        assert self.outer is not None
        if value not in self.captured_maps:
            self.captured_maps[value] = self.outer.name(value), self.fresh("m")
        return self.captured_maps[value][1]

    def share(self, size: int, alignment: int = 16) -> int:
        """Allocates `size` bytes of shared memory; returns their offset."""
        self.shared_alignment = max(self.shared_alignment, alignment)
        offset = -(-self.shared_bytes // alignment) * alignment
        self.shared_bytes = offset + max(1, size)
        return offset

    def fail(self, condition: str, number: int | str) -> None:
        self.traps = True
        # Kernels after a failed one still run, so keep the first trap.
        self.line(f"if ({condition} && !*trap) *trap = {number};")


def threads_of(op: Operation) -> int:
    """Threads per workgroup of a loop."""
    found = op.attributes.get("threads")
    return found.value.data if isinstance(found, IntegerAttr) else NVIDIA.threads


def launch_bounds(op: Operation) -> str:
    """`__launch_bounds__` of a loop: threads, and minimum workgroups per SM if given."""
    fewest = op.attributes.get(FEWEST_WORKGROUPS)
    more = f", {fewest.value.data}" if isinstance(fewest, IntegerAttr) else ""
    return f"__launch_bounds__({threads_of(op)}{more})"


@handles("scf.forall", table=HOST)
def _workgroups(p: Printer, op: Operation) -> None:
    """Prints the body of a loop over workgroups as a kernel, and the launch of it."""
    unit = p.unit
    assert isinstance(unit, CudaUnit)
    uppers = mixed(p, op.properties["staticUpperBound"].get_values(), upper_operands(op))
    inner = KernelPrinter(unit, p, op)
    inner.counter = p.counter
    counts = [inner.capture_scalar(u, None) for u in uppers]
    body = op.regions[0].block
    inner.names.update(zip(body.args, inner.delinearize("workgroup", counts), strict=True))
    inner.block(body)
    p.counter = inner.counter
    p.line("{")
    p.depth += 1
    blocks = p.hold(reduce(times, uppers, "1"))
    if inner.scratch:
        blocks = p.hold(f"{blocks} < {SCRATCH_BLOCKS} ? {blocks} : {SCRATCH_BLOCKS}")
    temporaries = _print_scratch(p, inner, blocks)
    parameters, arguments = _parameters(inner)
    name = f"{p.prefix}_w{sum(k.name.startswith(f'{p.prefix}_w') for k in unit.launches)}"
    inner.exclusive = _exclusive_pointers(unit, op, inner)
    text = _kernel_text(name, inner, reduce(times, counts, "1"), launch_bounds(op))
    vectors = tuple(inner.expressions.vectors)
    kernel = Kernel(
        name,
        text,
        inner.threads,
        inner.shared_bytes,
        inner.waits,
        inner.warpgroups,
        len(inner.captured_maps),
        vectors,
        tuple(parameters),
        inner.traps,
    )
    p.line(f"const int64_t arguments_[] = {{{', '.join(arguments) or '0'}}};")
    p.line(
        f"const irees_launch launch_ = {{{len(unit.launches)}, {kernel.threads}, "
        f"{int(kernel.waits)}, {len(arguments)}, {blocks}, {kernel.shared_bytes}, arguments_}};"
    )
    unit.launches.append(kernel)
    p.line(f"if (!status && {blocks} > 0) status = IREES_LAUNCH(&launch_);")
    for pointer, size in _counters_of(p, inner):
        p.line(f"if (!status) status = IREES_COUNTED({pointer}, {size});")
    for temporary in temporaries:
        p.line(f"rt->free({temporary});")
    p.line("if (status) goto done;")
    p.close()


def _exclusive_pointers(unit: CudaUnit, op: Operation, inner: KernelPrinter) -> set[str]:
    """The parameters of a kernel that are `__restrict__`."""
    executable, module = op, op.get_toplevel_object()
    while not isinstance(executable, ExecutableOp):
        if (above := executable.parent_op()) is None:
            return set()
        executable = above
    if unit.dispatches is None:
        unit.dispatches = dispatches_of(module) if isinstance(module, ModuleOp) else {}
    buffers = exclusive_buffers(op, unit.dispatches.get(executable.sym_name.data, ()))
    parameters = {name for _, _, name in inner.captured_pointers}
    pointers: dict[SSAValue, set[str]] = {buffer: set() for buffer in buffers}
    for value, buffer in inner.buffers.items():
        if buffer.pointer in parameters and root(value) in pointers:
            pointers[root(value)].add(buffer.pointer)
    # Two views of one buffer alias, so neither is exclusive.
    return {name for names in pointers.values() if len(names) == 1 for name in names}


def _print_scratch(p: Printer, inner: KernelPrinter, blocks: str) -> list[str]:
    """Prints the allocation of scratch memory for all workgroups; returns pointers to free."""
    if not inner.scratch:
        return []
    *places, size = place_scratch(p, inner.scratch, SCRATCH_LINE)
    for (name, _), place in zip(inner.scratch, places, strict=True):
        inner.captured_scalars.append((place, "int64_t", name))
    inner.captured_scalars.append((size, "int64_t", "scratch_bytes"))
    p.line(f"char *const scratch_ = rt->alloc(irees_bytes({size}, {blocks}));")
    p.line("if (!scratch_) status = IREES_OUT_OF_MEMORY;")
    inner.captured_pointers.append(("scratch_", "char", "all_scratch"))
    return ["scratch_"]


def _counters_of(p: Printer, inner: KernelPrinter) -> list[tuple[str, int]]:
    """Counter buffers that a kernel captures, with their sizes in bytes."""
    assert isinstance(p, HostPrinter)
    taken = [outside for outside, _, _ in inner.captured_pointers]
    return [(pointer, p.counters[pointer]) for pointer in taken if pointer in p.counters]


def _parameters(inner: KernelPrinter) -> tuple[list[str], list[str]]:
    """Returns the C types of a kernel's parameters, and the arguments as 64-bit integers."""
    maps = [outside for outside, _ in inner.captured_maps.values()]
    pointers = inner.captured_pointers
    words = [word for text, t, _ in inner.captured_scalars for word in _words(t, text)]
    parameters = [TENSOR_MAP for _ in maps]
    parameters += [*(f"{t} *" for _, t, _ in pointers), *("int64_t" for _ in words)]
    addresses = [*(f"&{name}" for name in maps), *(outside for outside, _, _ in pointers)]
    arguments = [f"(int64_t)(intptr_t){address}" for address in addresses]
    arguments += [pack_scalar(t, text) for t, text in words]
    if inner.traps:
        parameters.append("int32_t *")
        arguments.append("(int64_t)(intptr_t)trap")
    return parameters, arguments


def _words(c_type: str, text: str) -> list[tuple[str, str]]:
    """Splits a scalar into parts of at most 64 bits: C type and text of each."""
    if c_type != "irees_c128":
        return [(c_type, text)]
    return [("double", f"IREES_REAL({text})"), ("double", f"IREES_IMAGINARY({text})")]


def _scalar_parameters(inner: KernelPrinter) -> tuple[list[str], list[str]]:
    """
    Returns the parameters for scalars, and the lines that unpack them: each takes 64 bits, or two
    of them. Raises UnsupportedError for a type that does not fit.
    """
    parameters: list[str] = []
    lines: list[str] = []
    for _, c_type, name in inner.captured_scalars:
        if c_type == "int64_t":
            parameters.append(f"const int64_t {name}")
        elif c_type == "irees_c128":
            for word in (f"{name}_re", f"{name}_im"):
                parameters.append(f"const int64_t {word}_")
                lines.append("  " + unpack_scalar("double", word, f"{word}_"))
            lines.append(f"  const {c_type} {name} = irees_complex_c128({name}_re, {name}_im);")
        elif c_type in BY_BITS or c_type.startswith(("int", "uint")):
            parameters.append(f"const int64_t {name}_")
            lines.append("  " + unpack_scalar(c_type, name, f"{name}_"))
        else:
            raise UnsupportedError(f"a kernel cannot take a scalar of type {c_type} from the host")
    return parameters, lines


def _kernel_text(name: str, inner: KernelPrinter, count: str, bounds: str) -> str:
    loops = bool(inner.scratch)
    names = [name for _, name in inner.captured_maps.values()]
    parameters = [f"const __grid_constant__ {TENSOR_MAP} {name}" for name in names]
    parameters += [
        f"{t} *{'__restrict__ ' if name in inner.exclusive else ''}{name}"
        for _, t, name in inner.captured_pointers
    ]
    scalars, prologue = _scalar_parameters(inner)
    parameters += scalars
    if inner.traps:
        parameters.append("int32_t *trap")
    alignment = inner.shared_alignment
    if inner.shared_bytes > STATIC_SHARED_BYTES:
        prologue.append(f"  IREES_SHARED_DYNAMIC(shared, {alignment});")
    elif inner.shared_bytes:
        prologue.append(f"  IREES_SHARED_STATIC(shared, {inner.shared_bytes}, {alignment});")
    if loops:
        prologue.append("  char *const scratch = all_scratch + blockIdx.x * scratch_bytes;")
        head = f"for (int64_t workgroup = blockIdx.x; workgroup < {count}; workgroup += gridDim.x)"
    else:
        head = "const int64_t workgroup = blockIdx.x; (void)workgroup;"
    tail = ["    __syncthreads();"] if loops and inner.waits else []
    return "\n".join(
        (
            f'extern "C" __global__ void {bounds}',
            f"{name}({', '.join(parameters)}) {{",
            *prologue,
            f"  {head}{' {' if loops else ''}",
            *inner.lines,
            *tail,
            *(["  }"] if loops else []),
            "}\n",
        )
    )


@handles("scf.forall", table=KERNEL)
def _threads(p: Printer, op: Operation) -> None:
    """Prints a loop over threads; a larger trip count is strided by the block size."""
    assert isinstance(p, KernelPrinter)
    (upper,) = mixed(p, op.properties["staticUpperBound"].get_values(), upper_operands(op))
    body = op.regions[0].block
    index = p.fresh("t")
    p.names[body.args[0]] = index
    if upper == str(p.threads):
        p.open("")
        p.line(f"const int64_t {index} = threadIdx.x; (void){index};")
    elif upper.isdigit() and int(upper) < p.threads:
        p.open(f"if (threadIdx.x < {upper})")
        p.line(f"const int64_t {index} = threadIdx.x; (void){index};")
    elif upper.isdigit() and int(upper) % p.threads == 0 and not p.few_registers:
        # With a trip count that it knows, the compiler unrolls the loop and moves its loads up,
        # which takes registers.
        turn = p.fresh("n")
        p.open(f"for (int32_t {turn} = 0; {turn} < {int(upper) // p.threads}; {turn} += 1)")
        p.line(f"const int64_t {index} = threadIdx.x + {turn} * {p.threads};")
    else:
        p.open(f"for (int64_t {index} = threadIdx.x; {index} < {upper}; {index} += {p.threads})")
    p.block(body)
    p.close()
    p.scopes.pop()


@handles("gpu.barrier", table=KERNEL)
def _barrier(p: Printer, op: Operation) -> None:
    assert isinstance(p, KernelPrinter)
    p.waits = True
    p.line("__syncthreads();")


@handles("gpu.shuffle", table=KERNEL)
def _shuffle(p: Printer, op: Operation) -> None:
    """Supports only `xor` over full warps."""
    assert isinstance(p, KernelPrinter)
    assert isinstance(op, ShuffleOp)
    if op.mode.data is not ShuffleMode.XOR or p.name(op.width) != "32":
        raise UnsupportedError("only xor shuffles of 32 lanes are supported", op=op.name)
    p.waits = True
    p.define(op.shuffle_result, f"irees_shuffle_xor({p.name(op.value)}, {p.name(op.offset)})")
    p.names[op.valid] = "1"


@handles("nvvm.match.sync", table=KERNEL)
def _match(p: Printer, op: Operation) -> None:
    """Supports only full warps."""
    assert isinstance(p, KernelPrinter)
    assert isinstance(op, MatchSyncOp)
    if constant_value(op.thread_mask) != EVERY_LANE:
        raise UnsupportedError("only a match of all 32 lanes is supported", op=op.name)
    p.waits = True
    bits = op.attributes.get(MATCHED_BITS)
    how = f"bits<{bits.value.data}>" if isinstance(bits, IntegerAttr) else "any"
    p.define(op.res, f"irees_match_{how}({p.name(op.val)})")


@handles("nvvm.bar.warp.sync", table=KERNEL)
def _sync_warp(p: Printer, op: Operation) -> None:
    assert isinstance(p, KernelPrinter)
    assert isinstance(op, SyncWarpOp)
    if constant_value(op.mask) != EVERY_LANE:
        raise UnsupportedError("only a warp barrier of all 32 lanes is supported", op=op.name)
    p.waits = True
    p.line("__syncwarp();")


@handles("memref.alloc", table=KERNEL)
def _alloc(p: Printer, op: Operation) -> None:
    """Allocates shared memory, or scratch memory in global memory."""
    assert isinstance(p, KernelPrinter)
    assert isinstance(op, memref.AllocOp)
    kind = op.memref.type
    assert isinstance(kind, MemRefType)
    if address_space(kind) != "workgroup":
        scratch_buffer(p, op)
        return
    sizes = [str(s) for s in kind.get_shape()]
    alignment = 16 if op.alignment is None else op.alignment.value.data
    offset = p.share(prod(kind.get_shape()) * size_of(kind.element_type), alignment)
    pointer = p.fresh("p")
    element_type = scalar(kind.element_type)
    p.line(f"{element_type} *const {pointer} = ({element_type} *)(shared + {offset});")
    p.bind_buffer(op.memref, pointer, sizes)


@handles("memref.alloca", table=KERNEL)
def _alloca(p: Printer, op: Operation) -> None:
    """Declares a thread-local array: registers, or local memory if they spill."""
    assert isinstance(op, memref.AllocaOp)
    kind = op.memref.type
    assert isinstance(kind, MemRefType)
    pointer = p.fresh("p")
    p.line(f"{scalar(kind.element_type)} {pointer}[{max(1, prod(kind.get_shape()))}];")
    p.bind_buffer(op.memref, pointer, [str(s) for s in kind.get_shape()])


def address_space(kind: MemRefType) -> str | None:
    """Address space of a memref: `workgroup`, `private` or None."""
    space = getattr(kind.memory_space, "data", None)
    return getattr(space, "value", None)


@handles("memref.load", table=HOST)
def _load(p: Printer, op: Operation) -> None:
    """Reads one element of a device buffer on the host."""
    assert isinstance(op, memref.LoadOp)
    place = p.address(p.buffer(op.memref), [p.name(i) for i in op.indices])
    name, c_type = p.fresh(), scalar(op.res.type)
    p.line(f"{c_type} {name};")
    p.line(f"status = IREES_DEVICE_READ(&{name}, {place}, sizeof {name});")
    p.line("if (status) goto done;")
    p.names[op.res] = f"({name} != 0)" if is_bool(op.res.type) else name


@handles("memref.store", table=HOST)
def _store(p: Printer, op: Operation) -> None:
    assert isinstance(op, memref.StoreOp)
    place = p.address(p.buffer(op.memref), [p.name(i) for i in op.indices])
    c_type = scalar(op.value.type)
    p.line("{")
    p.line(f"  const {c_type} value_ = {p.name(op.value)};")
    p.line(f"  status = IREES_DEVICE_WRITE({place}, &value_, sizeof value_);")
    p.line("  if (status) goto done;")
    p.line("}")


@handles("memref.copy", table=HOST)
def _copy(p: Printer, op: Operation) -> None:
    assert isinstance(op, memref.CopyOp)
    source, target = p.buffer(op.source), p.buffer(op.destination)
    kind = op.source.type
    assert isinstance(kind, MemRefType)
    if not isinstance(kind.layout, NoneAttr) or not isinstance(
        op.destination.type.layout, NoneAttr
    ):
        raise UnsupportedError("the host copies only whole buffers", op=op.name)
    size = buffer_bytes(p, kind, source.sizes)
    p.line(f"status = IREES_DEVICE_COPY({target.pointer}, {source.pointer}, {size});")
    p.line("if (status) goto done;")
