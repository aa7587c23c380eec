"""
Faults of code generation and of the prover that certificates show, without a run of a kernel.

The first are those of a study of what accesses can go wrong; a program whose accesses are all shown
has one that is guarded, that meets another, or that is refused.
"""

from __future__ import annotations

from mutant import Mutant

VERIFY = "tests/transforms/codegen/common/test_verify_accesses.py::"


def shown(name: str, target: str = "cpu:x86-64-v3") -> tuple[str, ...]:
    """The test that all accesses of a program are shown."""
    return (f"{VERIFY}test_every_access_is_shown[{name}-{target}]",)


PROVER = ("tests/analysis/test_accesses.py",)
ACCESSES = "irees/analysis/accesses/"
COMMON = "irees/transforms/codegen/common/"
CPU = "irees/transforms/codegen/cpu/"
GPU = "irees/transforms/codegen/gpu/"

MUTANTS = (
    Mutant(
        "A01",
        "the last tile is as large as all others",
        COMMON + "tile_and_distribute.py",
        "size = inside.minimum(tile, inside.sub(extent, offset))",
        "size = tile",
        shown("matmul rests"),
    ),
    Mutant(
        "A02",
        "there is a workgroup too many",
        COMMON + "tile_and_distribute.py",
        "counts = [outside.ceildiv(extent, tile) for _, tile, extent in tiled] or [1]",
        "counts = [outside.add(outside.ceildiv(e, t), 1) for _, t, e in tiled] or [1]",
        shown("matmul static"),
    ),
    Mutant(
        "A03",
        "tiles overlap by one",
        COMMON + "tile_and_distribute.py",
        "offset = inside.mul(iv, tile)",
        "offset = inside.mul(iv, inside.sub(tile, 1))",
        shown("matmul static"),
    ),
    Mutant(
        "A04",
        "the rest of a row goes on past its end",
        CPU + "_vector_nest.py",
        "            return\n        body, iv, inner = for_loop(at, main, size, 1)",
        "            return\n        body, iv, inner = for_loop(at, main, at.add(size, 1), 1)",
        shown("matmul large"),
    ),
    Mutant(
        "A05",
        "whole vectors are counted up",
        CPU + "_vector_nest.py",
        "main = at.mul(at.floordiv(size, self.lanes), self.lanes)",
        "main = at.mul(at.ceildiv(size, self.lanes), self.lanes)",
        shown("matmul rests"),
    ),
    Mutant(
        "A07",
        "the last slice of a sum is as deep as all others",
        CPU + "_contraction_nest.py",
        "self._slice(ivs, k0, deep if whole else b.minimum(deep, b.sub(size, k0)), None, b)",
        "self._slice(ivs, k0, deep, None, b)",
        shown("matmul dynamic"),
    ),
    Mutant(
        "A08",
        "the last columns are as many as all others",
        CPU + "_contraction_nest.py",
        "last = Columns(main, plan.block.vectors, rest)",
        "last = Columns(main, plan.block.vectors, None)",
        shown("matmul dynamic"),
    ),
    Mutant(
        "A09",
        "a temporary of dynamic size begins where the one before does",
        "irees/transforms/stream/plan_arena.py",
        "start = builder.add(start, padded)",
        "start = padded",
        shown("convolution dynamic"),
    ),
    Mutant(
        "A10",
        "two temporaries that are live share a line",
        "irees/transforms/stream/plan_arena.py",
        "offsets[number] = max(offsets[number], high)",
        "offsets[number] = max(offsets[number], high - 64)",
        shown("topk"),
    ),
    Mutant(
        "A11",
        "a negative place of a scatter is inside",
        COMMON + "_accumulating.py",
        'inside = compare(index, buffer_dim(target, dim, b), "ult", b)',
        'inside = compare(index, buffer_dim(target, dim, b), "slt", b)',
        shown("scatter"),
    ),
    Mutant(
        "A12",
        "the last run of a merge is as long as all others",
        COMMON + "_sorting.py",
        "high = c.minimum(c.add(low, double), size)",
        "high = c.add(low, double)",
        shown("sort"),
    ),
    Mutant(
        "A13",
        "what is past the end of a tile is fetched",
        GPU + "_contraction.py",
        "return at.minimum(index, at.sub(count, width))",
        "return index",
        shown("matmul rests", "cuda:sm_80"),
    ),
    Mutant(
        "A16",
        "a column of a panel is not that of the matrix",
        CPU + "_contraction_packing.py",
        "column = b.minimum(column, b.sub(plan.size_n, 1))",
        "pass",
        shown("matmul rests"),
    ),
    Mutant(
        "A17",
        "what is assumed is not asserted",
        "irees/transforms/global_opt/insert_shape_checks.py",
        "check_assumption(inner)",
        "pass",
        ("filecheck/transforms/global_opt/insert_shape_checks_issue_30.mlir",),
    ),
    Mutant(
        "A18",
        "a guard looks at the first lane of a vector",
        COMMON + "_access_guards.py",
        "last = at.value(at.sub(size, count))",
        "last = at.value(at.sub(size, 1))",
        ("filecheck/transforms/codegen/common/verify_accesses.mlir",),
    ),
    Mutant(
        "A19",
        "a negative number is divided as if it had no sign",
        ACCESSES + "arithmetic.py",
        "known = AtLeast(x) if positive else Every((AtLeast(d - 1), AtLeast(x)))",
        "known = Every() if positive else AtLeast(d - 1)",
        PROVER,
    ),
    Mutant(
        "A20",
        "a condition holds behind its branch",
        ACCESSES + "terms.py",
        "self.scoped[self._added.pop()].pop()",
        "self._added.pop()",
        PROVER,
    ),
    Mutant(
        "A21",
        "constants are rounded up",
        ACCESSES + "polynomials.py",
        "if rest := self.terms.get((), 0) // divisor:",
        "if rest := -(-self.terms.get((), 0) // divisor):",
        PROVER,
    ),
    Mutant(
        "A22",
        "what was found out in a scope is known outside",
        ACCESSES + "terms.py",
        "            self.memories.pop()",
        "            self.memories[-2].update(self.memories.pop())",
        PROVER,
    ),
    Mutant(
        "A23",
        "sums do not wrap",
        ACCESSES + "terms.py",
        "return low is not None and high is not None and -limit <= low and high < limit",
        "return True",
        PROVER,
    ),
    Mutant(
        "A24",
        "threads that a branch keeps away come to a barrier",
        ACCESSES + "uniform.py",
        "            yield parent.cond",
        "            pass",
        (VERIFY + "test_a_barrier_that_some_threads_do_not_come_to_is_refused",),
    ),
    Mutant(
        "A25",
        "iterations may start anywhere in the elements of others",
        ACCESSES + "parallel.py",
        "goals = (within, apart - place.count - within)",
        "goals = (within,)",
        PROVER,
    ),
    Mutant(
        "A26",
        "what a loop breaks is kept for the next turn",
        ACCESSES + "carried.py",
        "return self.walk.prover.holds(self._fact(candidate, out), TRIAL)",
        "return True",
        PROVER,
    ),
    Mutant(
        "A27",
        "temporaries of one dispatch are not used at the same time",
        ACCESSES + "arena.py",
        "if a.last < b.first or b.last < a.first or min(a.last, b.last) < 0:",
        "if a.last <= b.first or b.last <= a.first or a.first == b.first:",
        (VERIFY + "test_a_temporary_that_shares_bytes_is_refused",),
    ),
    Mutant(
        "A28",
        "what a branch asserts is taken for what the function asserts",
        ACCESSES + "host.py",
        "return len(self.space.memories) == OUTERMOST and not self.inside",
        "return not self.inside",
        PROVER,
    ),
    Mutant(
        "A29",
        "a sum that may have wrapped is what it would be without a limit",
        ACCESSES + "arithmetic.py",
        'return x if self.prover.fits(x, bits) else self.opaque("sum", bits)',
        "return x",
        PROVER,
    ),
    Mutant(
        "A30",
        "what was known of a size is forgotten when it equals another",
        ACCESSES + "host.py",
        "self.space.replace(newest, value)",
        "self.space.assume([value])",
        PROVER,
    ),
    Mutant(
        "A31",
        "a kernel is read only where it is dispatched first",
        ACCESSES + "host.py",
        "any(scope is self._read.get(key) for scope in here)",
        "key in self._read",
        PROVER,
    ),
    Mutant(
        "A32",
        "arguments that are one buffer are taken for two",
        ACCESSES + "host.py",
        "self.views[arg] = self.views[same]",
        "pass",
        PROVER,
    ),
    Mutant(
        "A33",
        "scratch buffers that are too large begin again at 0",
        "irees/backends/common/irees_c.h",
        "return r >> 60 ? INT64_C(1) << 60 : r;",
        "return r;",
        ("tests/backends/common/test_scratch.py",),
    ),
    Mutant(
        "A34",
        "a loop with step 0 does not end in a kernel",
        "irees/transforms/global_opt/_requirements.py",
        "step = value(arith.MaxSIOp(step, one))",
        "step = step",
        ("filecheck/transforms/global_opt/insert_shape_checks_issue_30.mlir",),
    ),
    Mutant(
        "A35",
        "asserts that contradict each other are forgotten",
        ACCESSES + "terms.py",
        "self.scoped.setdefault(CONTRADICTION, []).append(tight)",
        "continue",
        PROVER,
    ),
    Mutant(
        "A36",
        "a window of unknown size is taken for as large as its operand",
        "irees/transforms/global_opt/fold_unit_extent_dims.py",
        "return first.same(second)",
        "return True",
        ("filecheck/transforms/global_opt/fold_unit_extent_dims.mlir",),
    ),
    Mutant(
        "A37",
        "the points of one loop are checked where another loop is empty",
        "irees/transforms/global_opt/_window_checks.py",
        "inner, unless=others)",
        "inner)",
        ("filecheck/transforms/global_opt/insert_shape_checks_issue_30.mlir",),
    ),
    Mutant(
        "A38",
        "an assert of what never holds is forgotten",
        ACCESSES + "prover.py",
        "return [Polynomial.number(-1)]",
        "return []",
        PROVER,
    ),
    Mutant(
        "A39",
        "a term that may be negative is dropped from a goal",
        ACCESSES + "prover.py",
        "parts = [term for term in terms if self.space.is_nonnegative(term)]",
        "parts = terms",
        PROVER,
    ),
    Mutant(
        "A40",
        "a size that is an argument may be negative in the arena",
        "irees/transforms/stream/plan_arena.py",
        "if not isinstance(size.owner, memref.DimOp):",
        "if False:",
        ("filecheck/transforms/stream/plan_arena.mlir",),
    ),
)
