"""
Proves that every memory access of a program is in bounds, and guards the ones it cannot prove.

The pass analyses the host function, and each kernel at each of its dispatches. The host knows the
sizes of buffers, which of them are equal, and what was asserted before the dispatch. For each
load, store, vector access and copy, the pass proves 0 <= index and index + lanes <= size for all
sizes that satisfy the asserts. A proved access stays as it is. An unproved one gets a guard, and a
remark says so:

    %v = memref.load %b[%i]  =>  %n = memref.dim %b, %c0
                                 %inside = arith.cmpi ult, %i, %n
                                 %v = scf.if %inside { yield memref.load %b[%i] }
                                      else           { yield 0 }

The typical unproved access is the scatter of a counting sort: no linear fact implies that its
indices are a permutation. The guarded access is then proved like all others, with its guard as a
fact. The proofs are the certificate of the executable. An access that can neither be proved nor
guarded is an internal error, and the program does not compile.

The pass also rejects divergent barriers and live arena slots that overlap, and counts accesses that
are not proved disjoint between parallel iterations.

The prover is `irees.analysis.accesses`. Its certificates are those of Besson, "Fast Reflexive
Arithmetic Tactics: the linear case and beyond" (TYPES 2006).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from irees.analysis.accesses.certificate import certificate, counts, sites_of
from irees.analysis.accesses.host import Program, read_program
from irees.analysis.accesses.uniform import divergent_barriers
from irees.analysis.accesses.walk import Access
from irees.dialects.flow import ExecutableOp
from irees.errors import InternalError, PluginError
from irees.interfaces import model_of
from irees.remarks import remark
from irees.transforms.codegen.common.verify_accesses.access_guards import keep_inside

NAME = "irees-verify-accesses"

ROUNDS = 3
"""Maximum proof iterations: every guard added on the host may prove more kernel accesses."""


def blame(access: Access) -> InternalError | PluginError:
    """Returns the error for an access that is neither proved nor guarded."""
    # An instruction of a plug-in has no guard: the plug-in's pass must emit it in bounds.
    kind = InternalError if model_of(access.op) is None else PluginError
    return kind(access.why, op=access.op)


def unshown(program: Program) -> dict[Operation, Access]:
    """Returns the accesses that are unproved at some dispatch."""
    accesses = [*program.accesses, *(a for site in program.sites for a in site.accesses)]
    return {access.op: access for access in accesses if access.shown is None}


@dataclass(frozen=True)
class VerifyAccessesPass(ModulePass):
    """Proves all accesses in bounds, or guards them."""

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
            raise blame(access)
        for arg, operand in program.believed:
            why = f"a kernel takes {arg.type} and may be given another size by {operand.type}"
            raise InternalError(why, op=arg.owner.parent_op())
        for view in program.overlapping:
            raise InternalError("two live temporaries overlap in the arena", op=view)
        for kernel in program.kernels.values():
            for barrier in divergent_barriers(kernel.body.block):
                raise InternalError("divergent barrier: some threads may not reach it", op=barrier)
        for executable in [o for o in op.ops if isinstance(o, ExecutableOp)]:
            sites = sites_of(program, executable.sym_name.data)
            numbers = {kind: IntegerAttr(n, i64) for kind, n in counts(sites).items()}
            executable.attributes["accesses"] = DictionaryAttr(numbers)
            executable.attributes["certificate"] = StringAttr(certificate(program, sites))
