"""
Attaches measured lowering configs to kernels.

`tuning` is JSON from `irees.tune`. It maps the content key of a dispatch (attached to the
executable by `irees-annotate-dispatches`) to one config per structured op of the kernel, in order.
`irees-select-strategy` runs next, keeps legal tiles and blocks, and chooses the rest, so a tuning
for another machine or version can only cost performance. Kernels without an entry are left
unchanged. So are kernels with another number of ops, with a remark.

    flow.executable @e {key = "1f0c"} { linalg.generic {...} }
  =>
    flow.executable @e {key = "1f0c", tuned} { linalg.generic {..., lowering_config =
                            #iree_codegen.lowering_config<{workgroup = [64, 0]}>} }

IREE reads tuning specs as `transform` libraries (`--iree-codegen-tuning-spec-path`) and matches
kernels by their IR; irees matches them by key.
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
    """Attaches the lowering configs of a tuning to the ops of kernels."""

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
