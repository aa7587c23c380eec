"""The faults of what the breadth benchmark made fast."""

from __future__ import annotations

from mutant import Mutant

WINDOWS = "irees/frontends/builder/windows.py"
PHASES_TESTS = ("tests/properties/test_transposed_convolutions.py",)
TABLES = "irees/transforms/global_opt/tabulate_index_expressions.py"
SCANS_TESTS = ("tests/properties/test_scans.py",)
TABLES_TESTS = ("tests/properties/test_index_tables.py",)

MUTANTS = (
    Mutant(
        "A170",
        "outputs are cropped by the rest of the padding only",
        WINDOWS,
        "windows.low[i] % stride[i], out[i])",
        "0, out[i])",
        PHASES_TESTS,
    ),
    Mutant(
        "A171",
        "the taps of a phase go backwards through x",
        WINDOWS,
        "    weight = flip(b, weight, [2 + 2 * i for i in range(n)])\n",
        "",
        PHASES_TESTS,
    ),
    Mutant(
        "A172",
        "a padding of whole strides drops what x begins with",
        WINDOWS,
        "first - (taps - 1), b.add(counts",
        "-(taps - 1), b.add(counts",
        PHASES_TESTS,
    ),
    Mutant(
        "A173",
        "what depends on two loops is no table of one of them",
        TABLES,
        "len(known) < len(parts) or len(loops) > 1",
        "len(known) < len(parts)",
        TABLES_TESTS,
    ),
    Mutant(
        "A174",
        "what depends on data is no table",
        TABLES,
        "len(known) < len(parts) or len(loops) > 1",
        "len(loops) > 1",
        TABLES_TESTS,
    ),
    Mutant(
        "A175",
        "a table is read along its own loop",
        TABLES,
        "select_dims(loops, [loop]) for loop in found.values()",
        "select_dims(loops, [0]) for loop in found.values()",
        TABLES_TESTS,
    ),
    Mutant(
        "A177",
        "a tile of a reduction of columns reads a part of a cache line of each row",
        "irees/transforms/codegen/cpu/select_strategy/chunks.py",
        "tile < CPU.least_columns and _reduces_columns",
        "tile < 0 and _reduces_columns",
        ("filecheck/transforms/codegen/cpu/select_strategy.mlir",),
    ),
    Mutant(
        "A233",
        "the rows behind the last panel of a reduction of columns are not added",
        "irees/transforms/codegen/cpu/vectorize_structured_ops/panels.py",
        "    if size > main:\n",
        "    if size > main + CPU.panel_rows:\n",
        ("filecheck/transforms/codegen/cpu/vectorize_structured_ops_issue_33.mlir",),
    ),
    Mutant(
        "A234",
        "the running value behind an exclusive scan has the last element",
        "irees/transforms/codegen/cpu/cpu_lower_scans/columns.py",
        "after = element if scan.is_inclusive else before",
        "after = element",
        SCANS_TESTS,
    ),
    Mutant(
        "A235",
        "the reader of a scan's output is fused, though it writes what the scan reads",
        "irees/transforms/codegen/cpu/cpu_lower_scans/neighbours.py",
        "if target in read | known or any(",
        "if any(",
        ("filecheck/transforms/codegen/cpu/cpu_lower_scans.mlir",),
    ),
    Mutant(
        "A236",
        "the output of a scan is not stored, though others than the fused op read it",
        "irees/transforms/codegen/cpu/cpu_lower_scans/neighbours.py",
        "scan.keeps_output = is_kept(op.output, (op, found))",
        "scan.keeps_output = False",
        ("filecheck/transforms/codegen/cpu/cpu_lower_scans.mlir",),
    ),
    Mutant(
        "A237",
        "each channel computes again where it is sampled",
        "irees/transforms/codegen/cpu/vectorize_structured_ops/nest.py",
        "fixed[best] < fixed[parallel[-1]] + CPU.shared_ops",
        "fixed[best] >= 0",
        ("filecheck/transforms/codegen/cpu/vectorize_structured_ops_issue_33.mlir",),
    ),
    Mutant(
        "A238",
        "an empty tensor with a large dim takes memory",
        "irees/backends/common/irees_c.h",
        "if (a == 0 || b == 0) return 0;",
        "",
        ("tests/backends/common/test_scratch.py",),
    ),
    Mutant(
        "A240",
        "what a panel computes is used after its loop",
        "irees/transforms/codegen/cpu/vectorize_structured_ops/panels.py",
        "    with nest.scope():\n",
        "    if nest:\n",
        ("tests/properties/test_column_reductions.py",),
    ),
    Mutant(
        "A241",
        "jammed rows share values that depend on the row",
        "irees/transforms/codegen/cpu/vectorize_structured_ops/nest.py",
        "self._compute({*loops, *self.reduction, *jammed}, ivs, at)",
        "self._compute({*loops, *self.reduction}, ivs, at)",
        ("tests/transforms/codegen/cpu/test_gathers.py",),
    ),
    Mutant(
        "A242",
        "a jammed row does not check its place",
        "irees/transforms/codegen/cpu/vectorize_structured_ops/nest.py",
        "        for op in self.checked:\n            at.insert",
        "        for op in ():\n            at.insert",
        ("tests/transforms/codegen/cpu/test_gathers.py",),
    ),
    Mutant(
        "A243",
        "numbers up to 2^23 are read from the mantissa",
        "irees/transforms/codegen/common/expand_math/integers.py",
        "SMALL = (1 << 22) - 1",
        "SMALL = 1 << 23",
        ("tests/transforms/codegen/common/test_expand_math.py",),
    ),
    Mutant(
        "A244",
        "a clamped number is taken as whole",
        "irees/transforms/codegen/common/expand_math/float_facts.py",
        "return depth > 0 and all(is_whole(x, depth - 1) for x in owner.operands)",
        "return depth > 0 and any(is_whole(x, depth - 1) for x in owner.operands)",
        ("tests/transforms/codegen/common/test_expand_math.py",),
    ),
)
