"""
Buffers, their views, and the bounds to prove for an access.

A view maps its elements to the *root*: the argument or allocation at the base of a chain of view
ops. Slices keep one coordinate per dim of the root, and an access must be in bounds of each dim. A
flattened view keeps the linear address only; division by the strides of the root, outermost first,
recovers coordinates that the kernel has linearized.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count as counter

from xdsl.ir import Operation, SSAValue

from irees.analysis.accesses.polynomials import ONE, ZERO, Polynomial, product
from irees.analysis.accesses.prover import STEPS, Prover, Step


@dataclass(eq=False)
class Root:
    """The memory of one argument or allocation."""

    name: str
    sizes: tuple[Polynomial, ...]
    strides: tuple[Polynomial, ...] | None = None
    """None if unknown; accesses must then be in bounds of each dim."""
    value: SSAValue | None = None
    born: int = 0
    """Number of variables of the space at the allocation."""
    stores: dict[Operation, Store] = field(default_factory=dict)
    """Stored values, for a private table of integers."""
    number: int = field(default_factory=counter().__next__)
    table: bool = False
    """Whether it is a private table of integers, only used by loads and stores."""

    @property
    def elements(self) -> Polynomial:
        """Number of elements, if they are contiguous."""
        return product(self.sizes)


@dataclass(eq=False)
class Store:
    """An integer stored to a private table, and the variables of the enclosing loops."""

    value: Polynomial
    inside: set[int]
    number: int = field(default_factory=counter().__next__)


@dataclass(frozen=True)
class Axis:
    """One dim of a view: its dim and step in the root, and its stride in elements."""

    size: Polynomial
    dim: int | None
    step: Polynomial
    stride: Polynomial | None


@dataclass(frozen=True)
class View:
    """A view of a root."""

    root: Root
    axes: tuple[Axis, ...]
    base: tuple[Polynomial, ...] | None
    """Coordinates of the first element in the root; None if only its address is known."""
    offset: Polynomial | None
    """Offset of the first element from that of the root, in elements."""

    @staticmethod
    def of(root: Root) -> View:
        """Returns the view of a whole root."""
        strides = root.strides or (None,) * len(root.sizes)
        axes = tuple(
            Axis(size, dim, ONE, stride)
            for dim, (size, stride) in enumerate(zip(root.sizes, strides, strict=True))
        )
        return View(root, axes, (ZERO,) * len(axes), ZERO)

    def substituted(self, values: dict[int, Polynomial]) -> View:
        """Returns the view and its root with variables replaced."""

        def new(p: Polynomial | None) -> Polynomial | None:
            return None if p is None else p.substituted(values)

        root = self.root
        root.sizes = tuple(size.substituted(values) for size in root.sizes)
        root.strides = root.strides and tuple(s.substituted(values) for s in root.strides)
        axes = tuple(
            Axis(a.size.substituted(values), a.dim, a.step.substituted(values), new(a.stride))
            for a in self.axes
        )
        base = self.base and tuple(b.substituted(values) for b in self.base)
        return View(root, axes, base, new(self.offset))

    @property
    def sizes(self) -> list[Polynomial]:
        """The size of each dim."""
        return [axis.size for axis in self.axes]

    def newest(self) -> int:
        """Returns the newest variable in the view's polynomials, or -1."""
        places = [*self.sizes, *(self.base or ()), *([self.offset] if self.offset else [])]
        for axis in self.axes:
            places += [axis.step, *([axis.stride] if axis.stride else [])]
        return max((p.newest() for p in places), default=-1)

    def coordinates(self, indices: Sequence[Polynomial]) -> list[Polynomial] | None:
        """Returns the coordinates of an element in the root; None if only its address is known."""
        if self.base is None:
            return None
        places = list(self.base)
        for axis, index in zip(self.axes, indices, strict=True):
            if axis.dim is None:
                if index != ZERO:
                    return None
            else:
                places[axis.dim] = places[axis.dim] + index * axis.step
        return places

    def address(self, indices: Sequence[Polynomial]) -> Polynomial | None:
        """Returns the offset of an element from the start of the root, in elements."""
        total = self.offset
        for axis, index in zip(self.axes, indices, strict=True):
            if total is None or axis.stride is None:
                return None
            total = total + index * axis.stride
        return total

    def slice(
        self,
        offsets: Sequence[Polynomial],
        sizes: Sequence[Polynomial],
        steps: Sequence[Polynomial],
        kept: Sequence[int],
    ) -> View:
        """Applies `memref.subview`."""
        axes = []
        for at in kept:
            old = self.axes[at]
            stride = None if old.stride is None else old.stride * steps[at]
            axes.append(Axis(sizes[at], old.dim, old.step * steps[at], stride))
        return View(
            self.root, tuple(axes), _tuple(self.coordinates(offsets)), self.address(offsets)
        )

    def expanded(self, groups: Sequence[Sequence[int]], sizes: Sequence[Polynomial]) -> View:
        """Applies `memref.expand_shape`."""
        axes: dict[int, Axis] = {}
        for old, group in zip(self.axes, groups, strict=True):
            inner = ONE
            for dim in reversed(group):
                stride = None if old.stride is None else old.stride * inner
                axes[dim] = Axis(sizes[dim], old.dim, old.step * inner, stride)
                inner = inner * sizes[dim]
        return replace(self, axes=tuple(axes[dim] for dim in range(len(sizes))))

    def collapsed(self, groups: Sequence[Sequence[int]]) -> View:
        """Applies `memref.collapse_shape` to contiguous dims."""
        axes, places = [], True
        for group in groups:
            old = [self.axes[dim] for dim in group]
            wide = [axis for axis in old if axis.size.constant != 1]
            if len(wide) == 1:
                axes.append(wide[0])
            elif not wide:
                last = old[-1] if old else Axis(ONE, None, ONE, ONE)
                axes.append(replace(last, size=ONE))
            else:
                places = False
                axes.append(Axis(product(a.size for a in old), None, ONE, wide[-1].stride))
        return replace(self, axes=tuple(axes), base=self.base if places else None)

    def permuted(self, order: Sequence[int]) -> View:
        """Applies `memref.transpose`."""
        return replace(self, axes=tuple(self.axes[dim] for dim in order))

    def reinterpreted(
        self,
        offset: Polynomial,
        sizes: Sequence[Polynomial],
        strides: Sequence[Polynomial],
    ) -> View:
        """Applies `memref.reinterpret_cast`, which is relative to the root, not to this view."""
        axes = tuple(Axis(n, None, ONE, s) for n, s in zip(sizes, strides, strict=True))
        return View(self.root, axes, None, offset)


def _tuple(values: list[Polynomial] | None) -> tuple[Polynomial, ...] | None:
    return None if values is None else tuple(values)


def contiguous(sizes: Sequence[Polynomial]) -> tuple[Polynomial, ...]:
    """Returns the strides of a contiguous row-major buffer."""
    strides = [ONE]
    for size in reversed(sizes[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides[: len(sizes)]))


def goals_by_dim(
    view: View, indices: Sequence[Polynomial], lanes: Sequence[Polynomial]
) -> list[Polynomial] | None:
    """Returns the bounds per dim of the root: first index >= 0, last index < size."""
    first = view.coordinates(indices)
    if first is None:
        return None
    ends = [i + n - 1 for i, n in zip(indices, lanes, strict=True)]
    last = view.coordinates(ends)
    if last is None:
        return None
    goals = []
    for begin, end, size in zip(first, last, view.root.sizes, strict=True):
        goals += [begin, size - end - 1]
    return goals


def goals_by_address(
    view: View, indices: Sequence[Polynomial], lanes: Sequence[Polynomial]
) -> list[list[Polynomial]]:
    """Returns sufficient sets of bounds for an address: by root coordinates, or linear."""
    address = view.address(indices)
    ends = [i + n - 1 for i, n in zip(indices, lanes, strict=True)]
    end = view.address(ends)
    strides, root = view.root.strides, view.root
    if address is None or end is None or strides is None:
        return []
    ways = []
    if root.elements.constant is None and len(strides) > 1:
        goals, first, last = [], address, end
        for stride, size in zip(strides, root.sizes, strict=True):
            begin, first = first.divided(stride)
            until, last = last.divided(stride)
            goals += [begin, size - until - 1]
        if first == ZERO == last:
            ways.append(goals)
    if strides == contiguous(root.sizes):
        ways.append([address, root.elements - end - 1])
    return ways


def lanes_fit(view: View, lanes: Sequence[Polynomial]) -> bool:
    """Whether the lanes of a vector access are contiguous."""
    last = len(lanes) - 1
    for dim, (axis, count) in enumerate(zip(view.axes, lanes, strict=True)):
        if count != ONE and axis.step != ONE:
            return False
        if count != ONE and dim == last and axis.stride != ONE:
            return False
    return True


def goes_forward(prover: Prover, view: View, lanes: Sequence[Polynomial]) -> bool:
    """Whether the last element of an access has the largest address."""
    moving = [axis for axis, count in zip(view.axes, lanes, strict=True) if count != ONE]
    steps = [s for axis in moving for s in (axis.step, axis.stride) if s is not None]
    return all(step == ONE or prover.holds(step, STEPS) for step in steps)


def prove_inside(
    prover: Prover,
    view: View,
    indices: Sequence[Polynomial],
    lanes: Sequence[Polynomial],
    *,
    rows: bool = False,
) -> tuple[list[Polynomial], list[Step]] | None:
    """
    Returns sufficient bounds of an access with their proofs, or None.

    With `rows`, the accessed elements need not be contiguous.
    """
    if not (goes_forward(prover, view, lanes) if rows else lanes_fit(view, lanes)):
        return None
    found = _prove(prover, view, indices, lanes)
    if found is None:
        settled = [prover.settled(index) for index in indices]
        found = None if settled == list(indices) else _prove(prover, view, settled, lanes)
    return found


def _prove(
    prover: Prover, view: View, indices: Sequence[Polynomial], lanes: Sequence[Polynomial]
) -> tuple[list[Polynomial], list[Step]] | None:
    by_dim = goals_by_dim(view, indices, lanes)
    ways = [by_dim] if by_dim is not None else goals_by_address(view, indices, lanes)
    for goals in ways:
        proofs = []
        for goal in goals:
            proof = prover.prove_by_choice(goal)
            if proof is None:
                break
            proofs.append(proof)
        else:
            return goals, proofs
    return None
