"""
irees: an ML compiler that you can read.

The public names are imported lazily: `import irees` itself imports no submodules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irees import errors
    from irees.compiler import compile
    from irees.dynamo.explaining import explain
    from irees.frontends.jax import import_jax
    from irees.frontends.mlir import import_mlir
    from irees.frontends.onnx import import_onnx
    from irees.frontends.torch import import_torch
    from irees.reports.report import report
    from irees.runtime.artifact import load
    from irees.runtime.program import Program
    from irees.runtime.services import set_num_threads
    from irees.target import Target
    from irees.tuning import tune

__all__ = [
    "Program",
    "Target",
    "compile",
    "errors",
    "explain",
    "import_jax",
    "import_mlir",
    "import_onnx",
    "import_torch",
    "load",
    "report",
    "set_num_threads",
    "tune",
]

_HOMES = {
    "Program": "irees.runtime.program",
    "Target": "irees.target",
    "compile": "irees.compiler",
    "explain": "irees.dynamo.explaining",
    "import_jax": "irees.frontends.jax",
    "import_mlir": "irees.frontends.mlir",
    "import_onnx": "irees.frontends.onnx",
    "import_torch": "irees.frontends.torch",
    "load": "irees.runtime.artifact",
    "report": "irees.reports.report",
    "set_num_threads": "irees.runtime.services",
    "tune": "irees.tuning",
}


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("irees.errors")
    if name == "__version__":
        return import_module("importlib.metadata").version("irees")
    if name not in _HOMES:
        raise AttributeError(f"module 'irees' has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        from irees.errors import UnsupportedError

        hint = "pip install 'irees[torch]'"
        raise UnsupportedError(f"irees.{name} needs torch", hint=hint) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
