"""
Which patterns canonicalize an op: named here, defined above.

An op knows that it has patterns, as in MLIR; the patterns work on it with the rewriters' tools,
so they are found by the name of their module when `canonicalize` asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from xdsl.ir import Operation
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import HasCanonicalizationPatternsTrait


@dataclass(frozen=True)
class CanonicalizedBy(HasCanonicalizationPatternsTrait):
    """The patterns that `module` has for the op in its table `PATTERNS`."""

    module: str

    def get_patterns(self, op: type[Operation]) -> tuple[RewritePattern, ...]:
        return import_module(self.module).PATTERNS[op.name]

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return ()


UNUSED_RESULTS = CanonicalizedBy("irees.transforms.utils.unused_results")
DATA_MOVEMENT = CanonicalizedBy("irees.transforms.utils.data_movement")
STATIC_SHAPES = CanonicalizedBy("irees.transforms.utils.static_shapes")
