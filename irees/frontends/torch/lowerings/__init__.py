"""
Lowerings of PyTorch's operators to the builder, one file per kind of operator.

Each file registers its functions with `@lowers`; `load` imports all files.
"""

from importlib import import_module
from pathlib import Path


def load() -> None:
    """Fills the table of lowerings."""
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        import_module(f"{__name__}.{path.stem}")
