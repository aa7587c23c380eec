"""
Walks the host functions of a program, and each kernel at its dispatches.

A kernel knows only the types of its arguments; the host knows which sizes are equal and the values
of index operands. So the walk visits a kernel at each of its dispatches, with the host's
polynomials bound to its arguments, under the asserts that precede the dispatch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import cf, func
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue

from irees.analysis.accesses import scalars
from irees.analysis.accesses.arena import overlapping, temporaries
from irees.analysis.accesses.buffers import Axis, View
from irees.analysis.accesses.polynomials import ONE, Polynomial, product
from irees.analysis.accesses.prover import STEPS
from irees.analysis.accesses.terms import AtLeast, Condition, Every, Some, Space, Unknown, Within
from irees.analysis.accesses.views import buffer
from irees.analysis.accesses.walk import Access, Walk
from irees.analysis.element_sizes import item_bytes
from irees.dialects.flow import ExecutableOp
from irees.dialects.stream import CmdDispatchOp
from irees.target import MOST_ELEMENTS

ALLOCATED = 1 << 60
"""Maximum allocation in bytes; the runtime rejects larger and negative sizes."""


OUTERMOST = 2
"""Depth of the scope stack in the entry block of a function."""


@dataclass
class Site:
    """One dispatch of a kernel."""

    kernel: str
    dispatch: CmdDispatchOp | None
    accesses: list[Access] = field(default_factory=list)


def _zero(condition: Condition) -> Polynomial | None:
    """Returns p if the condition is an equation `p >= 0 and -p >= 0`."""
    match condition:
        case Every((AtLeast(p), AtLeast(q))) if p == -q:
            return p
        case _:
            return None


class Program(Walk):
    """Walks all host functions of a module, and each kernel at its dispatches."""

    def __init__(self, module: ModuleOp) -> None:
        super().__init__(Space())
        self.kernels = dict(kernels_of(module))
        self.called = {o.callee.string_value() for o in module.walk() if isinstance(o, func.CallOp)}
        self.sites: list[Site] = []
        self.solved: dict[int, Polynomial] = {}
        self.bytes: dict[Operation, tuple[Polynomial, Polynomial]] = {}
        """Byte range of each view in its arena."""
        self.overlapping: list[Operation] = []
        """Views that overlap another live view."""
        self.believed: list[tuple[SSAValue, SSAValue]] = []
        """Kernel arguments with a static dim, and dispatch operands not proved to match it."""
        self.inside = False
        """Whether the current op is in a kernel."""
        self._read: dict[object, object] = {}
        """Kernel and arguments => scope of its first visit."""

    def op(self, op: Operation) -> None:
        if isinstance(op, CmdDispatchOp):
            self.dispatch(op)
        elif isinstance(op, cf.AssertOp):
            self.check(op)
        elif isinstance(op, func.CallOp) and not self.inside:
            # The callee is walked once, with unknown arguments.
            for result in op.results:
                if isinstance(result.type, MemRefType):
                    self.made(result)
        else:
            super().op(op)

    def function(self, function: func.FuncOp) -> None:
        """Walks a host function with arguments of unknown dynamic sizes."""
        block = function.body.block
        with self.space.assuming([]):
            for arg in block.args:
                self.argument(arg, checked=function.sym_name.data not in self.called)
            self.block(block)
            for parts in temporaries(block, self.bytes).values():
                self.overlapping += [part.op for part in overlapping(parts)]
        self.solved.clear()

    def argument(self, arg: SSAValue, *, checked: bool = False) -> None:
        """
        Binds a buffer of unknown dynamic sizes.

        With `checked`, the runtime has bounded the product of its nonzero sizes. Otherwise only the
        product of all sizes is bounded.
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
        """Whether the current op is in the entry block of a host function."""
        return len(self.space.memories) == OUTERMOST and not self.inside

    def check(self, op: cf.AssertOp) -> None:
        """
        cf.assert

        If the operands may have wrapped, the condition gives no facts about their polynomials. The
        operands are then replaced by fresh variables for the machine values that were compared.
        """
        self.asserted(self.condition(op.arg))
        if not self.prover.facts_of(self.condition(op.arg)):
            self.as_machine_compares(op.arg)
            self.asserted(self.condition(op.arg))

    def asserted(self, condition: Condition) -> None:
        """Assumes an asserted condition."""
        if self.is_outermost and (zero := _zero(condition)) is not None:
            if self._solve(zero.substituted(self.solved)):
                return
        if isinstance(condition, Every) and Unknown not in map(type, condition.parts):
            for part in condition.parts:
                self.asserted(part)
            return
        facts = self.prover.facts_of(condition)
        facts += [product for fact in facts for product in self._products(fact)]
        self.assume(facts)
        for fact in facts if self.is_outermost else ():
            self._limit(fact)
        if isinstance(condition, Some | Within) and not facts:
            self.space.pending.append(condition)

    def assume(self, facts: Sequence[Polynomial]) -> None:
        """Assumes facts up to the end of the enclosing scope."""
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
        """Bounds the nonnegative products in p, given `c - p >= 0`."""
        most = fact.terms.get((), 0)
        self.space.limit(-(fact - most), most, self.natural)

    def _products(self, fact: Polynomial) -> list[Polynomial]:
        """x <= n floordiv max(d, 1)  =>  x * d <= n, for natural x"""
        quotient = self.space.variables[fact.newest()] if fact.newest() >= 0 else None
        x = Polynomial.variable(fact.newest()) - fact
        if quotient is None or not isinstance(quotient.term, tuple) or quotient.term[0] != "div":
            return []
        _, whole, divisor, _ = quotient.term
        if not isinstance(divisor, Polynomial) or divisor.single is None:
            return []
        if fact.newest() in x.variables() or not self.prover.holds(x):
            return []
        most = self.space.newest_of(divisor).term
        sides = most[1:] if isinstance(most, tuple) and most[0] == "max" else (divisor,)
        return [whole - x * side for side in sides if side.constant is None]

    def natural(self, number: int) -> bool:
        """Whether a variable is known to be >= 0."""
        return self.prover.holds(Polynomial.variable(number))

    def _solve(self, zero: Polynomial) -> bool:
        """Solves `zero = 0` for its newest size and substitutes it; returns whether it could."""
        newest = zero.newest()
        if newest < 0 or self.space.variables[newest].facts:
            return not zero.terms
        factor, rest = zero.coefficient_of(newest)
        if factor.constant not in (1, -1) or newest in rest.variables():
            return False
        value = -rest if factor.constant == 1 else rest
        update = {newest: value}
        self.solved = {v: p.substituted(update) for v, p in self.solved.items()} | update
        # `replace` keeps value >= 0, since sizes are nonnegative.
        self.space.replace(newest, value)
        self.views = {v: tuple(w.substituted(update) for w in ws) for v, ws in self.views.items()}
        return True

    def polynomial(self, value: SSAValue) -> Polynomial | None:
        found = super().polynomial(value)
        if found is None or not self.solved:
            return found
        return found.substituted(self.solved)

    def dispatch(self, op: CmdDispatchOp) -> None:
        """Walks a kernel with the arguments of one dispatch."""
        name = op.entry_point.string_value()
        kernel = self.kernels[name]
        block = kernel.body.block
        sizes: list[object] = [name]
        first: dict[SSAValue, SSAValue] = {}
        for arg, operand in zip(block.args, op.arguments, strict=True):
            sizes.append(self._argument(arg, operand))
            same = first.setdefault(operand, arg)
            if same is not arg and isinstance(arg.type, MemRefType):
                # Arguments bound to one buffer alias.
                self.views[arg] = self.views[same]
                sizes.append(same.name_hint or str(same.index))
        # Skips the kernel if an enclosing scope has walked it with the same arguments.
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
        """Binds a kernel argument to its operand; returns a key for it."""
        if not isinstance(arg.type, MemRefType):
            bits = scalars.bits_of(arg.type)
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
        for dim, (static, size) in enumerate(zip(arg.type.get_shape(), known, strict=True)):
            if static != DYNAMIC_INDEX:
                sizes.append(Polynomial.number(static))
                self.expect(arg, operand, dim, size)
            elif size is not None and self.prover.fits(size):
                sizes.append(size)
            else:
                sizes.append(self.space.fresh("dim", 0, MOST_ELEMENTS))
        self.space.limit(product(sizes))
        buffer(self, arg, sizes, "argument")
        return tuple(sizes)

    def expect(self, arg: SSAValue, operand: SSAValue, dim: int, size: Polynomial | None) -> None:
        """Proves that an operand's dim equals the static dim of the kernel argument."""
        assert isinstance(arg.type, MemRefType)
        assert isinstance(operand.type, MemRefType)
        most, given = arg.type.get_shape()[dim], operand.type.get_shape()[dim]
        if given == most or not self.recording:
            return
        differences = () if size is None else (size - most, -size + most)
        if size is None or not all(self.prover.holds(p, STEPS) for p in differences):
            self.believed.append((arg, operand))

    def merged(self, value: SSAValue) -> bool:
        # Kernels keep all possible views. On the host, the merged buffer becomes a new root.
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
        # A product of natural differences, such as (n - n mod 3) m, is not natural by its terms.
        self.assume([*facts, product(sizes), -product(sizes) + ALLOCATED])

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
    """Yields the functions of all executables with the symbols that dispatches use."""
    for executable in module.ops:
        if not isinstance(executable, ExecutableOp):
            continue
        modules = [o for o in executable.regions[0].block.ops if isinstance(o, ModuleOp)]
        for op in (op for inner in modules for op in inner.ops):
            if isinstance(op, func.FuncOp) and op.body.blocks:
                yield f"{executable.sym_name.data}.{op.sym_name.data}", op


def read_program(module: ModuleOp) -> Program:
    """Analyzes a module."""
    program = Program(module)
    for op in module.ops:
        if isinstance(op, func.FuncOp) and op.body.blocks:
            program.function(op)
    return program
