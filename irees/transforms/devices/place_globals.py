"""
Decides on which device each mutable global is, and binds it and what reads and writes it to that.

State is in one place: each device has memory of its own, and two copies would be two globals.

    util.global private mutable @g = dense<0> : tensor<4xi32>
    %0 = util.global.load @g : tensor<4xi32>                   %0 = util.global.load @g {@a} ...
    util.global.store %1, @g {stream.affinity = @a} ...   =>   util.global.store %1, @g {@a} ...

(`{@a}` is `{stream.affinity = #hal.device.promise<@a>}`.) A global is where it says, else where its
loads and stores say, else where the analysis finds it used, if that is one device, else on the
default device. Two that say different devices are an error that names both. A global that never
changes may be copied: its loads say `immutable`, and have no place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from irees.analysis.affinity import analyze_affinities, devices_of
from irees.dialects.hal import DevicePromiseAttr
from irees.dialects.util import GlobalLoadOp, GlobalOp, GlobalStoreOp
from irees.errors import VerifyError
from irees.transforms.devices.utils.places import PLACE, named_devices, own_place


def accesses(module: ModuleOp) -> dict[str, list[Operation]]:
    """Name of each global => its loads and stores."""
    found: dict[str, list[Operation]] = {
        op.sym_name.data: [] for op in module.body.block.ops if isinstance(op, GlobalOp)
    }
    for op in module.walk():
        if isinstance(op, GlobalLoadOp | GlobalStoreOp):
            found.get(op.global_.string_value(), []).append(op)
    return found


def agreed(glob: Operation, users: Sequence[Operation]) -> str | None:
    """The device that a global and its accesses name. Raises VerifyError when they name two."""
    said: str | None = None
    for op in (glob, *users):
        own = own_place(op)
        if said is not None and own not in (None, said):
            name = glob.properties["sym_name"].data  # pyright: ignore
            raise VerifyError(
                f"runs on @{own}, but the global @{name} is on @{said}",
                op=op,
                hint="state is on one device; transfer what is loaded or stored",
            )
        said = said or own
    return said


@dataclass(frozen=True)
class PlaceGlobalsPass(ModulePass):
    """What reads and writes a mutable global names the device of the global."""

    name = "irees-place-globals"

    devices: tuple[str, ...] = ()
    """The devices of the program, the default first; all that it names if there are none."""

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
            used = {d for each in affinities.of_global(glob) for d in devices_of(each)}
            place = agreed(glob, users) or (min(used) if len(used) == 1 else devices[0])
            for user in (glob, *users):
                user.attributes[PLACE] = DevicePromiseAttr(place)
