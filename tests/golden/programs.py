"""
The programs whose printed kernels are compared with those of an earlier commit, and the targets.

The programs are the examples, the parts of the lit files that the input phase takes, the texts of
`../shared/models` and, where PyTorch is installed, the modules of its `export.py`. The targets have
fixed caches, threads and features, so that the texts do not depend on the machine.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from irees.backends.c.backend import BACKEND as C
from irees.backends.common.program_text import print_program
from irees.backends.cuda.backend import BACKEND as CUDA
from irees.build import import_source, return_updates
from irees.dialects import get_context
from irees.frontends.imported import Imported
from irees.options import Options
from irees.pipeline import run_phases
from irees.target import X86_LEVELS, Target

REPOSITORY = Path(__file__).parents[2]
MODELS = REPOSITORY.parent / "shared" / "models"

LATE = (
    "codegen",
    "stream",
    "devices",
    "gpu",
    "nvgpu",
    "nvvm",
    "vector",
    "memref",
    "panel",
    "x86vector",
)
"""Folders of `filecheck/` whose IR the input phase refuses."""

_CPU: dict[str, Any] = {
    "l1_bytes": 32 << 10,
    "l2_bytes": 1 << 20,
    "l3_bytes": 32 << 20,
    "threads": 4,
}
_WIDE = (*X86_LEVELS["x86-64-v4"], "avx512_vnni", "avx512_bf16")
_GPU: dict[str, Any] = {"machine": "x86_64", "threads": 4}
TARGETS: dict[str, Target] = {
    "avx2": Target(
        arch="x86-64-v3",
        features=X86_LEVELS["x86-64-v3"],
        vector_bytes=32,
        vector_registers=16,
        **_CPU,
    ),
    "avx512": Target(
        arch="x86-64-v4", features=_WIDE, vector_bytes=64, vector_registers=32, **_CPU
    ),
    "neon": Target(
        arch="armv8-a",
        machine="aarch64",
        features=("asimd",),
        vector_bytes=16,
        vector_registers=32,
        **_CPU,
    ),
    "sm_75": replace(Target("cuda", arch="sm_75"), **_GPU),
    "sm_80": replace(Target("cuda", arch="sm_80"), **_GPU),
    "sm_90": replace(Target("cuda", arch="sm_90"), **_GPU),
}

MODULES = (
    "topk_both", "argsort_dynamic", "scatter_onehot_mixed", "softmax_eltwise", "group_norm_silu",
    "two_matmul", "llama_decode", "deepseek_moe", "mobilenet_v2", "resnet50", "bert_base", "gpt2",
)  # fmt: skip
"""Names of `export.py` whose modules are imported from PyTorch."""


@dataclass(frozen=True)
class Program:
    """A program by its name: MLIR text, or a module of `export.py` where the text is None."""

    name: str
    text: str | None = None

    def load(self) -> Imported:
        """
        Imports the program, afresh for each target.

        Raises IreesError for a text that irees refuses, ImportError without PyTorch.
        """
        if self.text is not None:
            return import_source(self.text)
        import torch

        torch.manual_seed(0)
        module, inputs, dynamic_shapes, _ = _export().catalogue()[Path(self.name).name]()
        return import_source(module.eval(), inputs, dynamic_shapes=dynamic_shapes)


def programs() -> Iterator[Program]:
    """Yields the programs that this checkout and this environment have."""
    for path in sorted((REPOSITORY / "examples").glob("*.mlir")):
        yield Program(f"examples/{path.stem}", path.read_text())
    lit = REPOSITORY / "filecheck"
    for path in sorted(lit.rglob("*.mlir")):
        name = path.relative_to(lit).with_suffix("")
        if set(name.parts) & set(LATE) or name.stem.startswith("invalid"):
            continue
        for number, part in enumerate(re.split(r"^// -----", path.read_text(), flags=re.M)):
            yield Program(f"lit/{name}#{number}", part)
    for path in sorted(MODELS.glob("*.mlir")):
        yield Program(f"texts/{path.stem}", path.read_text())
    if (MODELS / "export.py").exists() and importlib.util.find_spec("torch"):
        yield from (Program(f"modules/{name}") for name in MODULES)


def texts(program: Program, target: str) -> dict[str, str]:
    """
    Returns the printed texts of a program by the name of their file: kernels and host.

    Raises IreesError where irees refuses the program.
    """
    facts = TARGETS[target]
    module = program.load().module
    options = Options(target=facts)
    return_updates(module, options)
    run_phases(get_context(), module, options)
    return print_program(module, C if facts.gpu is None else CUDA).texts


def _export() -> Any:
    spec = importlib.util.spec_from_file_location("shared_export", MODELS / "export.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
