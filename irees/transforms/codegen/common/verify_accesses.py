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
from irees.errors import InternalError
from irees.remarks import remark
from irees.transforms.codegen.common._access_guards import keep_inside

NAME = "irees-verify-accesses"

ROUNDS = 3
"""Where the host checks more, more is known of kernels."""


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
