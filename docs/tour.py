"""
Writes docs/tour.md: one small program, and its IR after each phase.

    python docs/tour.py [FOLDER]

The prose of each phase is here; the IR is printed by the compiler for a fixed target, so that the
page does not depend on the machine. A test compares the page in the repository with what this
prints.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from irees.backends.c.backend import BACKEND
from irees.backends.common.program_text import print_program
from irees.build import import_source
from irees.dialects import get_context
from irees.options import Options
from irees.pipeline import run_phases
from irees.target import X86_LEVELS, Target

HERE = Path(__file__).parent
PROGRAM = HERE.parent / "examples" / "row_sums.mlir"
TARGET = Target(
    arch="x86-64-v3",
    features=X86_LEVELS["x86-64-v3"],
    vector_bytes=32,
    vector_registers=16,
    l1_bytes=32 << 10,
    l2_bytes=1 << 20,
    l3_bytes=32 << 20,
    threads=4,
)

HEAD = """\
# A tour: one program through every phase

This page follows a bias, a ReLU and the sum of each row from linalg to C. All IR below is printed by the compiler:
`python docs/tour.py` writes this page. To see the same for a program of your own:

```
irees compile model.mlir --dump-compilation-phases-to=DIR    # a file for each phase
irees compile model.mlir --remarks                           # what was applied or rejected, and why
```

`marimo edit examples/notebooks/tour.py` is the same page as a notebook, with the program to edit, and any target and phase to choose
(`pip install 'irees[notebooks]'`).

[The map](../ARCHITECTURE.md) says where each phase lives; [passes.md](passes.md) has a page for each pass.

## The program

`examples/row_sums.mlir`. The number of rows is known only when the program runs.
"""

PROSE = {
    "input": """\
The frontends emit linalg, tensor, arith and the like. The input phase rewrites what else they emit: calls are inlined, control flow
is lifted to `scf`, and ops that the compiler does not take are refused with their place in the text. This program needs none of
that, so only the spelling changes: constants get a canonical form, and maps are printed in place.
""",
    "global-opt": """\
Named ops become `linalg.generic`, and chains of elementwise ops become one op. `linalg.broadcast`, `linalg.add` and the ReLU have
been fused into the reduction that reads them: the bias is an operand whose map drops `d0`. No pass here depends on
the target's caches or registers; what a rewrite must prove, it proves on indexing maps.

- [irees-generalize-linalg-named-ops](passes/irees-generalize-linalg-named-ops.md) turns named ops into generics.
- [irees-fuse-elementwise-ops](passes/irees-fuse-elementwise-ops.md) fuses a producer into its consumer.
""",
    "dispatch-creation": """\
Ops are grouped into kernels. A kernel is a function of its own in a `flow.executable`; the program calls it by `flow.dispatch`.
The fill and the reduction share their parallel loop, so they become one kernel. Kernels with the same `key` are compiled once.
The kernel's inputs and outputs are `!iree_tensor_ext.dispatch.tensor`, as in IREE.

- [irees-form-tile-regions](passes/irees-form-tile-regions.md) decides what one kernel computes.
""",
    "stream": """\
The host program now has memory: arguments and results are memrefs, the result is allocated, and `stream.cmd.dispatch` writes
into it. Buffers that are not alive at the same time would share memory here. Kernels are still on tensors. Below is the host
program; the kernel is that of the previous phase.
""",
    "codegen": """\
The kernel is tiled, bufferized and vectorized for the target, here AVX2 with 8 lanes of f32. `scf.forall` distributes blocks of 32
rows over threads; the last block is smaller, hence the `minsi`. The reduction is split over four accumulators, because each `addf`
must wait for the one before it in the same accumulator. The sum starts at -0.0, the neutral element of IEEE addition.

- [irees-select-strategy](passes/irees-select-strategy.md) chooses tiles: the `configs` on the executable.
- [irees-vectorize-structured-ops](passes/irees-vectorize-structured-ops.md) writes the inner loops with vectors.
""",
    "verification": """\
Each access is proved to be inside its buffer, or guarded by a test around it. All accesses of this
program are proved, so only attributes are added: these counts, and a certificate with the proof of each access, which a program
apart from the compiler can check. [reliability.md](reliability.md) says what is proved and what is checked.
""",
    "C": """\
The C backend prints each op as one statement. The host code calls `rt->parallel`, which runs the workgroups on a thread pool.
Clang or GCC compiles this text.
""",
}


def after(phase: str) -> ModuleOp:
    """Returns the program after a phase, for `TARGET`."""
    module = import_source(PROGRAM).module
    run_phases(get_context(), module, Options(target=TARGET), to=phase)
    return module


def kernel_text() -> str:
    """Returns the C of the kernel, without the declarations around it."""
    module = import_source(PROGRAM).module
    run_phases(get_context(), module, Options(target=TARGET))
    texts = print_program(module, BACKEND).texts
    (kernel,) = [text for name, text in texts.items() if name.startswith("irees_k")]
    return kernel[kernel.index("static void") :].strip()


def host(module: ModuleOp) -> str:
    """Returns the functions of a module without its executables."""
    return "\n".join(str(op) for op in module.ops if op.name == "func.func")


def printed(phase: str) -> str:
    """Returns what the page shows of a phase, in a fenced block."""
    if phase == "C":
        return _fenced("c", kernel_text())
    module = after(phase)
    if phase == "stream":
        return _fenced("mlir", host(module))
    if phase == "verification":
        (executable,) = [op for op in module.ops if op.name == "flow.executable"]
        return _fenced("mlir", f"accesses = {executable.attributes['accesses']}")
    return _fenced("mlir", str(module))


def page() -> str:
    """Returns the whole page."""
    parts = [HEAD + _fenced("mlir", PROGRAM.read_text().strip())]
    for phase, prose in PROSE.items():
        parts.append(f"\n## {phase}\n\n{prose}{printed(phase)}")
    return "".join(parts)


def _fenced(language: str, text: str) -> str:
    return f"\n```{language}\n{re.sub(r'[ ]+$', '', text, flags=re.M)}\n```\n"


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    (folder / "tour.md").write_text(page())
