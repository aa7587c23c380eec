"""
Shows that every access of a program is inside of its buffer, and guards what is not shown.

The host function is read with each kernel where it is dispatched: what a buffer's sizes are, which
of them are equal, what was asserted before. For each load, store, vector access and copy the index
is then shown to be at least 0 and, with all lanes, below the size, for all sizes that pass the
asserts. An access that is shown stays as it is. One that is not gets a condition in front:

    %v = memref.load %b[%i]  =>  %n = memref.dim %b, %c0
                                 %inside = arith.cmpi ult, %i, %n
                                 %v = scf.if %inside { yield memref.load %b[%i] }
                                      else           { yield 0 }

and a remark says so. Places that a sort counts are such: that they are a permutation is nothing
that inequalities say. The guarded access is then shown like all others, by its condition. What
each access is shown by is the certificate of the executable. What can neither be shown nor guarded
is an error: it is never run.

The certificate also counts accesses of parallel iterations that are not shown to be apart from each
other. Barriers have to be such that all threads of a workgroup come to them.

The prover is `irees.analysis.accesses`. After Besson, "Fast Reflexive Arithmetic Tactics: the
linear case and beyond" (TYPES 2006), which has the same certificates.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, cf, memref, scf, vector
from xdsl.dialects.builtin import (
    DictionaryAttr,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StringAttr,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.accesses.certificate import certificate, counts, sites_of
from irees.analysis.accesses.host import Program, read_program
from irees.analysis.accesses.uniform import divergent_barriers
from irees.analysis.accesses.views import beneath
from irees.analysis.accesses.walk import Access
from irees.dialects.flow import ExecutableOp
from irees.dialects.nvgpu import DeviceAsyncCopyOp
from irees.dialects.sizes import kept_dims
from irees.errors import InternalError
from irees.remarks import remark
from irees.transforms.utils.accesses import zero
from irees.transforms.utils.shapes import IndexBuilder, buffer_dim, mixed

NAME = "irees-verify-accesses"

GUARDED = "guarded"
"""The attribute of what a guard was put in front of."""

ROUNDS = 3
"""Where the host checks more, more is known of kernels."""

Place = tuple[SSAValue, list[SSAValue], list[int]]


def place_of(op: Operation) -> Place | None:
    """The buffer of an access, its indices and its lanes per dim; None where none are guarded."""
    if isinstance(op, memref.LoadOp | memref.StoreOp | memref.AtomicRMWOp):
        return op.memref, list(op.indices), [1] * len(op.indices)
    if isinstance(op, vector.LoadOp | vector.StoreOp):
        kind = op.result.type if isinstance(op, vector.LoadOp) else op.vector.type
        assert isinstance(kind, VectorType)
        shape = list(kind.get_shape())
        return op.base, list(op.indices), [1] * (len(op.indices) - len(shape)) + shape
    return None


def inside_of(
    buffer: SSAValue, indices: list[SSAValue], lanes: list[int], at: IndexBuilder
) -> SSAValue | None:
    """`0 <= i` and `i + lanes <= size` in all dims, as one i1."""
    found: SSAValue | None = None
    for dim, (index, count) in enumerate(zip(indices, lanes, strict=True)):
        limit = at.sub(buffer_dim(buffer, dim, at), count - 1)
        if count > 1 or isinstance(buffer.owner, memref.SubviewOp):
            # Of an empty buffer a view may have a negative size.
            limit = at.maximum(limit, 0)
        one = at.insert(arith.CmpiOp(index, at.value(limit), "ult")).results[0]
        found = one if found is None else at.insert(arith.AndIOp(found, one)).results[0]
    return found


def zeros_of(kind: Attribute) -> list[Operation]:
    """0 of a scalar or vector type, in the last op."""
    if not isinstance(kind, VectorType):
        return [zero(kind)]
    first = zero(kind.element_type)
    return [first, vector.BroadcastOp(first.results[0], kind)]


def rooted(place: Place, at: IndexBuilder) -> Place:
    """
    An access to slices of a buffer as one to the buffer itself.

    Of a buffer that is smaller than was declared a slice may be outside.
    """
    buffer, indices, lanes = place
    while isinstance(buffer.owner, memref.SubviewOp):
        view = buffer.owner
        offsets = mixed(view.static_offsets.get_values(), view.offsets)
        steps = mixed(view.static_strides.get_values(), view.strides)
        assert isinstance(view.result.type, MemRefType)
        kept = kept_dims(view.static_sizes.get_values(), view.result.type.get_shape())
        counts = [1] * len(offsets)
        for dim, index, count in zip(kept, indices, lanes, strict=True):
            offsets[dim] = at.add(offsets[dim], at.mul(index, steps[dim]))
            counts[dim] = count
        buffer, lanes = view.source, counts
        indices = [at.value(offset) for offset in offsets]
    return buffer, indices, lanes


def moved(op: Operation, place: Place, root: Place) -> Operation:
    """An access to a slice as one to the buffer, by the very indices that were looked at."""
    buffer, indices, lanes = root
    if buffer is place[0] or (max(lanes) > 1 and lanes[-1] == 1):
        return op
    before = list(op.operands)[: list(op.operands).index(place[0])]
    new = type(op).create(
        operands=[*before, buffer, *indices],
        result_types=[result.type for result in op.results],
        properties=op.properties,
        attributes=op.attributes,
    )
    new.location = op.location
    Rewriter.replace_op(op, new)
    return new


def flat_inside(op: Operation, lanes: int, at: IndexBuilder) -> SSAValue | None:
    """
    Whether an access to memory that was flattened is inside of the buffer that it is of.

    %f = reinterpret_cast (base of %b) to offset: [%o], sizes: [huge], strides: [1]
    """
    place = place_of(op)
    cast = place[0].owner if place is not None else None
    if place is None or not isinstance(cast, memref.ReinterpretCastOp) or len(place[1]) != 1:
        return None
    root = beneath(cast.source)
    if not isinstance(root.type, MemRefType) or not isinstance(root.type.layout, NoneAttr):
        return None
    (offset,) = mixed(cast.static_offsets.get_values(), cast.offsets)
    count = at.product([buffer_dim(root, d, at) for d in range(root.type.get_num_dims())])
    limit = at.maximum(at.sub(count, lanes - 1), 0)
    address = at.value(at.add(place[1][0], offset))
    return at.insert(arith.CmpiOp(address, at.value(limit), "ult")).results[0]


def guard(op: Operation) -> bool:
    """Puts a condition in front of an access; False where that cannot be done."""
    place = place_of(op)
    if place is None or not place[1] or GUARDED in op.attributes:
        return False
    at = IndexBuilder(InsertPoint.before(op))
    inside = flat_inside(op, place[2][-1], at)
    if inside is None:
        root = rooted(place, at)
        inside = inside_of(*root, at)
        op = moved(op, place, root)
        at = IndexBuilder(InsertPoint.before(op))
    assert inside is not None
    used = [result for result in op.results if result.uses]
    types = [result.type for result in used]
    then, other = Block(), Block()
    branch = scf.IfOp(inside, types, Region(then), Region(other) if types else Region())
    at.insert(branch)
    for old, new in zip(used, branch.results, strict=True):
        old.replace_all_uses_with(new)
    op.detach()
    then.add_op(op)
    then.add_op(scf.YieldOp(*used))
    if types:
        zeros = [zero for kind in types for zero in zeros_of(kind)]
        other.add_ops([*zeros, scf.YieldOp(zeros[-1].results[0])])
    op.attributes[GUARDED] = IntegerAttr.from_bool(True)
    return True


def guard_copy(copy: DeviceAsyncCopyOp) -> bool:
    """
    A copy of no elements reads nothing:

    copy %s[%i], n, %k  =>  %j = select %inside, %i, 0; copy %s[%j], n, select %inside, %k, 0
    """
    if GUARDED in copy.attributes:
        return False
    at = IndexBuilder(InsertPoint.before(copy))
    count, places = copy.dst_elements.value.data, list(copy.src_indices)
    inside = inside_of(*rooted((copy.src, places, [*[1] * (len(places) - 1), count]), at), at)
    assert inside is not None
    nothing = at.value(0)
    moved = [at.insert(arith.SelectOp(inside, i, nothing)).results[0] for i in places]
    read = copy.src_elements or at.value(count)
    read = at.insert(arith.SelectOp(inside, read, nothing)).results[0]
    new = DeviceAsyncCopyOp(copy.src, moved, copy.dst, list(copy.dst_indices), count, read)
    new.attributes |= copy.attributes | {GUARDED: IntegerAttr.from_bool(True)}
    new.properties |= {k: v for k, v in copy.properties.items() if k == "bypassL1"}
    new.location = copy.location
    Rewriter.replace_op(copy, new)
    return True


def check_sizes(view: memref.ViewOp) -> bool:
    """
    Asserts that the sizes of a part of the arena are not negative, where they are computed.

    The bytes of the arena are computed from them, as numbers without a sign.
    """
    if GUARDED in view.attributes:
        return False
    view.attributes[GUARDED] = IntegerAttr.from_bool(True)
    for size in dict.fromkeys(view.sizes):
        owner = size.owner
        place = (
            InsertPoint.at_start(owner) if isinstance(owner, Block) else InsertPoint.after(owner)
        )
        at = IndexBuilder(place)
        natural = at.insert(arith.CmpiOp(at.value(0), size, "sle")).results[0]
        at.insert(cf.AssertOp(natural, "a size of a temporary is negative"))
    return bool(view.sizes)


def keep_inside(op: Operation) -> bool:
    """Whether a check was put in front of an access."""
    if isinstance(op, DeviceAsyncCopyOp):
        return guard_copy(op)
    return check_sizes(op) if isinstance(op, memref.ViewOp) else guard(op)


def unshown(program: Program) -> dict[Operation, Access]:
    """Accesses that are not shown at one site of their kernel or more."""
    accesses = [*program.accesses, *(a for site in program.sites for a in site.accesses)]
    return {access.op: access for access in accesses if access.shown is None}


@dataclass(frozen=True)
class VerifyAccessesPass(ModulePass):
    """Each access is shown to be inside of its buffer, or guarded."""

    name = "irees-verify-accesses"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        program = read_program(op)
        left = unshown(program)
        for _ in range(ROUNDS):
            kept = [access for each, access in left.items() if keep_inside(each)]
            for access in kept:
                remark("missed", NAME, access.op, f"{access.op.name} is guarded: {access.why}")
            if not kept:
                break
            program = read_program(op)
            left = unshown(program)
        for access in left.values():
            raise InternalError(access.why, op=access.op)
        for view in program.overlapping:
            raise InternalError("a temporary has bytes that another has meanwhile", op=view)
        for kernel in program.kernels.values():
            for barrier in divergent_barriers(kernel.body.block):
                raise InternalError("some threads may not come to this barrier", op=barrier)
        for executable in [o for o in op.ops if isinstance(o, ExecutableOp)]:
            sites = sites_of(program, executable.sym_name.data)
            numbers = {kind: IntegerAttr(n, i64) for kind, n in counts(sites).items()}
            executable.attributes["accesses"] = DictionaryAttr(numbers)
            executable.attributes["certificate"] = StringAttr(certificate(program, sites))
