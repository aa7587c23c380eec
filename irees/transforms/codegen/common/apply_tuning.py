"""
Gives kernels the lowering configs that were measured to be fast for them.

`tuning` is JSON, as `irees.tune` finds it: the key of a dispatch's content (written onto the
executable by `irees-annotate-dispatches`) and one config per structured op of the kernel, in
order. `irees-select-strategy` comes next, keeps tiles and blocks that ops have already where they
are legal, and chooses the rest; so a tuning that was made for another machine or another version
costs time at most. A kernel that is not in it is left alone, and so is one with another number
of ops, with a remark.

    flow.executable @e {key = "1f0c"} { linalg.generic {...} }
  =>
    flow.executable @e {key = "1f0c", tuned} { linalg.generic {..., lowering_config =
                            #iree_codegen.lowering_config<{workgroup = [64, 0]}>} }

IREE reads tuning specs as `transform` libraries (`--iree-codegen-tuning-spec-path`) and matches
kernels by their IR; here a kernel is matched by its key.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.passes import ModulePass

from irees.analysis.distribution import loops_of
from irees.dialects.flow import ExecutableOp
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.options import canonical_tuning
from irees.remarks import remark


@dataclass(frozen=True)
class ApplyTuningPass(ModulePass):
    """Ops of kernels that a tuning knows get its lowering configs."""

    name = "irees-apply-tuning"

    tuning: str = "{}"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known: dict[str, Any] = json.loads(canonical_tuning(self.tuning) or "{}")
        for executable in [e for e in op.walk() if isinstance(e, ExecutableOp)]:
            key = executable.attributes.get("key")
            configs = known.get(key.data) if isinstance(key, StringAttr) else None
            if configs is None:
                continue
            function = next(f for f in executable.walk() if isinstance(f, func.FuncOp))
            ops = [inner for inner in function.body.block.ops if loops_of(inner) is not None]
            if len(ops) != len(configs):
                text = f"not tuned: it has {len(ops)} ops, but {len(configs)} configs"
                remark("missed", self.name, executable, text)
                continue
            executable.attributes["tuned"] = UnitAttr()
            for inner, config in zip(ops, configs, strict=True):
                if config:
                    inner.attributes["lowering_config"] = LoweringConfigAttr.of(**config)
