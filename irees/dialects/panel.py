"""
`panel`: the steps of a contraction's loop nest on a CPU, between tiling and vector code.

`irees-lower-contractions` writes the nest around these ops, `irees-pack-panels` lowers those that
copy a slice of an operand into a panel, and `irees-lower-micro-kernels` the one that multiplies.
IREE has `linalg.pack` and `iree_codegen.inner_tiled` on tensors. Here operands are flat buffers and
addresses are linear in the loop indices, so that a convolution packs its image without unfolding it
(implicit GEMM).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    UnitAttr,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    RangeOf,
    RangeVarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

INDEX = IndexType()

Strided = tuple[SSAValue, Sequence[SSAValue], Sequence[SSAValue]]
"""A buffer, where it is read first, and its step in each loop."""

LAYOUTS = ("plain", "streamed", "packed", "panels", "blocks")
"""How B is stored, for `panel.micro_kernel`."""

Loops = Sequence[tuple[SSAValue, SSAValue]]
"""The size and the step of each loop, the last one innermost."""


def element_of(buffer: SSAValue) -> Attribute:
    """Returns the element type of a buffer."""
    return cast("MemRefType[Attribute]", buffer.type).element_type


def verify_widening(narrow: Attribute, wide: Attribute) -> None:
    """Raises VerifyException unless values of `narrow` can be widened to `wide`, or are equal."""
    if narrow == wide:
        return
    for kind in (IntegerType, AnyFloat):
        if isinstance(narrow, kind) and isinstance(wide, kind) and narrow.bitwidth < wide.bitwidth:
            return
    raise VerifyException(f"{narrow} cannot be widened to {wide}")


def flag(value: bool) -> UnitAttr | None:
    """Returns a unit attribute, or None."""
    return UnitAttr() if value else None


def numbers(names: Sequence[str], values: Sequence[int]) -> dict[str, IntegerAttr]:
    """Returns i64 attributes by their names."""
    return {name: IntegerAttr(n, i64) for name, n in zip(names, values, strict=True)}


@irdl_op_definition
class PackRowsOp(IRDLOperation):
    """
    panel[pitch * i + k] = source[base + across * i + step * k] for i < rows, k < depth

    Elements are widened to those of the panel, integers with their sign unless `unsigned`. Each
    row is padded with zeros to whole groups of `group` elements. `bias` adds 128 to each i8, which
    makes signed elements unsigned. `lanes` elements are copied at once.
    """

    name = "panel.pack_rows"

    source = operand_def(MemRefType)
    base = operand_def(INDEX)
    rows = operand_def(INDEX)
    across = operand_def(INDEX)
    depth = operand_def(INDEX)
    step = operand_def(INDEX)
    panel = operand_def(MemRefType)
    pitch = prop_def(IntegerAttr.constr(i64))
    lanes = prop_def(IntegerAttr.constr(i64))
    group = prop_def(IntegerAttr.constr(i64))
    unsigned = opt_prop_def(UnitAttr)
    bias = opt_prop_def(UnitAttr)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$source `[` $base `]` `rows` $rows `by` $across `depth` $depth `by` $step"
        " `into` $panel attr-dict `:` type($source) `to` type($panel)"
    )

    def __init__(
        self, source: SSAValue, panel: SSAValue, indices: Sequence[SSAValue],
        shape: tuple[int, int, int], *, unsigned: bool = False, bias: bool = False,
    ):  # fmt: skip
        """`indices` are base, rows, across, depth and step; `shape` is pitch, lanes and group."""
        super().__init__(
            operands=[source, *indices, panel],
            properties={
                **numbers(("pitch", "lanes", "group"), shape),
                "unsigned": flag(unsigned),
                "bias": flag(bias),
            },
        )

    def verify_(self) -> None:
        verify_widening(element_of(self.source), element_of(self.panel))


@irdl_op_definition
class PackColumnsOp(IRDLOperation):
    """
    panel[NR * k + j] = source[base + K(row + k) + N(column + j)] for k < depth, j < NR

    NR is `vectors` times `lanes`. K and N are the addresses of an iteration of several loops, the
    last one innermost: its digits in the loops' sizes times their steps. With `valid`, columns past
    the last of `total` repeat that one, and only `valid` columns of this panel are distinct.

    Elements are widened to those of the panel, integers with their sign unless `unsigned`. With a
    `group` the panel is [K / group, NR, group], padded to whole groups with zeros (-0.0 for
    floats). `offsets` is scratch memory for the N of each column.
    """

    name = "panel.pack_columns"

    source = operand_def(MemRefType)
    base = operand_def(INDEX)
    row = operand_def(INDEX)
    depth = operand_def(INDEX)
    k_sizes = var_operand_def(INDEX)
    k_steps = var_operand_def(INDEX)
    column = operand_def(INDEX)
    valid = opt_operand_def(INDEX)
    total = opt_operand_def(INDEX)
    n_sizes = var_operand_def(INDEX)
    n_steps = var_operand_def(INDEX)
    offsets = operand_def(MemRefType.constr(INDEX))
    panel = operand_def(MemRefType)
    vectors = prop_def(IntegerAttr.constr(i64))
    lanes = prop_def(IntegerAttr.constr(i64))
    group = prop_def(IntegerAttr.constr(i64))
    unsigned = opt_prop_def(UnitAttr)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = (
        "$source `[` $base `]` `depth` $depth `from` $row `in` `[` $k_sizes `]` `by` `[` $k_steps"
        " `]` `columns` `from` $column (`valid` $valid^ `of` $total)? `in` `[` $n_sizes `]` `by`"
        " `[` $n_steps `]` `using` $offsets `into` $panel attr-dict `:` type($source) `using`"
        " type($offsets) `to` type($panel)"
    )

    def __init__(
        self, buffers: Sequence[SSAValue], place: Sequence[SSAValue],
        valid: tuple[SSAValue, SSAValue] | None, loops: tuple[Loops, Loops],
        shape: tuple[int, int, int], *, unsigned: bool = False,
    ):  # fmt: skip
        """
        `buffers` are source, panel and offsets, `place` is base, row, depth and column, `loops` are
        those of K and of N, `shape` is vectors, lanes and group.
        """
        source, panel, offsets = buffers
        base, row, depth, column = place
        k, n = (tuple(zip(*each, strict=True)) for each in loops)
        super().__init__(
            operands=[
                *(source, base, row, depth, *k, column),
                *(valid or (None, None)),
                *(*n, offsets, panel),
            ],
            properties={
                **numbers(("vectors", "lanes", "group"), shape),
                "unsigned": flag(unsigned),
            },
        )

    def verify_(self) -> None:
        verify_widening(element_of(self.source), element_of(self.panel))
        for sizes, steps in ((self.k_sizes, self.k_steps), (self.n_sizes, self.n_steps)):
            if len(sizes) != len(steps) or not sizes:
                raise VerifyException("expected a size and a step for each loop")
        if (self.valid is None) != (self.total is None):
            raise VerifyException("expected both the valid columns and their total, or neither")


@dataclass(frozen=True)
class Facts:
    """What a `panel.micro_kernel` says beside its operands; the op has the meaning of each."""

    tile: tuple[int, int]
    layout: str
    group: int = 1
    unsigned_a: bool = False
    unsigned_b: bool = False
    bias: bool = False
    blocks: int | None = None
    valid: tuple[SSAValue, SSAValue] | None = None
    following: tuple[SSAValue, SSAValue, SSAValue] | None = None


@irdl_op_definition
class MicroKernelOp(IRDLOperation):
    """
    sums[r, v] = accs[r, v] + sum over k of A[r, k] * B[k, v]: a block of C in registers

    K is several loops of `trips` iterations, the last one innermost; `a_steps` and `b_steps` are
    their steps in elements. Row r of A starts at `rows[r]`. Vector v of B starts `apart * v` after
    `column`. Lanes past the `valid` columns are not read: those of `fill` replace them.

    Elements are widened to those of C, integers with their sign unless `unsigned_a` or
    `unsigned_b`. With a `group`, a step multiplies that many adjacent elements of A with those of
    each column of B and adds the products: a dot product. `bias` adds 128 to each i8 of A, which
    makes signed elements unsigned.

    The rest guides prefetches. `tile` is the size MR x NR of a full block. `layout` is that of B:
    `plain`, `streamed` once from memory, `packed` by this nest, in `panels`, or in `blocks` of one
    vector's columns. The panel that the nest reads after this one begins at `start` of
    `following`; this is block number `block` of `blocks` that read the same panel.
    """

    name = "panel.micro_kernel"

    C: ClassVar = RangeVarConstraint("C", RangeOf(base(VectorType)))

    a = operand_def(MemRefType)
    rows = var_operand_def(INDEX)
    a_steps = var_operand_def(INDEX)
    b = operand_def(MemRefType)
    column = operand_def(INDEX)
    b_steps = var_operand_def(INDEX)
    apart = operand_def(INDEX)
    trips = var_operand_def(INDEX)
    valid = opt_operand_def(INDEX)
    fill = opt_operand_def(VectorType)
    following = opt_operand_def(MemRefType)
    start = opt_operand_def(INDEX)
    block = opt_operand_def(INDEX)
    accs = var_operand_def(C)
    sums = var_result_def(C)
    tile = prop_def(DenseArrayBase.constr(i64))
    layout = prop_def(StringAttr)
    group = prop_def(IntegerAttr.constr(i64))
    blocks = opt_prop_def(IntegerAttr.constr(i64))
    unsigned_a = opt_prop_def(UnitAttr)
    unsigned_b = opt_prop_def(UnitAttr)
    bias = opt_prop_def(UnitAttr)

    traits = traits_def(MemoryReadEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = (
        "$a `[` $rows `]` `by` `[` $a_steps `]` `,` $b `[` $column `]` `by` `[` $b_steps `]`"
        " `apart` $apart `trips` `[` $trips `]` (`valid` $valid^ `fill` $fill `:` type($fill))?"
        " (`following` $following^ `[` $start `]` `block` $block `:` type($following))?"
        " `accs` `(` $accs `)` attr-dict `:` type($a) `,` type($b) `->` type($accs)"
    )

    def __init__(
        self, a: Strided, b: Strided, apart: SSAValue, trips: Sequence[SSAValue],
        accs: Sequence[SSAValue], facts: Facts,
    ):  # fmt: skip
        """`b` has one start, that of the first vector; see `Facts` for the rest."""
        (source_a, rows, a_steps), (source_b, (column,), b_steps) = a, b
        super().__init__(
            operands=[
                *(source_a, rows, a_steps, source_b, column, b_steps, apart, trips),
                *(facts.valid or (None, None)),
                *(facts.following or (None, None, None)),
                accs,
            ],
            result_types=[[acc.type for acc in accs]],
            properties={
                "tile": DenseArrayBase.from_list(i64, facts.tile),
                "layout": StringAttr(facts.layout),
                "group": IntegerAttr(facts.group, i64),
                "blocks": None if facts.blocks is None else IntegerAttr(facts.blocks, i64),
                "unsigned_a": flag(facts.unsigned_a),
                "unsigned_b": flag(facts.unsigned_b),
                "bias": flag(facts.bias),
            },
        )

    @property
    def vectors(self) -> int:
        """Vectors in a row of the block."""
        return len(self.accs) // len(self.rows)

    def verify_(self) -> None:
        wide = {cast("VectorType[Attribute]", acc.type) for acc in self.accs}
        if len(wide) != 1 or not self.rows or len(self.accs) % len(self.rows):
            raise VerifyException("expected as many equal vectors for each row")
        if {len(self.a_steps), len(self.b_steps)} != {len(self.trips)} or not self.trips:
            raise VerifyException("expected a step in A and in B for each loop")
        if self.layout.data not in LAYOUTS:
            raise VerifyException(f"layout is one of {', '.join(LAYOUTS)}")
        if (self.valid is None) != (self.fill is None):
            raise VerifyException("expected both the valid columns and their fill, or neither")
        if len({x is None for x in (self.following, self.start, self.block)}) != 1:
            raise VerifyException("expected a buffer, a start and a block, or none of them")
        for narrow in (self.a, self.b):
            verify_widening(element_of(narrow), next(iter(wide)).element_type)


Panel = Dialect("panel", [PackRowsOp, PackColumnsOp, MicroKernelOp])
