"""State shared by all functions of a CUDA program: mainly its kernels, in launch-table order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from irees.backends.common.printer import Unit
from irees.dialects.stream import CmdDispatchOp


@dataclass
class Kernel:
    """One `__global__` function and how it is launched."""

    name: str
    text: str
    threads: int
    shared_bytes: int
    waits: bool
    """Whether its threads synchronize, at a barrier or within a warp."""
    warpgroups: bool
    """Whether it uses warpgroup matrix multiplication."""
    maps: int
    """Number of leading parameters that are tensor maps; a launch passes their addresses."""
    vectors: tuple[str, ...]
    parameters: tuple[str, ...]
    traps: bool
    """Whether it has the trap word of the call as last parameter."""

    def record(self, source: str) -> dict[str, Any]:
        """The kernel's manifest record; `source` is the name of its text."""
        return {
            "name": self.name,
            "source": source,
            "threads": self.threads,
            "shared_bytes": self.shared_bytes,
            **({"maps": self.maps} if self.maps else {}),
        }

    def emulated_call(self) -> str:
        """C++ of a wrapper that calls the kernel with the arguments of a launch."""
        arguments = [
            f"a[{i}]"
            if t == "int64_t"
            else f"*(const {t} *)(intptr_t)a[{i}]"
            if i < self.maps
            else f"({t})(intptr_t)a[{i}]"
            for i, t in enumerate(self.parameters)
        ]
        return (
            f'extern "C" IREES_EXPORT void {self.name}_call(const int64_t *a) {{\n'
            f"  (void)a;\n  {self.name}({', '.join(arguments)});\n}}"
        )


@dataclass
class CudaUnit(Unit):
    """Shared state of a CUDA program."""

    launches: list[Kernel] = field(default_factory=list[Kernel])
    dispatches: dict[str, list[CmdDispatchOp]] | None = None
    """Dispatches of the host program by executable name; None until computed."""
