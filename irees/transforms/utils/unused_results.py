"""
Erases unused operands and results, and generics without iterations.

Patterns of `canonicalize` and of `irees-erase-unused-results`. MLIR:
`EraseUnusedOperandsAndResults`; IREE: `RemoveUnusedSortOpResults`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.traits import is_side_effect_free

from irees.dialects import iree_linalg_ext as ext
from irees.transforms.utils.structured import generic, iterators, maps, static_ranges


def erase_dead_code(block: Block, erase: Callable[[Operation], None]) -> None:
    """Erases side-effect-free ops without uses in a block, last to first."""
    for op in list(block.ops)[::-1]:
        if op.results and not any(r.uses for r in op.results) and is_side_effect_free(op):
            erase(op)


def only_feeds_itself(
    argument: SSAValue, yielded: SSAValue, position: int, terminator: Operation
) -> bool:
    """Whether an accumulator contributes only to its own yielded value."""
    reached: set[Operation] = set()
    stack = [argument]
    while stack:
        value = stack.pop()
        for use in value.uses:
            if use.operation is terminator:
                if use.index != position:
                    return False
                continue
            if use.operation in reached:
                continue
            reached.add(use.operation)
            if not is_side_effect_free(use.operation):
                return False
            stack += use.operation.results
    return True


def bounds_every_loop(op: linalg.GenericOp, kept: Sequence[AffineMap]) -> bool:
    """Whether these maps determine the trip count of every loop."""
    results = tuple(e for m in kept for e in m.results)
    return AffineMap(len(iterators(op)), 0, results).inverse_permutation() is not None


def keep_results(op: linalg.GenericOp, keep: list[int], rewriter: PatternRewriter) -> None:
    """Rebuilds a generic with only these outputs; the others have no uses, also in the body."""
    count = len(op.inputs)
    indexing, block = maps(op), op.body.block
    terminator = block.last_op
    assert terminator is not None
    yielded = linalg.YieldOp(*[terminator.operands[i] for i in keep])
    rewriter.replace(terminator, yielded)
    for _ in range(len(list(block.ops))):
        erase_dead_code(block, rewriter.erase)
    for i in reversed(range(len(op.res))):
        if i not in keep:
            rewriter.erase_block_argument(block.args[count + i])
    new = generic(
        op.inputs,
        [op.outputs[i] for i in keep],
        [*indexing[:count], *(indexing[count + i] for i in keep)],
        iterators(op),
        rewriter.move_region_contents_to_new_regions(op.body),
    )
    new.attributes.update(op.attributes)
    new.location = op.location
    replacements: list[SSAValue | None] = [None] * len(op.res)
    for position, i in enumerate(keep):
        replacements[i] = new.res[position]
    rewriter.replace(op, new, replacements)


class EraseUnusedGenericResults(RewritePattern):
    """generic -> (used, unused)  =>  generic -> used"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: linalg.GenericOp, rewriter: PatternRewriter, /) -> None:
        count, block = len(op.inputs), op.body.block
        terminator = block.last_op
        assert terminator is not None
        keep = [
            i
            for i, result in enumerate(op.res)
            if result.uses
            or not only_feeds_itself(block.args[count + i], terminator.operands[i], i, terminator)
        ]
        if len(keep) == len(op.res) or not keep:
            return
        indexing = maps(op)
        if not bounds_every_loop(op, [*indexing[:count], *(indexing[count + i] for i in keep)]):
            return
        keep_results(op, keep, rewriter)


class MergeEqualGenericResults(RewritePattern):
    """generic outs(%o, %o) -> (x, x)  =>  generic outs(%o) -> x, used for both"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: linalg.GenericOp, rewriter: PatternRewriter, /) -> None:
        count, block, indexing = len(op.inputs), op.body.block, maps(op)
        terminator = block.last_op
        assert terminator is not None
        first: dict[tuple[object, ...], int] = {}
        for i, result in enumerate(op.res):
            if block.args[count + i].uses:
                continue
            key = (op.outputs[i], str(indexing[count + i]), terminator.operands[i])
            if key in first and result.uses:
                rewriter.replace_all_uses_with(result, op.res[first[key]])
                return
            first.setdefault(key, i)


def needed_inputs(op: linalg.GenericOp) -> list[int]:
    """Returns the inputs of a generic that are read or bound a loop, without duplicates."""
    indexing, block = maps(op), op.body.block
    first: set[tuple[object, ...]] = set()
    keep: list[int] = []
    for i, value in enumerate(op.inputs):
        key = (value, str(indexing[i]))
        if key in first:
            continue
        rest = [m for k, m in enumerate(indexing) if k != i and (k > i or k in keep)]
        if not block.args[i].uses and bounds_every_loop(op, rest):
            continue
        first.add(key)
        keep.append(i)
    return keep


def without_unused_inputs(op: linalg.GenericOp) -> linalg.GenericOp | None:
    """
    generic ins(%read, %unread, %read)  =>  generic ins(%read)

    Returns the new op, not inserted, with the body of the old op; None if all inputs are needed.
    """
    indexing, block, keep = maps(op), op.body.block, needed_inputs(op)
    if len(keep) == len(op.inputs):
        return None
    first = {(op.inputs[i], str(indexing[i])): i for i in keep}
    for i in reversed(range(len(op.inputs))):
        if i in keep:
            continue
        twin = first.get((op.inputs[i], str(indexing[i])))
        if twin is not None:
            block.args[i].replace_all_uses_with(block.args[twin])
        block.erase_arg(block.args[i])
    new = generic(
        [op.inputs[i] for i in keep],
        op.outputs,
        [*(indexing[i] for i in keep), *indexing[len(op.inputs) :]],
        iterators(op),
        op.detach_region(op.body),
    )
    new.attributes.update(op.attributes)
    new.location = op.location
    return new


class EraseUnusedGenericInputs(RewritePattern):
    """generic ins(%read, %unread, %read)  =>  generic ins(%read)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: linalg.GenericOp, rewriter: PatternRewriter, /) -> None:
        new = without_unused_inputs(op)
        if new is not None:
            rewriter.replace(op, new)


class EraseUnusedSortOperands(RewritePattern):
    """sort outs(keys, payload)  =>  sort outs(keys), if the payload result is unused"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.SortOp, rewriter: PatternRewriter, /) -> None:
        if not op.results:
            return
        # Uses in dead code must not count as comparisons.
        erase_dead_code(op.body.block, rewriter.erase)
        args = op.body.block.args
        keep = [
            i
            for i, result in enumerate(op.results)
            if result.uses or args[2 * i].uses or args[2 * i + 1].uses
        ]
        if len(keep) == len(op.results) or not any(r.uses for r in op.results):
            return
        for i in reversed(range(len(op.results))):
            if i not in keep:
                rewriter.erase_block_argument(args[2 * i + 1])
                rewriter.erase_block_argument(args[2 * i])
        body = rewriter.move_region_contents_to_new_regions(op.body)
        new = _sort_of(op, keep, body)
        replacements: list[SSAValue | None] = [None] * len(op.results)
        for position, i in enumerate(keep):
            replacements[i] = new.results[position]
        rewriter.replace(op, new, replacements)


def _sort_of(op: ext.SortOp, keep: Sequence[int], body: Region) -> ext.SortOp:
    """Returns a sort of some operands of a sort."""
    sources = [op.sources[i] for i in keep] if op.inputs else []
    inputs = [source for source in sources if source is not None]
    positions = [number for number, source in enumerate(sources) if source is None]
    properties: dict[str, Attribute] = {"dimension": op.dimension}
    if positions:
        properties["positions"] = DenseArrayBase.from_list(i64, positions)
    new = ext.SortOp.of(inputs, [op.outputs[i] for i in keep], properties, body)
    new.location = op.location
    return new


class EraseUnusedTopkIndices(RewritePattern):
    """topk_v2 -> (values, unused)  =>  topk_v2 -> values"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.TopkV2Op, rewriter: PatternRewriter, /) -> None:
        if len(op.results) != 2 or op.results[1].uses or not op.results[0].uses:
            return
        body = rewriter.move_region_contents_to_new_regions(op.body)
        properties = {k: v for k, v in op.properties.items() if k != "operandSegmentSizes"}
        new = ext.TopkV2Op.of([op.values], [op.output_values], properties, body)
        new.location = op.location
        rewriter.replace(op, new, [new.results[0], None])


class FoldEmptyGeneric(RewritePattern):
    """generic with a loop of no iterations  =>  its inits"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: linalg.GenericOp, rewriter: PatternRewriter, /) -> None:
        if op.res and 0 in static_ranges(op):
            rewriter.replace(op, [], list(op.outputs))


PATTERNS: dict[str, tuple[RewritePattern, ...]] = {
    linalg.GenericOp.name: (
        FoldEmptyGeneric(),
        EraseUnusedGenericResults(),
        MergeEqualGenericResults(),
        EraseUnusedGenericInputs(),
    ),
    ext.SortOp.name: (EraseUnusedSortOperands(),),
    ext.TopkV2Op.name: (EraseUnusedTopkIndices(),),
}
