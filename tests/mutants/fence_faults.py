"""The faults that hostile programs, plug-ins and command lines found."""

from __future__ import annotations

from mutant import Mutant

JOINED = "irees/transforms/codegen/cpu/join_contiguous_loops.py"
JOINED_TESTS = ("filecheck/transforms/codegen/cpu/join_contiguous_loops.mlir",)
REGIONS = "irees/transforms/dispatch_creation/form_tile_regions/__init__.py"
REGIONS_TESTS = ("filecheck/transforms/dispatch_creation/form_tile_regions.mlir",)
NARROW = "irees/transforms/global_opt/store_narrow_types/__init__.py"

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
    Mutant(
        "A532",
        "vectors of codes are summed up as if they were integers",
        NARROW,
        "        self._refuse_vectors()\n",
        "",
        ("tests/transforms/global_opt/test_narrow_floats.py",),
    ),
    Mutant(
        "A533",
        "each element of a splat of a narrow type is written out",
        NARROW,
        "if not is_splat(attr):",
        "if not is_splat(attr) or array.size:",
        ("tests/transforms/global_opt/test_large_splats.py",),
    ),
    Mutant(
        "A534",
        "each element of a splat is looked at",
        "irees/transforms/global_opt/fold_constants/__init__.py",
        "        array = array.flat[:1]  # however many places there are\n",
        "        pass\n",
        ("tests/transforms/global_opt/test_large_splats.py",),
    ),
    Mutant(
        "A535",
        "what makes the input of a scan has an input",
        "irees/transforms/codegen/cpu/cpu_lower_scans/columns.py",
        "        if scan.producer is None:\n            (element,) = own\n        else:\n",
        "        element = own[0]\n        if scan.producer is not None:\n",
        ("filecheck/transforms/codegen/cpu/cpu_lower_scans.mlir",),
    ),
)
