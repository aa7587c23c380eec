"""The cost model of NVIDIA GPUs, from sm_75 on."""

from __future__ import annotations

from dataclasses import dataclass

from irees.targets import cost


@dataclass(frozen=True)
class NvidiaCosts:
    """Costs and thresholds of the passes for GPUs. Facts of an architecture are in `GpuFacts`."""

    # Tiles of elementwise ops, reductions and transposes: `irees-gpu-select-strategy`.

    threads: int = cost(128, "threads", "derived: 1024 to 2048 threads of a multiprocessor")
    """Threads per workgroup: four warps, so that several workgroups fit on a multiprocessor."""

    most_threads: int = cost(512, "threads", "derived: 65536 registers of a multiprocessor")
    """Maximum threads per workgroup for long rows: more would leave too few registers for each."""

    elements_per_thread: int = cost(4, "elements", "derived: one 16-byte access of f32")
    """Minimum elements of an elementwise op per thread."""

    accesses_per_thread: int = cost(8, "accesses", "guess")
    """Accesses per thread and row above which the number of threads is doubled."""

    warp_row: int = cost(1024, "elements", "guess")
    """Row length above which a whole workgroup, not a warp, reduces a row."""

    short_reduction: int = cost(16, "iterations", "guess")
    """Reduction length below which one thread per result is as fast."""

    assumed_trip_count: int = cost(256, "iterations", "guess")
    """Assumed trip count of dynamic loops in tile-size selection."""

    transposed_bytes: int = cost(8 << 10, "bytes", "derived: 48 KiB of shared memory")
    """Maximum size of a transposed tile, so that several workgroups fit on a multiprocessor."""

    # Blocks of contractions: `irees-gpu-select-strategy`, `irees-gpu-lower-contractions`.

    simt_blocks: tuple[tuple[int, ...], ...] = cost(
        ((128, 128, 8, 8, 8), (64, 64, 4, 4, 16), (32, 64, 4, 4, 16), (16, 64, 2, 4, 32),
         (8, 64, 1, 4, 32)),
        "rows, columns, rows and columns per thread, depth", "guess",
    )  # fmt: skip
    """SIMT candidates, from the least operand traffic to the most workgroups."""

    simt_wide_block: tuple[int, ...] = cost(
        (128, 256, 8, 16, 16, 3), "rows, columns, rows and columns per thread, depth, stages",
        "H200: 4096 cubed in f32 takes 3.13 ms, with blocks of 128 x 128 x 8 3.47 ms",
    )  # fmt: skip
    """The SIMT candidate before them, for operands whose copies need few address registers."""

    wide_copies: int = cost(12, "copies", "derived: copies of a stage of `simt_wide_block`")
    """Copies per thread and stage of `simt_wide_block`."""

    matrix_blocks: tuple[tuple[int, ...], ...] = cost(
        ((256, 128, 64, 64), (128, 128, 64, 32), (64, 64, 32, 32), (32, 32, 16, 16)),
        "rows, columns, rows and columns per warp", "guess",
    )  # fmt: skip
    """Blocks for `mma.sync`, in order of increasing operand traffic."""

    matrix_stages: tuple[int, ...] = cost((0, 1, 1, 1), "stages", "guess")
    """Shared-memory stages of each of `matrix_blocks` without asynchronous copies; 0 excludes a
    block."""

    asynchronous_stages: tuple[tuple[int, ...], ...] = cost(
        ((3, 3, 0, 0), (0, 2, 4, 4)), "stages", "guess"
    )
    """The same with asynchronous copies, in two lists: candidates with more stages come first."""

    matrix_depth_bytes: int = cost(64, "bytes", "guess")
    """Slice of the reduction per stage of `mma.sync`."""

    warpgroup_blocks: tuple[tuple[int, ...], ...] = cost(
        ((128, 256, 64, 4), (128, 128, 64, 3), (64, 128, 64, 4), (64, 64, 64, 4)),
        "rows, columns, depth, stages", "guess",
    )  # fmt: skip
    """Candidates for `wgmma`, in order of increasing operand traffic."""

    stages: int = cost(4, "stages", "guess")
    """Shared-memory stages with asynchronous copies: three are in flight."""

    load_registers: int = cost(
        5, "registers", "ptxas, sm_80: 32 loads of halves spill beside 32 sums"
    )
    """Registers of a thread per scalar load that needs its own address."""

    wide_stages: int = cost(3, "stages", "guess")
    """The same for `mma.sync` on the block of several warpgroups."""

    copies_per_thread: int = cost(8, "copies", "derived: registers")
    """Maximum copies per thread and stage: each needs address registers, so more would spill."""

    simt_registers: int = cost(40, "registers", "guess")
    """Registers of a thread for addresses and loops, without accumulators and operands."""

    matrix_registers: int = cost(48, "registers", "guess")
    """The same for `mma.sync`."""

    warpgroup_registers: int = cost(40, "registers", "guess")
    """The same for `wgmma`."""

    copy_registers: int = cost(3, "registers", "guess")
    """Registers for the addresses of one copy of a thread."""

    cut_copy_registers: int = cost(5, "registers", "guess")
    """Additional registers for a copy of a partial tile, whose address is clamped."""

    cut_store_registers: int = cost(
        32, "registers", "ptxas, sm_90: spills with 256 columns and shared tiles"
    )
    """Registers for the bounds checks of a partial tile's stores."""

    # Sharing tiles: `irees-gpu-stream-k`.

    l2_bytes_per_cycle: int = cost(
        48, "bytes per cycle and multiprocessor", "H200: 8192 cubed in bf16 reads 40 or more"
    )
    """L2 bandwidth of a multiprocessor."""

    block_ratio: float = cost(0.9, "1", "guess")
    """Ratio of predicted cycles below which a block with more operand traffic is chosen."""

    shared_bytes_per_cycle: int = cost(128, "bytes per cycle", "32 banks of 4 bytes")
    """Shared-memory bandwidth of a multiprocessor."""

    shared_latency: int = cost(30, "cycles", "H200: a step of 1 x 4 sums takes 38")
    """Latency from a shared-memory load to the multiply-adds that use it."""

    multiply_latency: int = cost(2, "cycles", "H200: a step of 4 x 4 sums takes 61")
    """Cycles per multiply-add of a thread if a scheduler has a single warp."""

    simt_lanes: int = cost(128, "multiply-adds per cycle", "data sheet")
    """Scalar multiply-adds that a multiprocessor issues per cycle."""

    simt_load: int = cost(
        7, "multiply-adds", "H200: 4096 cubed in f32 reaches 88 per cycle by 8 x 8, 96 by 8 x 16"
    )
    """Multiply-adds of a thread that take as long as one of its 16-byte loads of operands."""

    warpgroup_rate: int = cost(1843, "multiply-adds per cycle", "0.9 of the data sheet")
    """Throughput of `wgmma` on 16-bit elements, per multiprocessor."""

    warpgroup_latency: int = cost(200, "cycles", "guess")
    """Latency from the copies of a step to its first product, plus from its last product to the
    next step."""

    matrix_rate: int = cost(717, "multiply-adds per cycle", "0.7 of the data sheet of an A100")
    """Throughput of `mma.sync` on 16-bit elements, per multiprocessor."""

    matrix_points: int = cost(128, "sums", "PTX ISA: m16n8")
    """Accumulators that one `mma.sync` updates."""

    matrix_cycles: int = cost(8, "cycles", "derived: 2,048 multiply-adds at 256 per scheduler")
    """Issue interval of two `mma.sync` of a warp."""

    fragment_bytes: int = cost(32, "bytes of the reduction", "PTX ISA: m16n8k16")
    """Reduction depth of one `mma.sync`, in bytes of an operand."""

    share_cycles: int = cost(2000, "cycles", "guess")
    """Time that sharing tiles adds to a workgroup: a fence, a counter, loads of partial sums."""

    workgroups_per_tile: int = cost(16, "workgroups", "guess")
    """Maximum workgroups per tile: one of them reads the partial sums of all."""

    least_shared_steps: int = cost(4, "steps of the reduction", "derived: pipeline stages")
    """Minimum steps per workgroup: the number of pipeline stages in shared memory."""

    shared_tiles_ratio: float = cost(0.875, "1", "guess")
    """Ratio of predicted cycles at which sharing tiles pays off."""

    # Attention: `irees-gpu-lower-attention`.

    attention_rows: int = cost(64, "queries", "derived: 16 rows of `mma.sync` per warp")
    """Queries per workgroup."""

    attention_warpgroups: tuple[int, ...] = cost(
        (2, 1), "warpgroups", "H200: 2 take 45 us where 1 takes 60 us, 16 x 2048 x 64 in bf16"
    )
    """Warpgroups per workgroup of an attention by `wgmma`, preferred first."""

    attention_registers: int = cost(32, "registers", "ptxas, sm_90: 99 for 64 features")
    """Registers of a thread of an attention by `wgmma`, without sums, scores and exponentials."""

    attention_columns: int = cost(64, "keys", "guess")
    """Keys per block: scores that a workgroup computes at a time, per query."""

    attention_workgroups: int = cost(3, "workgroups", "ptxas, sm_90: spills with 4")
    """Attention workgroups per multiprocessor; ptxas chooses 4 itself."""

    attention_block: tuple[int, ...] = cost(
        (64, 64, 4, 4, 16), "rows, columns, rows and columns per thread, depth", "guess"
    )
    """Tile sizes of both products of an attention op."""

    attention_matrix_block: tuple[int, ...] = cost(
        (64, 64, 32, 32, 32, 1), "rows, columns, rows and columns per warp, depth, stages", "guess"
    )
    """The same for `mma.sync`."""

    register_features: int = cost(128, "features", "derived: 255 registers of a thread")
    """Maximum head dimension of attention in registers."""

    register_keys: tuple[int, ...] = cost((64, 32), "keys", "guess")
    """Candidate numbers of keys per tile of attention in registers, preferred first."""

    # Sort, top-k and scatter: `irees-gpu-lower-linalg-ext`, `irees-gpu-lower-scatters`. The unit is
    # one sequential access of a thread to shared memory. Costs are counted, not measured: they only
    # separate variants that differ by a factor of several.

    barrier: int = cost(4, "shared-memory accesses", "guess")
    """Cost of a barrier."""

    vote: int = cost(4, "shared-memory accesses", "guess")
    """Cost of a warp vote."""

    global_access: int = cost(4, "shared-memory accesses", "guess")
    """Cost of a global-memory access, for rows that do not fit into shared memory."""

    exchange: int = cost(8, "shared-memory accesses", "counted")
    """Cost of a compare-exchange: two keys and two origins are read and written."""

    digit_setup: int = cost(10, "shared-memory accesses", "counted")
    """Cost per digit of the prefix sums of counts, without barriers and counts of warps."""

    dependent_launch: int = cost(64, "shared-memory accesses", "guess")
    """Cost of a kernel launch that waits for the kernel before it."""

    assumed_updates: int = cost(1 << 16, "updates", "guess")
    """Assumed number of updates of a scatter if it is dynamic: large, so that many workgroups are
    used."""

    assumed_slice: int = cost(256, "elements", "guess")
    """Assumed elements per slice of a scatter if its size is dynamic."""

    scatter_bits: int = cost(24, "bits", "guess")
    """Sort-key bits of a scatter into a target of dynamic size, if the linear index fits at run
    time: few digits. Larger targets sort by the whole index."""

    network_row: int = cost(512, "elements", "guess")
    """Row length from which a sorting network uses as many threads as a radix sort."""

    selection_ratio: int = cost(4, "1", "guess")
    """Minimum ratio of the row length to k at which top-k does not sort the whole row."""

    counts_ahead: int = cost(8, "loads", "guess")
    """Counts that a thread loads at a time, to overlap their latency."""

    sort_threads: tuple[int, ...] = cost((256, 512, 1024), "threads", "derived: a thread per digit")
    """Threads of a workgroup that sorts a row in its registers."""

    sort_wide_threads: int = cost(256, "threads", "derived: a thread per digit")
    """Threads of a workgroup that sorts a tile of a long row."""

    sort_wide_workgroups: int = cost(3, "workgroups", "ptxas, sm_80 and sm_90: spills with 4")
    """Workgroups of `sort_wide_threads` per multiprocessor: 80 registers per thread."""

    assumed_row: int = cost(1 << 19, "elements", "guess")
    """Assumed length of a row that several workgroups sort, if it is dynamic."""

    sort_scan_threads: int = cost(256, "threads", "guess")
    """Threads that compute the prefix sums of one digit over the tiles of a row."""

    sort_items: tuple[int, ...] = cost((16, 12, 8, 4, 2), "elements", "derived: registers")
    """Candidate elements per thread for the tiles of a long row, largest first."""

    sort_item_bytes: int = cost(128, "bytes", "ptxas, sm_80 and sm_90: spills with more")
    """Maximum bytes of the elements of a thread in registers: words and origins."""

    sort_item: int = cost(32, "cycles", "counted: 80 instructions at 2.5 per cycle")
    """Cycles per warp and element of a thread to sort by a digit."""

    sort_count: int = cost(10, "cycles", "counted: 25 instructions at 2.5 per cycle")
    """Cycles per warp and element of a thread to count a digit."""

    sort_warp_setup: int = cost(60, "cycles", "counted: 150 instructions at 2.5 per cycle")
    """Cycles per warp to clear, scan and use the counts of a digit."""

    sort_tile_setup: int = cost(1000, "cycles", "guess: four barriers, two shared-memory chains")
    """Cycles per tile in which its warps wait for each other."""

    sorted_row: int = cost(4096, "elements", "guess")
    """Elements of a row that one workgroup sorts; longer rows are sorted in runs and merged."""

    shortest_run_ratio: int = cost(8, "1", "guess")
    """Maximum ratio of `sorted_row` to a run."""

    run_to_k_ratio: int = cost(4, "1", "guess")
    """Minimum ratio of a run to k for a top-k in runs."""

    # Scans: `irees-gpu-lower-scans`, `irees-gpu-select-strategy`.

    sector_bytes: int = cost(32, "bytes", "CUDA C++ Programming Guide: a sector of the L2 cache")
    """Bytes that one access to memory reads; elements farther apart need one access each."""

    wide_scan_threads: int = cost(256, "threads", "guess")
    """Threads per workgroup if many workgroups scan a row."""

    scan_waves: int = cost(2, "workgroups per multiprocessor", "guess")
    """Maximum waves of workgroups that scan a row together."""

    scan_element: int = cost(60, "ns", "estimated: a load and a store of one thread in order")
    """Cost per element of a row that one thread scans."""

    scan_tile: int = cost(1200, "ns", "estimated: a global load, two barriers, five shuffles")
    """Cost per tile of a row that a workgroup scans: its full latency, since nothing hides it."""

    scan_launch: int = cost(3000, "ns", "guess")
    """Cost of a second kernel that waits for the first."""

    resident_threads: int = cost(2048, "threads", "derived: threads of a multiprocessor")
    """Threads that a multiprocessor runs at a time."""

    assumed_scan: int = cost(1 << 16, "elements", "guess")
    """Assumed length of a scanned row if dynamic: large, since a short row loses only a launch."""

    # Few results: `irees-split-reductions`, `irees-decompose-attention`.

    least_slice: int = cost(2048, "iterations", "guess")
    """Minimum iterations of a slice of a reduction: fewer do not pay for a workgroup."""

    least_slices: int = cost(4, "slices", "guess")
    """Minimum slices for which a split reduction pays for its second kernel."""

    block_results: int = cost(1024, "results", "guess")
    """Minimum results of a contraction per workgroup."""

    tiled_features: int = cost(256, "features", "guess")
    """Maximum features of a query or a value for tiled attention."""

    private_elements: int = cost(32, "elements", "guess")
    """Exclusive maximum size of a tensor that a thread keeps in registers
    (`irees-gpu-alloc-private-memory-for-dps-ops`)."""


NVIDIA = NvidiaCosts()
"""The costs that passes read."""
