"""
Reads the host function of a program, and each kernel where it is dispatched.

Kernels know their buffers by type alone; which sizes are equal, or what an index operand is, the
host knows. So a kernel is read at each of its dispatches with the polynomials of the host for
its arguments, under what the host has asserted before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import cf, func
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue

from irees.analysis.accesses.arena import overlapping, temporaries
from irees.analysis.accesses.buffers import Axis, View
from irees.analysis.accesses.polynomials import ONE, Polynomial, product
from irees.analysis.accesses.scalars import bits_of
from irees.analysis.accesses.terms import AtLeast, Condition, Every, Some, Space, Unknown, Within
from irees.analysis.accesses.views import buffer
from irees.analysis.accesses.walk import Access, Walk
from irees.analysis.element_sizes import item_bytes
from irees.dialects.flow import ExecutableOp
from irees.dialects.stream import CmdDispatchOp
from irees.target import MOST_ELEMENTS

ALLOCATED = 1 << 60
"""An allocation ends the call where a size is negative or the product is above it."""


OUTERMOST = 2
"""How many scopes there are in the outermost block of a function."""


@dataclass
class Site:
    """A kernel at one of its dispatches."""

    kernel: str
    dispatch: CmdDispatchOp | None
    accesses: list[Access] = field(default_factory=list)


class Program(Walk):
    """The walk over all host functions of a module."""

    def __init__(self, module: ModuleOp) -> None:
        super().__init__(Space())
        self.kernels = dict(kernels_of(module))
        self.called = {o.callee.string_value() for o in module.walk() if isinstance(o, func.CallOp)}
        self.sites: list[Site] = []
        self.solved: dict[int, Polynomial] = {}
        self.bytes: dict[Operation, tuple[Polynomial, Polynomial]] = {}
        """The bytes of its arena that a view has, from and to."""
        self.overlapping: list[Operation] = []
        """Views of bytes that others use at the same time."""
        self.inside = False
        """Whether the walk is in a kernel."""
        self._read: dict[object, object] = {}
        """Kernel and what it was given => the scope in which it was read first."""

    def op(self, op: Operation) -> None:
        if isinstance(op, CmdDispatchOp):
            self.dispatch(op)
        elif isinstance(op, cf.AssertOp):
            self.asserted(self.condition(op.arg))
        elif isinstance(op, func.CallOp) and not self.inside:
            # The function is read with arguments that may be anything of their types.
            for result in op.results:
                if isinstance(result.type, MemRefType):
                    self.made(result)
        else:
            super().op(op)

    def function(self, function: func.FuncOp) -> None:
        """Reads a host function, whose arguments may be anything of their type."""
        block = function.body.block
        with self.space.assuming([]):
            for arg in block.args:
                self.argument(arg, checked=function.sym_name.data not in self.called)
            self.block(block)
            for parts in temporaries(block, self.bytes).values():
                self.overlapping += [part.op for part in overlapping(self.prover, parts)]
        self.solved.clear()

    def argument(self, arg: SSAValue, *, checked: bool = False) -> None:
        """
        A buffer that nothing is known of.

        With `checked` the runtime has looked at its sizes. Others may be empty, and the product of
        those that are not 0 may be any number.
        """
        if isinstance(arg.type, MemRefType):
            sizes = [
                self.space.fresh("dim", 0, MOST_ELEMENTS)
                if n == DYNAMIC_INDEX
                else Polynomial.number(n)
                for n in arg.type.get_shape()
            ]
            self.space.limit(product(sizes), parts=checked)
            buffer(self, arg, sizes, "argument")

    @property
    def is_outermost(self) -> bool:
        """Whether the walk is in no branch or loop of a host function."""
        return len(self.space.memories) == OUTERMOST and not self.inside

    def asserted(self, condition: Condition) -> None:
        """What a program has checked holds from here on."""
        if isinstance(condition, Every) and len(condition.parts) == 2:
            a, b = condition.parts
            if isinstance(a, AtLeast) and isinstance(b, AtLeast) and a.polynomial == -b.polynomial:
                if self.is_outermost and self._solve(a.polynomial.substituted(self.solved)):
                    return
        if isinstance(condition, Every) and Unknown not in map(type, condition.parts):
            for part in condition.parts:
                self.asserted(part)
            return
        facts = self.prover.facts_of(condition)
        self.assume(facts)
        for fact in facts if self.is_outermost else ():
            self._limit(fact)
        if isinstance(condition, Some | Within) and not facts:
            self.space.pending.append(condition)

    def assume(self, facts: Sequence[Polynomial]) -> None:
        """What holds from here to the end of the function, or of the branch that the walk is in."""
        self.space.assume(facts)
        if not self.is_outermost:
            return
        for fact in facts:
            terms = dict(fact.tightened().terms)
            constant = terms.pop((), 0)
            if len(terms) == 1:
                ((monomial, factor),) = terms.items()
                if len(monomial) == 1 and abs(factor) == 1:
                    self.space.narrow(monomial[0], factor, constant)

    def _limit(self, fact: Polynomial) -> None:
        """`c - p >= 0` limits all products in p, where they cannot be negative."""
        most = fact.terms.get((), 0)
        self.space.limit(-(fact - most), most, self.natural)

    def natural(self, number: int) -> bool:
        """Whether a variable is known to be at least 0."""
        return self.prover.holds(Polynomial.variable(number))

    def _solve(self, zero: Polynomial) -> bool:
        """Replaces the newest size of what is 0 by the others, where there is one."""
        newest = zero.newest()
        if newest < 0 or self.space.variables[newest].facts:
            return not zero.terms
        factor, rest = zero.coefficient_of(newest)
        if factor.constant not in (1, -1) or newest in rest.variables():
            return False
        value = -rest if factor.constant == 1 else rest
        update = {newest: value}
        self.solved = {v: p.substituted(update) for v, p in self.solved.items()} | update
        # What was not negative still is not.
        self.space.replace(newest, value)
        self.views = {v: tuple(w.substituted(update) for w in ws) for v, ws in self.views.items()}
        return True

    def polynomial(self, value: SSAValue) -> Polynomial | None:
        found = super().polynomial(value)
        if found is None or not self.solved:
            return found
        return found.substituted(self.solved)

    def dispatch(self, op: CmdDispatchOp) -> None:
        """Reads a kernel with the sizes and numbers that it is given here."""
        name = op.entry_point.string_value()
        kernel = self.kernels[name]
        block = kernel.body.block
        sizes: list[object] = [name]
        for arg, operand in zip(block.args, op.arguments, strict=True):
            sizes.append(self._argument(arg, operand))
        # What was known when it was read with the same sizes has to be known here.
        key, here = tuple(sizes), self.space.memories
        if not self.recording or any(scope is self._read.get(key) for scope in here):
            return
        self._read[key] = here[-1]
        site = Site(name, op)
        self.sites.append(site)
        outer, self.accesses, self.inside = self.accesses, site.accesses, True
        self.prover.begin()
        with self.space.assuming([]):
            self.block(block)
        self.accesses, self.inside = outer, False

    def _argument(self, arg: SSAValue, operand: SSAValue) -> object:
        """Binds an argument of a kernel to what it is, and returns what tells it from others."""
        if not isinstance(arg.type, MemRefType):
            bits = bits_of(arg.type)
            if bits == 1:
                self.conditions[arg] = self.condition(operand)
                return self.conditions[arg]
            if bits is None:
                return None
            self.polynomials[arg] = self.number(operand)
            return self.polynomials[arg]
        views = self.views.get(operand, ())
        known = views[0].sizes if len(views) == 1 else [None] * arg.type.get_num_dims()
        sizes = []
        for static, size in zip(arg.type.get_shape(), known, strict=True):
            if static != DYNAMIC_INDEX:
                sizes.append(Polynomial.number(static))
            elif size is not None and self.prover.fits(size):
                sizes.append(size)
            else:
                sizes.append(self.space.fresh("dim", 0, MOST_ELEMENTS))
        self.space.limit(product(sizes))
        buffer(self, arg, sizes, "argument")
        return tuple(sizes)

    def merged(self, value: SSAValue) -> bool:
        # A kernel knows the buffers that take turns; of the host's the sizes are asked for anew.
        if not self.inside:
            self.argument(value)
        return not self.inside

    def made(self, value: SSAValue) -> None:
        if self.inside:
            super().made(value)
        else:
            self.argument(value)

    def allocated(self, sizes: Sequence[Polynomial]) -> None:
        facts = [fact for size in sizes for fact in (size, -size + ALLOCATED)]
        self.assume([*facts, -product(sizes) + ALLOCATED])

    def show_room(self, op: Operation, sizes: Sequence[Polynomial]) -> None:
        result = op.results[0].type
        assert isinstance(result, MemRefType)
        start = self.number(op.operands[1])
        end = start + product(sizes) * item_bytes(result.element_type)
        self.bytes[op] = (start, end)
        for view in self.views.get(op.operands[0], ()):
            room = View(view.root, (Axis(end, 0, ONE, ONE),), view.base, view.offset)
            self.views[op.results[0]] = (room,)
            self.access(op, op.results[0], [start], [end - start], writes=True, rows=True)


def kernels_of(module: ModuleOp) -> Iterator[tuple[str, func.FuncOp]]:
    """The functions of all executables by the name that a dispatch has for them."""
    for executable in module.ops:
        if not isinstance(executable, ExecutableOp):
            continue
        modules = [o for o in executable.regions[0].block.ops if isinstance(o, ModuleOp)]
        for op in (op for inner in modules for op in inner.ops):
            if isinstance(op, func.FuncOp) and op.body.blocks:
                yield f"{executable.sym_name.data}.{op.sym_name.data}", op


def read_program(module: ModuleOp) -> Program:
    """Reads all functions of a module."""
    program = Program(module)
    for op in module.ops:
        if isinstance(op, func.FuncOp) and op.body.blocks:
            program.function(op)
    return program
