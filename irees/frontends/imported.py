"""The result of a frontend: a module and the calling convention of its entry function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from irees.runtime.signature import STATE, Signature


@dataclass
class Imported:
    """An imported module, its signature (if any) and the state that the signature refers to."""

    module: ModuleOp
    signature: Signature | None = None
    state: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    def complete(self, manifest: dict[str, Any], constants: dict[str, Any]) -> None:
        """Adds the signature to `manifest` and the state arrays to `constants`."""
        if self.signature is None:
            return
        manifest["signature"] = self.signature.record()
        constants.update({STATE + name: array for name, array in self.state.items()})
        for function in manifest["functions"]:
            if function["name"] == "main":
                for number, path in self.signature.argument_names.items():
                    function["args"][number]["name"] = path
