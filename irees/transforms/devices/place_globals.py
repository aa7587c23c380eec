"""
Assigns each mutable global to a device, and annotates the global and its accesses with it.

A mutable global must be on a single device: devices have separate memories, and copies would
diverge.

    util.global private mutable @g = dense<0> : tensor<4xi32>
    %0 = util.global.load @g : tensor<4xi32>                   %0 = util.global.load @g {@a} ...
    util.global.store %1, @g {stream.affinity = @a} ...   =>   util.global.store %1, @g {@a} ...

(`{@a}` is `{stream.affinity = #hal.device.promise<@a>}`.) The device is, in this order: that of the
global's own affinity; that of its loads and stores; the only device on which the analysis finds
uses; the default device. Conflicting affinities are an error that names both devices. Immutable
globals may be copied to any device: their loads become `immutable` and have no affinity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from irees.analysis.affinity import Affinities, analyze_affinities, devices_of
from irees.dialects.hal import DevicePromiseAttr
from irees.dialects.util import GlobalLoadOp, GlobalOp, GlobalStoreOp
from irees.errors import VerifyError
from irees.transforms.devices.utils.places import PLACE, named_devices, own_place


def accesses(module: ModuleOp) -> dict[str, list[Operation]]:
    """Returns the loads and stores of each global, by name."""
    found: dict[str, list[Operation]] = {
        op.sym_name.data: [] for op in module.body.block.ops if isinstance(op, GlobalOp)
    }
    for op in module.walk():
        if isinstance(op, GlobalLoadOp | GlobalStoreOp):
            found.get(op.global_.string_value(), []).append(op)
    return found


def agreed(glob: Operation, users: Sequence[Operation]) -> str | None:
    """Returns the device that a global and its accesses name. Raises VerifyError if they differ."""
    said: str | None = None
    for op in (glob, *users):
        own = own_place(op)
        if said is not None and own not in (None, said):
            name = glob.properties["sym_name"].data  # pyright: ignore
            raise VerifyError(
                f"runs on @{own}, but the global @{name} is on @{said}",
                op=op,
                hint="a global is on one device; transfer the loaded or stored value",
            )
        said = said or own
    return said


def place_of(
    glob: GlobalOp, users: Sequence[Operation], affinities: Affinities, default: str
) -> str:
    """Returns the named device of a mutable global, else the only one in use, else `default`."""
    used = {d for each in affinities.of_global(glob) for d in devices_of(each)}
    return agreed(glob, users) or (min(used) if len(used) == 1 else default)


@dataclass(frozen=True)
class PlaceGlobalsPass(ModulePass):
    """Assigns mutable globals and their accesses to devices."""

    name = "irees-place-globals"

    devices: tuple[str, ...] = ()
    """The devices of the program, the default first; if empty, all that the program names."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found, devices = accesses(op), self.devices or tuple(named_devices(op))
        if not found or not devices:
            return
        affinities = analyze_affinities(op)
        for glob in [g for g in op.body.block.ops if isinstance(g, GlobalOp)]:
            users = found[glob.sym_name.data]
            if glob.is_mutable is None:
                for load in [u for u in users if isinstance(u, GlobalLoadOp)]:
                    load.is_immutable = UnitAttr()
                continue
            place = place_of(glob, users, affinities, default=devices[0])
            for user in (glob, *users):
                user.attributes[PLACE] = DevicePromiseAttr(place)
