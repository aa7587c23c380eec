"""
The CUDA backend: kernel IR to CUDA C++ texts, a host program in C, a manifest and constants.

The host program is the C backend's, with memory and launches through services. The text of a
kernel is for NVRTC, and for a C++ compiler with IREES_EMULATED defined: what differs is in the
headers alone.
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
    """The CUDA C++ in front of every text of kernels."""
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
    """The CUDA C++ that only some texts need, after that which all have."""
    return (HERE / "irees_warpgroup.h").read_text()


@cache
def box_support() -> str:
    """That for texts which copy boxes."""
    return (HERE / "irees_boxes.h").read_text()


def emulation_engine() -> str:
    """The C++ that runs blocks of threads on the CPU."""
    return (HERE / "emulation.cpp").read_text()


def kernel_text(kernels: list[Kernel]) -> str:
    """A text with some kernels, complete."""
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
    """The kernels of a dispatch are one text, its launcher is part of the host's."""
    assert isinstance(unit, CudaUnit)
    kernels, launcher, expressions = emit.kernel(function, name, unit)
    return ({name: kernel_text(kernels)} if kernels else {}), launcher, expressions


def _finish(unit: Unit, sources: Sources) -> None:
    """The table of kernels: in the host's text for the emulation, in the manifest for the rest."""
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
    The texts of a module that went through all phases: CUDA C++ by dispatch, and C as `host`.

    Raises UnsupportedError for an op or type that has none.
    """
    return print_program(module, BACKEND)


@dataclass(frozen=True)
class IreesCudaTarget(XdslTarget):
    """Prints the CUDA C++ and the C of a module that went through `irees-pipeline`."""

    name = "irees-cuda"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        for name, text in emit_program(module).texts.items():
            suffix = ".c" if name == "host" else ".cu"
            optional = ("\n" + warpgroup_support(), "\n" + box_support())
            for support in (kernel_support(), host_support(), *optional):
                text = text.removeprefix(support)
            output.write(f"/* ---- {name}{suffix} ---- */\n{text}\n")
