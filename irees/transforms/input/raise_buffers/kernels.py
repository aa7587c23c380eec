"""
Finds the parts of a function on buffers that become kernels as they are written. Part of
`irees-raise-buffers`.

A loop nest without structured ops gains nothing as a program on tensors, and vector ops and atomic
updates have no form on tensors. A kernel is a sequence of such ops of one block. The ops between
them that do not touch memory stay in the program, in front of the kernel, unless they use a value
that the kernel computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, func, memref, scf, tensor
from xdsl.dialects.builtin import AnyFloat as Float
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, TensorType, i32
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free

from irees.dialects.irees import KernelOp
from irees.dialects.storage import accessed, is_allocation, is_dim, is_view, loaded, root
from irees.dialects.upstream.scf import ForallOp
from irees.errors import UnsupportedError
from irees.transforms.utils.tensors import TensorBuilder

LOOPS = (scf.ForOp, ForallOp, scf.WhileOp)
RAISED = frozenset(("memref.load", "memref.store"))
"""Accesses that have a form on tensors."""


def memories(op: Operation) -> list[SSAValue]:
    """Returns the memrefs among the operands of an op."""
    return [value for value in op.operands if isinstance(value.type, MemRefType)]


def needs_memory(op: Operation) -> bool:
    """Whether an op itself has no form on tensors: a vector access or an atomic update."""
    kept = accessed(op) is not None and op.name not in RAISED
    return kept or (op.dialect_name() == "vector" and bool(memories(op)))


def only_reads(op: Operation) -> bool:
    """Whether an op reads its buffers at most. Any other op counts as writing all of them."""
    return loaded(op) is not None or is_dim(op) or is_view(op)


def is_pure(op: Operation) -> bool:
    """Whether an op only computes values. xDSL's vector ops do not say so."""
    computes = is_side_effect_free(op) or op.dialect_name() == "vector"
    return computes and not any(map(memories, op.walk()))


def may_be_kernel(op: Operation, is_structured: Callable[[Operation], bool]) -> bool:
    """Whether all of an op can be inside of a kernel: no structured op, call or tensor."""
    for inner in op.walk():
        if isinstance(inner, func.CallOp) or is_structured(inner):
            return False
        if any(isinstance(v.type, TensorType) for v in (*inner.operands, *inner.results)):
            return False
    return True


def is_kernel(op: Operation, is_structured: Callable[[Operation], bool]) -> bool:
    """Whether an op of a function on buffers starts a kernel, or continues one."""
    if isinstance(op, scf.WhileOp):
        wanted = any(map(memories, op.walk()))
    elif isinstance(op, LOOPS):
        wanted = any(map(memories, op.walk())) and not op.results
    else:
        wanted = False
    wanted = wanted or any(map(needs_memory, op.walk()))
    return wanted and may_be_kernel(op, is_structured)


def is_neutral(op: Operation) -> bool:
    """Whether an op may stay in front of a kernel that it stands in: it accesses no memory."""
    if is_view(op) or is_dim(op) or is_allocation(op) or isinstance(op, memref.DeallocOp):
        return True
    return is_pure(op)


def kernels(block: Block, is_structured: Callable[[Operation], bool]) -> Iterator[list[Operation]]:
    """Yields the sequences of ops of a block that become kernels."""
    found: list[Operation] = []
    computed: set[SSAValue] = set()
    for op in block.ops:
        uses = any(v in computed for inner in op.walk() for v in inner.operands)
        inside = uses and not isinstance(op, func.ReturnOp) and may_be_kernel(op, is_structured)
        if inside or is_kernel(op, is_structured):
            found.append(op)
            computed.update(op.results)
        elif found and (uses or not is_neutral(op)):
            yield found
            found, computed = [], set()
    if found:
        yield found


@dataclass
class Outliner:
    """Moves ops into the block of a kernel; what they use from outside becomes an operand."""

    ops: Sequence[Operation]
    buffers: list[SSAValue] = field(default_factory=list)
    """The buffers that the kernel accesses."""
    scalars: list[SSAValue] = field(default_factory=list)
    copied: list[Operation] = field(default_factory=list)
    """Ops outside of the kernel, in order, that it needs a copy of: views, constants, vectors."""

    def __post_init__(self) -> None:
        self.members = set(self.ops)
        for op in self.ops:
            for inner in op.walk():
                for value in inner.operands:
                    if not self._is_inside(value):
                        self._take(value)

    def _is_inside(self, value: SSAValue) -> bool:
        owner = value.owner
        at = owner.parent_op() if isinstance(owner, Block) else owner
        while at is not None and at not in self.members:
            at = at.parent_op()
        return at is not None

    def _take(self, value: SSAValue) -> None:
        owner = value.owner
        if isinstance(owner, Operation) and owner in self.copied:
            return
        if isinstance(value.type, MemRefType):
            if root(value) is value:
                self.buffers += [value] if value not in self.buffers else []
                return
        elif isinstance(value.type, IndexType | IntegerType | Float):
            if not isinstance(owner, arith.ConstantOp):
                self.scalars += [value] if value not in self.scalars else []
                return
        elif isinstance(owner, Block) or not is_pure(owner):
            raise UnsupportedError(
                f"a kernel cannot take a {value.type} from outside",
                op=self.ops[0],
                hint="compute it inside of the loop",
            )
        assert isinstance(owner, Operation)
        for operand in owner.operands:
            self._take(operand)
        self.copied.append(owner)

    def written(self) -> list[SSAValue]:
        """Returns the buffers that the kernel may write."""
        found: dict[SSAValue, None] = {}
        for op in self.ops:
            for inner in op.walk():
                if not only_reads(inner):
                    found.update((root(v), None) for v in memories(inner))
        return [buffer for buffer in self.buffers if buffer in found]

    def outline(
        self, current: Callable[[SSAValue], SSAValue], b: TensorBuilder
    ) -> tuple[KernelOp, list[SSAValue]]:
        """
        Returns the kernel, on the current values of its buffers, and the buffers it writes.

        A kernel that writes none has a result that nothing reads: a dispatch has one at least.
        """
        outputs = self.written()
        inputs = [buffer for buffer in self.buffers if buffer not in outputs]
        unread = [] if outputs else [b.insert(tensor.EmptyOp([], TensorType(i32, [1]))).results[0]]
        outer = [*inputs, *self.scalars, *outputs]
        kinds = [value.type for value in outer] + [MemRefType(i32, [1]) for _ in unread]
        block = Block(arg_types=kinds)
        values: dict[SSAValue, SSAValue] = dict(zip(outer, block.args))
        for op in self.copied:
            block.add_op(op.clone(values))
        for op in self.ops:
            self._check_uses(op)
            op.detach()
            block.add_op(op)
            for inner in op.walk():
                inner.operands = [values.get(value, value) for value in inner.operands]
        kernel = KernelOp(
            [*map(current, inputs), *self.scalars],
            [*map(current, outputs), *unread],
            Region(block),
        )
        kernel.location = self.ops[0].location
        return kernel, outputs

    def erase(self) -> None:
        """Erases the ops, of which nothing is left when they ran."""
        for op in self.ops:
            self._check_uses(op)
        for op in reversed(self.ops):
            Rewriter.erase_op(op)

    def _check_uses(self, op: Operation) -> None:
        for use in (use for result in op.results for use in result.uses):
            at: Operation | None = use.operation
            while at is not None and at not in self.members:
                at = at.parent_op()
            if at is None:
                raise UnsupportedError(
                    "a value that a kernel computes is used outside of it",
                    op=op,
                    hint="store it to a buffer, and load it from there",
                )
