"""The faults of reductions along their results, of windows, and of narrow lanes."""

from __future__ import annotations

from mutant import Mutant

ROWS = "irees/transforms/global_opt/transpose_shared_rows.py"
ROWS_TESTS = ("filecheck/transforms/global_opt/transpose_shared_rows.mlir",)
CHUNKS = "irees/transforms/codegen/cpu/select_strategy/chunks.py"
CHUNKS_TESTS = ("filecheck/transforms/codegen/cpu/select_strategy.shared_rows.mlir",)
WINDOWS = "irees/frontends/builder/windows.py"
FOLDS_TESTS = ("tests/properties/test_folds.py",)
LANES_TESTS = ("tests/backends/c/test_widened_lanes.py",)

MUTANTS = (
    Mutant(
        "A480",
        "the operand of another loop order is read where the columns were",
        ROWS,
        "moved = (*results[:place], *results[place + 1 :], results[place])",
        "moved = (results[place], *results[:place], *results[place + 1 :])",
        ("tests/test_degradation.py",),
    ),
    Mutant(
        "A481",
        "an operand that holds columns elsewhere does not keep vectors from them",
        ROWS,
        "        elif indexing.results[-1] != AffineDimExpr(columns):\n            return None\n",
        "",
        ROWS_TESTS,
    ),
    Mutant(
        "A482",
        "few results are enough for a copy",
        ROWS,
        "return rows >= CPU.transposed_rows",
        "return True",
        ROWS_TESTS,
    ),
    Mutant(
        "A483",
        "a tile of results has one row where rows share vectors",
        CHUNKS,
        "return any(row not in m.used_dims() for m in reads)",
        "return not reads",
        CHUNKS_TESTS,
    ),
    Mutant(
        "A484",
        "results reduced along rows are taken for columns",
        CHUNKS,
        "    if any(m.results[-1:] not in ends for m in reads):\n        return False\n",
        "",
        CHUNKS_TESTS,
    ),
    Mutant(
        "A485",
        "windows are added one place apart, whatever the dilation",
        WINDOWS,
        "d[steps[i]] * -step + (taps[i] - 1) * step",
        "d[steps[i]] * -1 + (taps[i] - 1)",
        FOLDS_TESTS,
    ),
    Mutant(
        "A486",
        "taps that a phase lacks are added, where one value stands for all",
        WINDOWS,
        "if broadcast[i] and windows.kernel[i] % windows.stride[i]]",
        "if False]",
        FOLDS_TESTS,
    ),
    Mutant(
        "A487",
        "a dilation and a stride at once are taken for the stride",
        WINDOWS,
        "kernel[i], dilation[i] = windows.extent(i), 1",
        "kernel[i], dilation[i] = windows.extent(i), step",
        FOLDS_TESTS,
    ),
    Mutant(
        "A488",
        "loops are split for one reader of several",
        "irees/transforms/global_opt/sink_reshapes.py",
        "    if len(readers) == 1 and isinstance(readers[0],",
        "    if readers and isinstance(readers[0],",
        ("filecheck/transforms/global_opt/sink_reshapes.groups.mlir",),
    ),
    Mutant(
        "A489",
        "a border of a dynamic size begins at the size of the slice",
        "irees/transforms/codegen/common/bufferize_dispatch/frames.py",
        "end = b.add(offset, size)",
        "end = size",
        ("filecheck/transforms/codegen/common/bufferize_dispatch.frames.mlir",),
    ),
    Mutant(
        "A490",
        "a fill makes the tiles of a reduction small",
        CHUNKS,
        "chunk = CPU.chunk if len(reads) == 1",
        "chunk = CPU.chunk if len(group.members) == 1",
        CHUNKS_TESTS,
    ),
    Mutant(
        "A491",
        "amounts beyond 31 shift by what x86 makes of them in C",
        "irees/backends/common/irees_widen.h",
        "((n_ & ~m_) | (m_ & 31))",
        "(n_ & 31)",
        LANES_TESTS,
    ),
    Mutant(
        "A492",
        "narrow numbers are shifted right with their sign",
        "irees/backends/common/emit_ops.py",
        'sign = "i" if op.name == "arith.shrsi" else "u"',
        'sign = "i"',
        LANES_TESTS,
    ),
    Mutant(
        "A493",
        "unsigned numbers are widened with their sign",
        "irees/backends/common/irees_widen.h",
        "__builtin_ia32_pmovzxbd512_mask",
        "__builtin_ia32_pmovsxbd512_mask",
        LANES_TESTS,
    ),
    Mutant(
        "A494",
        "a tensor without memory, as inside of a transform, is asked for its memory",
        "irees/frontends/torch/sharing.py",
        "    except NotImplementedError:\n        return id(value)",
        "    except ZeroDivisionError:\n        return id(value)",
        ("tests/frontends/test_torch_signature.py",),
    ),
)
