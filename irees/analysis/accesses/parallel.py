"""
Proves that no iteration of a parallel loop writes an element that another iteration accesses.

An iteration *owns* an element if the element's coordinates determine the iteration. A coordinate

    C = a * v + K + r,    0 <= r <= a - lanes,

with loop-invariant K determines v. Iterations are disjoint on a buffer if all its accesses
determine the induction variables by the same equations: two accesses to one element then belong to
one iteration. v may also be a quotient or remainder of an induction variable; its digits together
determine it. K may use variables determined before. Buffers allocated in an iteration are private.

This covers unordered iterations: loops over CPU threads and over workgroups. Loops over the threads
of a workgroup are synchronized by barriers and are not checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from irees.analysis.accesses.buffers import Root, View, contiguous
from irees.analysis.accesses.polynomials import ONE, Polynomial
from irees.analysis.accesses.views import VIEWS, beneath

if TYPE_CHECKING:
    from irees.analysis.accesses.walk import Access, Walk


STEPS = 60
"""Step limit of the prover for one bound."""

READS = frozenset(VIEWS) | frozenset(
    """
    memref.load vector.load nvgpu.ldmatrix nvgpu.warpgroup.generate.descriptor memref.prefetch
    nvgpu.tma.create.descriptor
    """.split()
)
"""Ops that write to none of their memref operands."""


@dataclass(frozen=True)
class Part:
    """One variable of an address: its stride in elements, and its offset."""

    variable: int
    step: Polynomial
    start: Polynomial


@dataclass(frozen=True)
class Place:
    """One coordinate of an address: its stride in elements, and the extent of the access."""

    value: Polynomial
    stride: Polynomial
    count: Polynomial


Owner = tuple[Part, ...]


@dataclass(frozen=True)
class Touch:
    """One access inside a parallel loop."""

    access: Access
    root: Root
    writes: bool
    owner: Owner | None


@dataclass(eq=False)
class Parallel:
    """A parallel loop around the current op."""

    op: Operation
    variables: tuple[int, ...]
    """Induction variables with more than one value."""
    born: int
    """Number of variables of the space when the loop was entered."""
    written: frozenset[int]
    """Numbers of the roots that the body may write."""
    touches: list[Touch] = field(default_factory=list)
    shifts: dict[object, list[int]] = field(default_factory=dict)
    """Variable, stride and start => constant offsets that accesses have used so far."""


def written_by(walk: Walk, op: Operation) -> frozenset[int]:
    """Returns the numbers of the roots that ops nested in `op` may write."""
    found: set[SSAValue] = set()
    for inner in op.walk():
        if inner.name not in READS:
            found.update(beneath(o) for o in inner.operands if isinstance(o.type, MemRefType))
    # A buffer without a view yet is allocated inside, or an inner loop has it as an operand too.
    return frozenset(view.root.number for value in found for view in walk.views.get(value, ()))


def places(
    walk: Walk, view: View, indices: Sequence[Polynomial], lanes: Sequence[Polynomial]
) -> list[Place]:
    """
    Returns coordinates of an access that its address determines uniquely, or none.

    All coordinates but the first must be in bounds of their dim. If only the linear address is
    known, splits it by the strides, and merges inner dims until the coordinates are in bounds.
    """
    strides, sizes = view.root.strides, view.root.sizes
    if strides is None:
        return []
    found = view.coordinates(indices)
    if found is not None:
        counts = [ONE] * len(found)
        for axis, count in zip(view.axes, lanes, strict=True):
            if axis.dim is not None and count != ONE:
                counts[axis.dim] = count
        return list(map(Place, found, strides, counts))
    address = view.address(indices)
    if address is None or strides != contiguous(sizes):
        return []
    count = lanes[-1] if lanes else ONE
    for kept in range(len(strides), 0, -1):
        result = _divided(address, strides[: kept - 1], count)
        if all(_is_inside(walk, *each) for each in zip(result[1:], strides, strict=False)):
            return result
    return []


def _divided(address: Polynomial, strides: Sequence[Polynomial], count: Polynomial) -> list[Place]:
    """Splits an address into coordinates by the given strides; returns them and the remainder."""
    result, rest = [], address
    for stride in strides:
        value, rest = rest.divided(stride)
        result.append(Place(value, stride, ONE))
    return [*result, Place(rest, ONE, count)]


def _is_inside(walk: Walk, place: Place, outer: Polynomial) -> bool:
    """Whether a coordinate stays below the stride of the next outer one."""
    goals = (place.value, outer - (place.value + place.count - 1) * place.stride - 1)
    return all(walk.prover.holds(goal, STEPS) for goal in goals)


def touch(walk: Walk, access: Access, view: View) -> None:
    """Records an access in every enclosing parallel loop."""
    for loop in walk.parallel:
        if not loop.variables or view.root.born > loop.born:
            continue
        if view.root.number not in loop.written:
            continue
        owner = owner_of(walk, loop, view, access.indices, access.lanes)
        loop.touches.append(Touch(access, view.root, access.writes, owner))


def owner_of(
    walk: Walk,
    loop: Parallel,
    view: View,
    indices: Sequence[Polynomial],
    lanes: Sequence[Polynomial],
) -> Owner | None:
    """Returns how the coordinates determine the induction variables, or None if they do not."""
    coordinates = places(walk, view, indices, lanes)
    known: set[int] = set()
    parts: list[Part] = []
    while not known.issuperset(loop.variables):
        part = _next_part(walk, loop, coordinates, known)
        if part is None:
            return None
        known.add(part.variable)
        parts.append(part)
    return tuple(sorted(parts, key=lambda part: part.variable))


def _next_part(
    walk: Walk, loop: Parallel, coordinates: Sequence[Place], known: set[int]
) -> Part | None:
    """Picks a coordinate that determines another variable, preferring induction variables."""
    found = []
    for at, place in enumerate(coordinates):
        found += [(v not in loop.variables, at, -v) for v in place.value.variables() - known]
    for _, at, minus in sorted(found):
        if -minus >= loop.born and _is_of(walk, loop, -minus):
            part = _part(walk, loop, coordinates[at], -minus, known)
            if part is not None:
                return part
    return None


def _part(walk: Walk, loop: Parallel, place: Place, number: int, known: set[int]) -> Part | None:
    """Returns how a coordinate determines a variable, given the `known` ones, or None."""
    step, rest = place.value.coefficient_of(number)
    if number in rest.variables() or any(v >= loop.born for v in step.variables()):
        return None
    fixed = (m for m in rest.terms if m and all(v < loop.born or v in known for v in m))
    start = Polynomial({m: rest.terms[m] for m in fixed})
    inner = rest - start
    apart = step if walk.space.is_nonnegative(step) else -step
    shifts = loop.shifts.setdefault((number, step, start), [])
    # Tries the offsets of earlier accesses first, so that equal owners compare equal.
    for shift in dict.fromkeys((*shifts, inner.terms.get((), 0), 0)):
        within = inner - shift
        goals = (within, apart - place.count - within)
        if all(walk.prover.holds(goal, STEPS) for goal in goals):
            if shift not in shifts:
                shifts.append(shift)
            return Part(number, step * place.stride, (start + shift) * place.stride)
    return None


def _is_of(walk: Walk, loop: Parallel, number: int) -> bool:
    """Whether a variable is an induction variable of the loop or a function of those alone."""
    if number in loop.variables:
        return True
    variable = walk.space.variables[number]
    if number < loop.born or not variable.is_defined:
        return number < loop.born
    return all(_is_of(walk, loop, v) for v in walk.space.defined_by(number) if v < number)


def finish(loop: Parallel) -> None:
    """Marks accesses that are not proved disjoint from those of other iterations."""
    groups: dict[int, list[Touch]] = {}
    for each in loop.touches:
        groups.setdefault(each.root.number, []).append(each)
    for group in groups.values():
        if not any(each.writes for each in group):
            continue
        owners = {each.owner for each in group}
        for each in group:
            each.access.apart = each.access.apart and len(owners) == 1 and None not in owners
