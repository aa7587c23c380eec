"""
Targets of plug-ins: accelerators that share the memory of the CPU, in kernels of C.

    TARGET = Accelerator(
        inserts={"after:tiled": "acme-npu-lower"},
        without=("irees-pack-constant-operands",),
    )
    PLUGIN = Plugin(name="acme-npu", targets={"acme-npu": "acme_npu:TARGET"}, ...)

`target="acme-npu"` compiles for the CPU of this machine, `acme-npu:x86-64-v3` for another one, with
passes of the plug-in that replace ops by instructions of the accelerator. What they leave in a
kernel, the CPU computes. An instruction is an op with an interface that prints it
(`irees.interfaces`). IREE: a HAL target backend, which has a code generation of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from irees.errors import PluginError
from irees.plugins import offered, resolve

if TYPE_CHECKING:
    from irees.target import Target


@dataclass(frozen=True)
class Accelerator:
    """
    How a target differs from the CPU.

    `inserts` maps places to passes that run when a program is compiled for it, `without` names
    passes that do not, and `facts` replaces fields of the CPU's `Target`, such as `threads`.
    """

    inserts: Mapping[str, str] = field(default_factory=dict)
    without: Collection[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def target(self, name: str, cpu: Target) -> Target:
        """Returns the target of that name beside a CPU. Raises PluginError for unknown facts."""
        known = {each.name for each in fields(cpu)}
        if unknown := sorted(set(self.facts) - known):
            raise PluginError(f"target {name!r} has an unknown fact {unknown[0]!r}")
        return replace(cpu, **{**self.facts, "accelerator": name})


def accelerator(name: str) -> Accelerator | None:
    """Returns the target of that name of a plug-in, or None. Raises PluginError."""
    home = offered("targets").get(name)
    if home is None:
        return None
    found = resolve(home)
    if not isinstance(found, Accelerator):
        kind = type(found).__name__
        raise PluginError(f"{home} is a {kind}, but must be an irees.accelerators.Accelerator")
    return found
