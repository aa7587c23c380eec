"""
Plug-in targets: accelerators that share the CPU's memory and are programmed from C kernels.

    TARGET = Accelerator(
        inserts={"after:tiled": "acme-npu-lower"},
        without=("irees-pack-constant-operands",),
    )
    PLUGIN = Plugin(name="acme-npu", targets={"acme-npu": "acme_npu:TARGET"}, ...)

`target="acme-npu"` compiles for the CPU of this machine, `acme-npu:x86-64-v3` for another one, with
passes of the plug-in that replace ops by instructions of the accelerator. The CPU runs all other
ops of a kernel. An instruction is an op with an interface that prints it (`irees.interfaces`).
IREE: a HAL target backend, which has its own code generation.
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
    The differences of a target from the CPU.

    `inserts` maps places to passes to insert for this target, `without` names passes to disable,
    and `facts` replaces fields of the CPU's `Target`, such as `threads`.
    """

    inserts: Mapping[str, str] = field(default_factory=dict)
    without: Collection[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def target(self, name: str, cpu: Target) -> Target:
        """Returns the target that combines a CPU and this accelerator. Raises PluginError."""
        known = {each.name for each in fields(cpu)}
        if unknown := sorted(set(self.facts) - known):
            raise PluginError(f"target {name!r} has an unknown fact {unknown[0]!r}")
        for fact, value in self.facts.items():
            _check_fact(name, fact, value, getattr(cpu, fact))
        return replace(cpu, **{**self.facts, "accelerator": name})


def _check_fact(name: str, fact: str, value: Any, usual: Any) -> None:
    """Raises PluginError for a fact that the passes cannot calculate with."""
    is_size = type(usual) is int
    if type(value) is type(usual) and not (is_size and not 0 <= value < 1 << 63):
        return
    wanted = f"an int from 0 to {(1 << 63) - 1}" if is_size else f"a {type(usual).__name__}"
    raise PluginError(f"target {name!r} has the fact {fact!r} = {value!r}, but must have {wanted}")


def accelerator(name: str) -> Accelerator | None:
    """Returns the plug-in target of that name, or None. Raises PluginError."""
    home = offered("targets").get(name)
    if home is None:
        return None
    found = resolve(home)
    if not isinstance(found, Accelerator):
        kind = type(found).__name__
        raise PluginError(f"{home} is a {kind}, but must be an irees.accelerators.Accelerator")
    return found
