"""What all functions of a CUDA program share: above all the kernels that it launches, in order."""

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
    """Whether its threads wait for each other, at a barrier or for their warp."""
    warpgroups: bool
    """Whether four warps multiply together."""
    maps: int
    """How many of its parameters, the first ones, are tensor maps: a launch has their addresses."""
    vectors: tuple[str, ...]
    parameters: tuple[str, ...]
    traps: bool
    """Whether it takes the trap word of the call."""

    def record(self, source: str) -> dict[str, Any]:
        """What the manifest says of it; `source` is the text that it is in."""
        return {
            "name": self.name,
            "source": source,
            "threads": self.threads,
            "shared_bytes": self.shared_bytes,
            **({"maps": self.maps} if self.maps else {}),
        }

    def emulated_call(self) -> str:
        """C++ that calls it with the arguments of a launch."""
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
    """A program for a device."""

    launches: list[Kernel] = field(default_factory=list[Kernel])
    dispatches: dict[str, list[CmdDispatchOp]] | None = None
    """Those of the host program by executable, once they are known."""
