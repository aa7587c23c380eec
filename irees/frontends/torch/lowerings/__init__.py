"""
What each operator of PyTorch is in the builder's vocabulary, in files by kind.

A file registers its functions by `@lowers`; `load` imports all of them.
"""

from importlib import import_module
from pathlib import Path


def load() -> None:
    """Fills the table of lowerings."""
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        import_module(f"{__name__}.{path.stem}")
