"""
Reduces a window along one axis after the other, so that windows share their partial results.

A window of K x K elements costs K * K operations per output. Its columns can be reduced first: the
windows of a row overlap, and read the same reduced columns. That is 2 * K operations per output.

    %r = linalg.generic {maps = [(c, h, w, y, x) -> (c, h + y, w + x),
                                 (c, h, w, y, x) -> (y, x),
                                 (c, h, w, y, x) -> (c, h, w)]} ins(%image, %window) outs(%f)
  =>
    %t = linalg.generic {maps = [(c, h, w, y) -> (c, h + y, w), (c, h, w, y) -> (y),
                                 (c, h, w, y) -> (c, h, w)]} ins(%image, %column) outs(%neutral)
    %r = linalg.generic {maps = [(c, h, w, x) -> (c, h, w + x), (c, h, w, x) -> (x),
                                 (c, h, w, x) -> (c, h, w)]} ins(%t, %row) outs(%f)

The first op reduces the outermost axis, so it reads whole vectors even if windows along the
innermost axis are more than one element apart. Both ops have the loops `c` and `h` in common and
become one kernel, in which `%t` is a tile. The pass repeats until each window has one axis.

It skips windows whose sizes are unknown, windows that overlap too little (`gain`), and bodies that
read a loop index or more than one tensor. A sum of floats gets another order, so it stays with
`fp=strict` and in types narrower than f32; a maximum does not change. A GPU keeps its windows,
because there `%t` would take shared memory. Source: van Herk (1992) and Gil and Werman (1993) split
a two-dimensional minimum in the same way before they speed up each axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerType, ModuleOp, TensorType, f32, f64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.analysis.affine_steps import linear_form
from irees.dialects.irees_target import is_strict, target_of
from irees.dialects.sizes import Size
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.targets.cpu import CPU
from irees.transforms.utils.combiners import IDEMPOTENT, combine, combiners, neutral_element
from irees.transforms.utils.orders import inline_region
from irees.transforms.utils.shapes import dim
from irees.transforms.utils.structured import element_type, iterators, maps, static_ranges
from irees.transforms.utils.tensors import TensorBuilder


@dataclass(frozen=True)
class Axis:
    """A window along dim `dim` of the image: index `stride * point + dilation * tap + offset`."""

    dim: int
    point: int
    tap: int
    stride: int


@dataclass(frozen=True)
class Windows:
    """A reduction of windows of operand `image`, by the combiner `fold`."""

    op: linalg.GenericOp
    image: int
    fold: Operation
    axes: list[Axis]
    ranges: list[int]

    @property
    def indices(self) -> tuple[AffineExpr, ...]:
        """The index of each dim of the image."""
        return maps(self.op)[self.image].results


def windows_of(op: linalg.GenericOp) -> Windows | None:
    """Matches a reduction of one tensor over windows of known size with at least two axes."""
    folds, block = combiners(op), op.body.block
    if folds is None or len(folds) != 1 or len(op.outputs) != 1 or op.attributes:
        return None
    used = [i for i in range(len(op.inputs)) if any(True for _ in block.args[i].uses)]
    if len(used) != 1 or any(isinstance(inner, linalg.IndexOp) for inner in op.walk()):
        return None
    if not all(isinstance(op.operands[i].type, TensorType) for i in (used[0], len(op.inputs))):
        return None
    axes = _axes_of(op, used[0])
    if axes is None or len(axes) < 2:
        return None
    return Windows(op, used[0], folds[0], axes, static_ranges(op))


def _axes_of(op: linalg.GenericOp, image: int) -> list[Axis] | None:
    """The windows of an image; None unless all reductions are taps and all other indices plain."""
    kinds, indices, written = iterators(op), maps(op)[image].results, maps(op)[-1].results
    loops = [d for e in indices for d in e.used_dims()]
    if sorted(loops) != list(range(len(kinds))):
        return None
    if not all(isinstance(e, AffineDimExpr) for e in written):
        return None
    axes: list[Axis] = []
    for position, expr in enumerate(indices):
        if isinstance(expr, AffineDimExpr) and kinds[expr.position] == "parallel":
            continue
        axis = _axis_of(op, position, expr)
        if axis is None:
            return None
        axes.append(axis)
    return axes


def _axis_of(op: linalg.GenericOp, position: int, expr: AffineExpr) -> Axis | None:
    """The window of an index `stride * point + dilation * tap + offset`, or None."""
    kinds, form = iterators(op), linear_form(expr)
    if form is None or len(form[0]) != 2:
        return None
    tap, point = sorted(form[0], key=lambda d: kinds[d] == "parallel")
    if kinds[tap] != "reduction" or kinds[point] != "parallel":
        return None
    if static_ranges(op)[tap] < 1 or form[0][point] < 1:
        return None
    return Axis(position, point, tap, form[0][point])


def is_exact(fold: Operation) -> bool:
    """Whether the order of a reduction does not change its result."""
    return fold.name in IDEMPOTENT or isinstance(fold.results[0].type, IntegerType)


def gain(windows: Windows) -> float:
    """Returns the estimated speed-up: cycles of the window / cycles of both steps."""
    first, *rest = windows.axes
    image = windows.op.operands[windows.image].type
    assert isinstance(image, TensorType)
    shape = image.get_shape()
    last = next((a for a in windows.axes if a.dim == len(shape) - 1), None)
    read = CPU.strided_read if last is not None and last.stride > 1 else 1.0
    taps = prod(windows.ranges[a.tap] for a in windows.axes)
    column = windows.ranges[first.tap]
    # Reduced columns per window; of unknown sizes, those between two windows.
    shared = prod(
        shape[a.dim] / max(1, windows.ranges[a.point])
        if min(shape[a.dim], windows.ranges[a.point]) >= 0
        else a.stride
        for a in rest
    )
    return taps * read / ((column + 1) * shared + taps / column * read)


def split(windows: Windows) -> linalg.GenericOp | None:
    """fold over (y, x) of image  =>  fold over x of (fold over y of image); returns the second."""
    op, b = windows.op, TensorBuilder(windows.op)
    first, block = windows.axes[0], windows.op.body.block
    image, rank = op.operands[windows.image], len(windows.indices)
    # First the columns: a loop for each dim of the image, and the tap.
    at: list[AffineExpr] = [AffineDimExpr(d) for d in range(rank)]
    renamed: list[AffineExpr] = [AffineDimExpr(0)] * len(windows.ranges)
    renamed[first.point], renamed[first.tap] = at[first.dim], AffineDimExpr(rank)
    source = list(at)
    source[first.dim] = windows.indices[first.dim].replace_dims_and_symbols(renamed, [])
    kind = element_type(op.outputs[0])
    position = next(
        i for i, e in enumerate(maps(op)[-1].results) if e == AffineDimExpr(first.point)
    )
    sizes: list[Size] = [dim(image, d, b) for d in range(rank)]
    sizes[first.dim] = dim(op.outputs[0], position, b)
    (neutral,) = b.compute(
        [],
        [b.empty(kind, sizes)],
        [AffineMap.identity(rank)],
        lambda s, _: [s.insert(neutral_element(windows.fold)).results[0]],
    )
    column = b.empty(kind, [windows.ranges[first.tap]])
    (columns,) = b.compute(
        [image, column],
        [neutral],
        [AffineMap(rank + 1, 0, tuple(m)) for m in (source, [AffineDimExpr(rank)], at)],
        lambda s, v: inline_region(
            block, [v[0 if i == windows.image else 1] for i in range(len(op.inputs))] + [v[2]], s
        ),
    )
    return _reduce_rest(windows, columns, b)


def _reduce_rest(windows: Windows, columns: SSAValue, b: TensorBuilder) -> linalg.GenericOp:
    """Replaces the op by the reduction of reduced columns over the other axes."""
    op, first = windows.op, windows.axes[0]
    loops = len(windows.ranges) - 1
    renamed = [AffineDimExpr(d - (d > first.tap)) for d in range(loops + 1)]
    source = [e.replace_dims_and_symbols(renamed, []) for e in windows.indices]
    source[first.dim] = renamed[first.point]
    taps = [a.tap for a in windows.axes[1:]]
    row = b.empty(element_type(op.outputs[0]), [windows.ranges[t] for t in taps])
    out = [e.replace_dims_and_symbols(renamed, []) for e in maps(op)[-1].results]
    sides = (source, [renamed[t] for t in taps], out)
    results = b.compute(
        [columns, row],
        [op.outputs[0]],
        [AffineMap(loops, 0, tuple(m)) for m in sides],
        lambda s, v: [s.insert(combine(windows.fold, v[2], v[0])).results[0]],
    )
    Rewriter.replace_op(op, [], results)
    rest = results[0].owner
    assert isinstance(rest, linalg.GenericOp)
    return rest


@dataclass(frozen=True)
class SplitWindowsPass(ModulePass):
    """Reduces windows along one axis after the other."""

    name = "irees-split-windows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_of(op).gpu is not None:
            return
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            self._split_all(inner, is_strict(op))

    def _split_all(self, op: linalg.GenericOp, strict: bool) -> None:
        """Splits the windows of an op until each has one axis."""
        windows = windows_of(op)
        while windows is not None:
            if not is_exact(windows.fold) and (
                strict or element_type(op.outputs[0]) not in (f32, f64)
            ):
                remark(
                    "missed", self.name, op, "another order of the sum would change its rounding"
                )
                return
            speed = gain(windows)
            if speed <= 1:
                remark(
                    "missed",
                    self.name,
                    op,
                    f"two steps take {1 / speed:.2f} of the window's cycles",
                )
                return
            if not may_rewrite(
                self.name, op, f"two steps take {1 / speed:.2f} of the window's cycles"
            ):
                return
            op = split(windows)
            windows = windows_of(op)
