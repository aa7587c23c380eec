"""
The CUDA backend: kernel IR to CUDA C++ texts, a host program in C, a manifest and constants.

The host program is printed like the C backend's, with memory and launches through runtime
services. A kernel text compiles with NVRTC, and with a C++ compiler if IREES_EMULATED is defined;
only the headers differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target as XdslTarget

from irees.backends.common.emit_ops import Expressions
from irees.backends.common.printer import Unit
from irees.backends.common.program_text import HERE as COMMON
from irees.backends.common.program_text import Backend, Sources, host_support, print_program
from irees.backends.common.types import vector_typedef
from irees.backends.cuda import emit
from irees.backends.cuda.print_forall import HostPrinter
from irees.backends.cuda.unit import CudaUnit, Kernel

HERE = Path(__file__).parent


@cache
def kernel_support() -> str:
    """The CUDA C++ prelude of every kernel text."""
    return "".join(
        (
            "#ifdef IREES_EMULATED\n",
            (COMMON / "irees_libm.h").read_text(),
            (HERE / "emulation.h").read_text(),
            "#endif\n",
            (HERE / "irees_cuda.h").read_text(),
            (COMMON / "irees_support.h").read_text(),
        )
    )


@cache
def warpgroup_support() -> str:
    """The additional prelude of texts with warpgroup ops."""
    return (HERE / "irees_warpgroup.h").read_text()


@cache
def box_support() -> str:
    """The additional prelude of texts with TMA copies."""
    return (HERE / "irees_boxes.h").read_text()


def emulation_engine() -> str:
    """The C++ emulation that runs thread blocks on the CPU."""
    return (HERE / "emulation.cpp").read_text()


def kernel_text(kernels: list[Kernel]) -> str:
    """A complete translation unit of some kernels."""
    vectors = sorted({name for kernel in kernels for name in kernel.vectors})
    return "\n".join(
        (
            kernel_support(),
            *([warpgroup_support()] if any(kernel.warpgroups for kernel in kernels) else []),
            *([box_support()] if any(kernel.maps for kernel in kernels) else []),
            *(vector_typedef(name) for name in vectors),
            "",
            *(kernel.text for kernel in kernels),
            "#ifdef IREES_EMULATED",
            *(kernel.emulated_call() for kernel in kernels),
            "#endif\n",
        )
    )


def _kernel(
    function: func.FuncOp, name: str, unit: Unit
) -> tuple[dict[str, str], str, Expressions]:
    """Prints the kernels of a dispatch as one text, and its launcher for the host text."""
    assert isinstance(unit, CudaUnit)
    kernels, launcher, expressions = emit.kernel(function, name, unit)
    return ({name: kernel_text(kernels)} if kernels else {}), launcher, expressions


def _finish(unit: Unit, sources: Sources) -> None:
    """Adds the kernel table: to the host text for the emulation, to the manifest for devices."""
    assert isinstance(unit, CudaUnit)
    names = [kernel.name for kernel in unit.launches]
    table = [f"void {name}_call(const int64_t *);" for name in names]
    entries = ", ".join(f"{name}_call" for name in names) or "0"
    table.append(f"const irees_kernel_fn irees_kernels[] = {{{entries}}};")
    sources.texts["host"] += "\n".join(("#ifdef IREES_EMULATED", *table, "#endif\n"))
    sources.manifest["launches"] = [
        kernel.record(kernel.name.rpartition("_w")[0]) for kernel in unit.launches
    ]


BACKEND = Backend(HostPrinter, _kernel, CudaUnit, (HERE / "irees_device.h").read_text(), _finish)


def emit_program(module: ModuleOp) -> Sources:
    """
    Prints a module that was lowered through all phases: CUDA C++ per dispatch, and C as `host`.

    Raises UnsupportedError for an op or type that has no CUDA C++ or C form.
    """
    return print_program(module, BACKEND)


@dataclass(frozen=True)
class IreesCudaTarget(XdslTarget):
    """Prints a module lowered by `irees-pipeline` as CUDA C++ and C (`xdsl-opt -t irees-cuda`)."""

    name = "irees-cuda"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        for name, text in emit_program(module).texts.items():
            suffix = ".c" if name == "host" else ".cu"
            optional = ("\n" + warpgroup_support(), "\n" + box_support())
            for support in (kernel_support(), host_support(), *optional):
                text = text.removeprefix(support)
            output.write(f"/* ---- {name}{suffix} ---- */\n{text}\n")
