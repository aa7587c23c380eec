"""The faults that hostile programs, plug-ins and command lines found."""

from __future__ import annotations

from mutant import Mutant

JOINED = "irees/transforms/codegen/cpu/join_contiguous_loops.py"
JOINED_TESTS = ("filecheck/transforms/codegen/cpu/join_contiguous_loops.mlir",)
REGIONS = "irees/transforms/dispatch_creation/form_tile_regions/__init__.py"
REGIONS_TESTS = ("filecheck/transforms/dispatch_creation/form_tile_regions.mlir",)

MUTANTS = (
    Mutant(
        "A530",
        "the loop of a diagonal is joined with itself",
        JOINED,
        "return None if first == last else (first, last)",
        "return first, last",
        JOINED_TESTS,
    ),
    Mutant(
        "A531",
        "a copy that is padded has the static sizes of its source, and not its type",
        REGIONS,
        "out = empty(source.type, shape, b)",
        "out = b.empty(source.type.element_type, shape)",
        REGIONS_TESTS,
    ),
)
