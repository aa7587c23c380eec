"""
Canonicalization traits: they name the module that defines an op's patterns.

As in MLIR, the op declares that it has patterns. The patterns are defined one layer above, in
`irees.transforms`, so `canonicalize` imports them on demand, by module name.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from xdsl.ir import Operation
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import HasCanonicalizationPatternsTrait


@dataclass(frozen=True)
class CanonicalizedBy(HasCanonicalizationPatternsTrait):
    """Trait of an op whose patterns are in the table `PATTERNS` of `module`."""

    module: str

    def get_patterns(self, op: type[Operation]) -> tuple[RewritePattern, ...]:
        return import_module(self.module).PATTERNS[op.name]

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return ()


UNUSED_RESULTS = CanonicalizedBy("irees.transforms.utils.unused_results")
DATA_MOVEMENT = CanonicalizedBy("irees.transforms.utils.data_movement")
STATIC_SHAPES = CanonicalizedBy("irees.transforms.utils.static_shapes")
