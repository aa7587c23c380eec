"""The cost model that passes use for CPUs and for GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from irees.targets import cost


@dataclass(frozen=True)
class CommonCosts:
    """Costs and thresholds of passes that run for every target."""

    # Bodies: `irees.analysis.body_weight`, `irees-fuse-elementwise-ops`.

    math_weight: int = cost(16, "ops of `arith`", "guess")
    """Weight of a `math` op."""

    most_weight: int = cost(2048, "ops of `arith`", "compile times of C compilers")
    """Maximum total weight of the bodies in a kernel. An attention layer has 50, random number
    generation 600, a sum of five special functions of PyTorch (digamma, zeta, Bessel) 1,200."""

    body_operands: int = cost(32, "operands", "guess")
    """Maximum operands of two fused elementwise ops."""

    repeated_ops: int = cost(64, "ops", "guess")
    """Largest body that fuses at two operands: `x + transpose(x)` chains double each time."""

    repeated_work: int = cost(1 << 16, "ops of `arith`", "guess: what a core does in 1 us")
    """Work of a producer in the outer loops of its only reader that costs as much as a kernel."""

    hoisted_lanes: int = cost(16, "1", "derived: the f32 lanes of AVX-512")
    """How much longer a math function takes as a scalar that is hoisted out of a loop, per element,
    than in vectors."""

    replicated_ops: int = cost(12, "ops", "guess")
    """Maximum ops in a consumer body that is replicated for each register of a block."""

    extracted_bytes: int = cost(1 << 20, "bytes", "guess")
    """Smallest tensor that `irees-compute-extracted-elements` replaces by computations of single
    elements."""

    extracted_ops: int = cost(16, "ops", "guess")
    """Largest body that `irees-compute-extracted-elements` duplicates for each read."""

    sibling_results: int = cost(4, "results", "derived: registers of accumulators")
    """Maximum results of fused reductions: each needs several accumulator registers."""

    least_searched_row: int = cost(32, "elements", "measured on AVX-512: 33 gain, 17 lose")
    """Shortest row that `irees-split-arg-compares` reads twice: it takes whole vectors."""

    # Importing: `irees/frontends/builder/windows.py`.

    phase_features: int = cost(
        16, "features", "measured: AMD EPYC, kernel 3, stride 2: 16 gain, 8 do not, 3 lose"
    )
    """Fewest features per group for which phases of a transposed convolution are convolved apart:
    fewer do not fill vectors."""

    # Kernels: `irees-form-tile-regions`, `irees-form-dispatch-regions`.

    kernel_operands: int = cost(16, "tensors", "IREE: kIreeMaxOperandCount")
    """Maximum number of input and output tensors of a kernel."""

    kernel_ops: int = cost(12, "ops", "guess")
    """Maximum structured ops of a group."""

    splat_bytes: int = cost(1 << 28, "bytes", "guess")
    """Size above which a splat constant is not stored; a kernel writes it when it is needed."""

    inline_constant_bytes: int = cost(256, "bytes", "IREE: the default")
    """Maximum size of a non-splat constant cloned into kernels."""

    assumed_trip_count: int = cost(4096, "iterations", "guess")
    """Assumed trip count of dynamic loops when ops are grouped."""

    # Constants and shapes.

    folded_bytes: int = cost(64 << 10, "bytes", "guess")
    """Largest result that is always constant-folded; a larger one is folded only if its operands
    are as large."""

    selected: int = cost(128, "elements", "measured: topk beside a sort of the row, Zen 5")
    """Largest k for which top-k of any row is selected; the row is sorted for a larger one."""

    most_selected: int = cost(1024, "elements", "guess")
    """Largest k for which top-k of a long row is selected."""

    compared_pairs: int = cost(25, "pairs", "measured: topk beside a sort of the row, Zen 5")
    """Pairs that are compared in the time that sorting takes per element of a row."""

    most_folded_bytes: int = cost(1 << 20, "bytes", "guess")
    """Largest result that is constant-folded at all."""

    padded_growth: int = cost(
        4, "1", "derived: a filter of 5 x 5 in 4 x 4 phases is 2.6 times as large"
    )
    """Maximum growth of a large constant by padding."""

    gathered_elements: int = cost(1 << 16, "elements", "guess")
    """Largest result of a gather whose indices are constant-folded."""

    direct_transform: int = cost(64, "elements", "guess")
    """Largest composite size of a Fourier transform that is one matmul."""

    transform_factor: int = cost(32, "elements", "guess")
    """Largest factor of a Fourier transform that is split off."""

    transform_columns: int = cost(16, "columns", "derived: the f32 lanes of AVX-512")
    """Columns of the matmul of a factor that fill vectors."""

    transform_twiddle: int = cost(
        25, "multiply-adds", "measured: 64 transforms of 1024 f32, AMD EPYC with AVX-512"
    )
    """What it costs per element to split off a factor: a product with twiddle factors, and a
    transpose."""

    vector_loop: int = cost(64, "iterations", "guess")
    """Minimum trip count of the last loop after a split: a shorter one vectorizes worse."""

    selected_elements: int = cost(256, "elements", "guess")
    """Maximum half row for a concat of two halves to become a select, which fuses, not a copy."""

    stacked_tensors: int = cost(4, "tensors", "derived: a register for each, and for its shuffle")
    """Maximum tensors along a last dim for a concat to become a select, which fuses."""

    # Sorting.

    most_k: int = cost(256, "elements", "guess")
    """Largest k for which the first k elements of a sort become a top-k."""

    selection_ratio: int = cost(4, "1", "guess")
    """Minimum ratio of the row length to k for a sort to become a top-k."""

    merged_row: int = cost(32, "elements", "guess")
    """Static row length below which one thread uses merge sort: counting digits would take
    longer."""

    wide_digit_row: int = cost(1024, "elements", "derived: 2048 counts against a pass over the row")
    """Minimum row length for which one thread sorts by wide digits: their counts cost less than an
    extra pass."""

    digit: int = cost(8, "bits", "guess")
    """Digit of a radix sort by one thread."""

    wide_digit: int = cost(11, "bits", "derived: three passes over 32 bits")
    """Digit of a radix sort by one thread, for rows of at least `wide_digit_row`."""

    # Several devices: `irees-partition-pipeline`.

    flops_per_byte: int = cost(48, "flops per byte", "Cascade Lake: 1 GB/s at 75 to 120 GFLOP/s")
    """Cost of a result byte: page faults limit writes to fresh memory. Half of the measured value,
    since other machines fault in pages faster."""

    stage_load_ratio: float = cost(1.05, "1", "guess")
    """Load-imbalance tolerance of pipeline stages: among partitions whose most loaded stage is
    within this factor of the optimum, the one with the fewest transferred bytes wins."""


COMMON = CommonCosts()
"""The costs that passes read."""
