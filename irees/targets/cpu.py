"""The cost model of CPUs: x86 cores with AVX2 or AVX-512, and ARM cores with NEON."""

from __future__ import annotations

from dataclasses import dataclass

from irees.targets import cost


@dataclass(frozen=True)
class CpuCosts:
    """
    Costs and thresholds of the passes for CPUs. MC, KC and NC, MR and NR are the block sizes of
    BLIS (Van Zee and van de Geijn, 2015): C is M x N, A is M x K, B is K x N.
    """

    # Micro-kernels: `irees.analysis.register_blocking`.

    fma_latency: float = cost(4.0, "cycles", "instruction tables of Skylake-X, Zen 3 and Zen 4")
    """Latency of a multiply-add."""

    step_overhead: float = cost(0.3, "cycles", "guess")
    """Loop overhead of a step of K."""

    load: float = cost(0.2, "cycles", "guess")
    """Delay of concurrent multiply-adds by a load, on cores that issue two loads per cycle."""

    embedded_broadcast: float = cost(0.06, "cycles", "guess")
    """Delay by an embedded broadcast, which a multiply-add uses if no register is free."""

    panel_load: float = cost(0.25, "cycles", "guess")
    """Delay by a vector of B. It comes from the L2 cache, since a panel exceeds the L1 cache."""

    broadcast_registers: int = cost(2, "registers", "machine code of C compilers")
    """Registers reserved for broadcasts that cannot be embedded: the current row's and the next
    row's. With only one, C compilers reload the vectors of B for each row."""

    most_block_rows: int = cost(14, "rows", "guess")
    """Largest MR."""

    most_block_vectors: int = cost(4, "vectors", "guess")
    """Largest number of vectors in NR."""

    assumed_extent: int = cost(1024, "elements", "guess")
    """Assumed size of dynamic dims of a matrix."""

    # Cache blocking of contractions: `irees-lower-contractions`, `irees-select-strategy`.

    kc: int = cost(512, "steps of K", "guess")
    """KC for f32, deep enough to amortize reading and writing C once per slice of K."""

    least_kc: int = cost(256, "steps of K", "guess")
    """Minimum steps of K per slice: below, loading and storing C once more does not pay off."""

    mc: int = cost(64, "rows", "guess")
    """MC: rows of A that share one pass over the panels of B, if M exceeds twice as many. An
    MC x KC block of A leaves most of the L2 cache to the current panel of B and the next one,
    which arrives from L3 within a few row blocks."""

    unpacked_rows: int = cost(4, "rows", "guess")
    """Largest M for which B is not packed: packing would cost as much as the multiplication."""

    direct_rows: int = cost(16, "rows", "measured: grouped convolutions of 14x14 to 56x56, Zen 5")
    """Largest M for which the windows of a convolution are read where they are, not packed."""

    joined_rows_ratio: float = cost(0.99, "1", "guess")
    """Ratio of estimated cycles at which merging the row loops pays for the extra index division
    (0.99: 1 % faster)."""

    row_pointers: int = cost(8, "rows", "derived: 16 general registers")
    """Maximum rows per block whose addresses fit into registers with those of B and C."""

    l1_way_bytes: int = cost(4096, "bytes", "x86: 64 sets of 64-byte lines")
    """Size of one way of the L1 cache: addresses that are congruent modulo it map to one set."""

    l1_ways: int = cost(8, "cache lines", "x86: the ways of an L1 cache of 32 KiB")
    """Maximum rows of a block if all of them map to one set of the L1 cache: their lines are read
    for as many steps of K as a line has elements."""

    whole_row_bytes: int = cost(3 << 10, "bytes", "guess")
    """Maximum bytes of a row of A for a block of rows to stay in the L1 cache over all of K."""

    near_panel_bytes: int = cost(16 << 10, "bytes", "derived: half of an L1 cache of 32 KiB")
    """Maximum bytes of a panel of B that leaves room for rows of A in the L1 cache."""

    large_slice_bytes: int = cost(512 << 10, "bytes", "guess")
    """Bytes of A from which it evicts the panels of B from the L2 cache."""

    tile_columns: int = cost(512, "columns", "guess")
    """Maximum columns of a contraction's tile."""

    least_tile_rows: int = cost(64, "rows", "guess")
    """Minimum rows per tile: packing a vector of B costs as much as one or two rows of products."""

    least_last_tile_rows: int = cost(16, "rows", "guess")
    """The same if columns are tiled first."""

    strip_factor: int = cost(8, "1", "guess")
    """Factor on `tile_columns` if rows are strip-mined: a strip stays in the L2 cache for all
    panels, which need only fit into the L3 cache."""

    stream_factor: int = cost(4, "1", "guess")
    """Factor on `tile_columns` if few rows stream an unpacked B once, along its rows."""

    pack_factor: int = cost(4, "1", "guess")
    """Factor on the rows that share packed columns without strips: reading A from the L3 cache
    costs less than packing B again."""

    tiles_per_thread: int = cost(4, "tiles", "guess")
    """Tiles per thread if nothing is packed, for load balance."""

    load_imbalance: float = cost(1.02, "1", "guess")
    """Load-imbalance tolerance: larger tiles win if the slowest thread is within 2 % of the
    optimum."""

    # Streams and prefetching.

    streams: int = cost(4, "rows", "guess")
    """Rows of a matrix read concurrently if each element is used once. Several sequential streams
    get more memory bandwidth than one, and streams along rows more than accesses across rows."""

    streamed_bytes: int = cost(128 << 10, "bytes", "guess")
    """Minimum size of such a matrix: it then comes from memory or from a shared cache."""

    prefetched_bytes: int = cost(64 << 10, "bytes", "guess")
    """Minimum size of B for prefetching panels to pay off."""

    assumed_row_blocks: int = cost(8, "row blocks", "guess")
    """Row blocks that prefetch a panel if their number is dynamic. If there are more, the later
    ones prefetch the last part again; if there are fewer, some of the panel is not prefetched."""

    near_bytes: int = cost(32 << 10, "bytes", "derived: an L1 cache of 32 KiB")
    """Maximum bytes of a panel, plus a block of rows of A if B is constant, that stay in the L1
    cache until the next block."""

    l1_prefetch_steps: int = cost(8, "steps of K", "guess")
    """Steps of K that cover the latency from the L2 to the L1 cache."""

    stream_prefetch_bytes: int = cost(4096, "bytes", "guess")
    """Distance of a prefetch in a stream: some ten iterations of a compute-bound loop take as long
    as memory."""

    bandwidth_bound_ops: int = cost(
        16, "vector operations per store", "nontemporal stores on Zen 4"
    )
    """Maximum vector operations per store of a bandwidth-bound loop."""

    # Instruction-level parallelism: `irees-interleave-chains`, `irees-vectorize-structured-ops`.

    scheduler_ops: int = cost(112, "vector operations", "guess")
    """Vector operations that the schedulers of a core hold. Four chains are interleaved if they
    fit together; longer ones only in pairs."""

    chain_unroll: tuple[int, ...] = cost((4, 3, 2), "iterations", "guess")
    """Unroll factors of a loop with one chain, preferred first; the factor divides the trip
    count."""

    accumulators: int = cost(4, "vectors", "derived: the latency of a vector addition in cycles")
    """Accumulators of a reduction, per result."""

    least_accumulators: int = cost(2, "vectors", "guess")
    """Minimum accumulators per result if several results are reduced together."""

    jammed_results: int = cost(8, "results", "derived: latency times throughput of an addition")
    """Maximum adjacent results reduced together: enough to hide the latency of an addition."""

    longest_load_stride: int = cost(4, "elements", "guess")
    """Maximum stride of a vector load: it also loads the elements in between."""

    least_lanes: int = cost(4, "lanes", "derived: a vector of 128 bits of f32")
    """Fewest lanes of the vectors in the epilogue of a dynamic reduction."""

    # Tiles of elementwise ops, reductions and transposes: `irees-select-strategy`.

    chunk: int = cost(16384, "iterations", "guess")
    """Iterations of an elementwise op or reduction that make a tile large enough for a thread."""

    fused_chunk: int = cost(2048, "iterations", "derived: an L1 cache of 32 KiB")
    """The same for fused ops: in f32, the input tile, the intermediate values and the prefetched
    next tile take three quarters of an L1 cache. With two rows per tile, the loop over one hides
    the latency of the horizontal sum of the other."""

    least_columns: int = cost(64, "elements", "derived: 4 vectors of AVX-512")
    """Minimum columns of a tile that reduces columns. Each row of a tile is read in one piece, and
    four accumulators hide the latency of an addition."""

    most_columns: int = cost(256, "elements", "guess")
    """Maximum columns of such a tile, for tiles that divide the row."""

    panel_rows: int = cost(8, "rows", "measured: AMD EPYC, sums of columns of 1000x1000 f32")
    """Rows that a reduction of columns adds to its results at a time: enough to hide loads and
    stores of the results, and few enough streams for the prefetchers of a core."""

    least_panels: int = cost(2, "panels", "guess")
    """Minimum panels; with fewer rows the results stay in registers."""

    panel_columns: int = cost(2, "vectors", "guess")
    """Minimum columns of a panel."""

    scanned_rows: int = cost(4, "rows", "derived: latency of an addition")
    """Rows that are scanned in one loop."""

    log_sum_chunk: int = cost(128, "elements", "measured: logcumsumexp of rows, Zen 5")
    """Elements of a row that share one shift in a scan of logarithms of sums. Longer chunks more
    often have a maximum that is too far from their first result."""

    shared_ops: int = cost(8, "ops", "guess")
    """Minimum loop-invariant scalar ops of a body for the loop to become the innermost."""

    whole_shared_ops: int = cost(32, "ops", "measured: samples of images and spectra, Zen 5")
    """Minimum loop-invariant ops of a body for the loop to stay untiled."""

    ops_per_gather: int = cost(12, "ops", "measured: gathers, tables and samples of images, Zen 5")
    """Elementwise ops of a body per gather from which on vectors are faster than scalars."""

    ops_per_strided_load: int = cost(4, "ops", "measured: coordinates of samples, Zen 5")
    """The same per load whose lanes are elements with a constant stride."""

    unrolled_window: int = cost(98, "iterations", "derived: 14 rows and 7 taps")
    """Maximum iterations of a jammed loop and of the reduction that slides along it, unrolled."""

    sliding_results: int = cost(16, "rows", "measured: depthwise 3x3 to 7x7 of 56x56, Zen 5")
    """Maximum jammed rows if a reduction slides along them: more than hide the latency, because
    each row that is loaded then serves more results."""

    unaligned_load: float = cost(2.0, "loads", "derived: a vector that crosses cache lines, Zen 5")
    """Loads of aligned vectors that take as long as the load of a vector at any address."""

    jammed_shared_ops: int = cost(3, "ops", "guess")
    """Scalar ops and loads that rows must share for several to run in one loop."""

    interleaved_vectors: int = cost(
        4, "vectors", "derived: vectors, their parts and shuffles in 16"
    )
    """Maximum trip count of a last loop whose iterations become interleaved vectors."""

    jammed_rows: int = cost(4, "rows", "measured: AMD EPYC, 300 columns of 256 rows by index")
    """Maximum rows that run in one loop because they share a part of the body."""

    transposed_rows: int = cost(8, "rows", "measured: distances of 4 to 64 rows, Zen 5")
    """Minimum results that read each element of an operand whose copy is transposed for them."""

    transposed_columns: int = cost(32, "elements", "measured: distances to 16 to 64 rows, Zen 5")
    """Minimum adjacent results for which an operand is transposed."""

    assumed_trip_count: int = cost(256, "iterations", "guess")
    """Assumed trip count of dynamic loops in tile-size selection."""

    runs_per_thread: int = cost(2, "runs of tiles", "guess")
    """Runs of software-pipelined tiles per thread, so that a thread that is done steals one."""

    written_tile: int = cost(64, "elements", "guess")
    """Minimum tile of a transpose along the loop that writes contiguously."""

    written_runs: int = cost(4, "1", "guess")
    """Maximum multiple of `written_tile` if enough tiles remain, so that a thread writes long
    contiguous runs."""

    read_tile: int = cost(4096, "elements", "guess")
    """Maximum tile of a transpose along the loop that reads contiguously."""

    short_read_tile: int = cost(1024, "elements", "guess")
    """The same if `read_tile` leaves few tiles."""

    balanced_tiles: int = cost(16, "tiles", "guess")
    """Number of tiles that balances well over threads."""

    few_tiles: int = cost(4, "tiles", "guess")
    """Number of tiles below which a transpose uses `short_read_tile`."""

    # Transposes within a tile: `irees-vectorize-shuffled-ops`.

    strip_lines: int = cost(16, "cache lines", "Zen 4: 4 lines take 1.2 times as long")
    """Strip width of the input: runs long enough for full memory bandwidth, written to as many
    output rows."""

    crowded_stride: int = cost(2048, "bytes", "derived: half of one way of the L1 cache")
    """Row strides that are multiples of it map to one or two sets of an L1 cache."""

    aligned_row_tiles: int = cost(8, "tiles", "guess")
    """Minimum tiles per row for the extra tile of alignment to be cheap."""

    transposed_vectors: int = cost(16, "vectors", "derived: 32 registers")
    """Maximum vectors per tile: a shuffle round needs as many registers again."""

    # Top-k: `irees-lower-linalg-ext-to-loops`.

    topk_groups: tuple[int, ...] = cost((64, 16), "elements", "guess")
    """Elements that top-k compares at once with the worst kept one: 64, then, if any of them wins,
    groups of 16, then single elements."""

    topk_selected: int = cost(20, "elements", "measured: topk of rows, Zen 5")
    """Least K for which top-k may select by a bound instead of inserting."""

    topk_spare: int = cost(2, "survivors per wanted element", "guess")
    """Survivors of the bound of top-k: fewer take more counts, more take longer to order."""

    topk_moves: float = cost(0.35, "moves per element", "measured: topk of rows, Zen 5")
    """Elements that insertion may move per element of a row, for top-k not to select by a bound."""

    # Layouts and forms of ops: `irees-propagate-blocked-layouts`, `irees-pack-constant-operands`,
    # `irees-convert-conv2d-to-winograd`.

    layout_copy: int = cost(128, "flops per element", "measured: convolutions of 14x14 to 112x112")
    """Cost of copying one element into another layout. The comparison assumes that a blocked layout
    saves all of a convolution's time. It saves only a part, but a copy between two ops that could
    fuse costs more than the two cycles."""

    blocked_share: float = cost(0.5, "1", "measured: convolutions of 14x14 to 112x112, Zen 5")
    """Share of that for convolutions without a window, by channels, or of few output channels."""

    assumed_dim: int = cost(64, "elements", "guess")
    """Assumed size of a dynamic dim in costs of layouts."""

    direct_cycles: float = cost(1.15, "1", "measured: groups of 8 and 16 channels, Zen 5")
    """Cycles of a convolution in vectors of adjacent pixels, relative to its multiply-adds, in the
    unit of the estimate of micro-kernels, which is below their cycles."""

    scattered_store: float = cost(0.5, "cycles", "guess")
    """Cycles to write one element of the output with a scalar store."""

    packed_copy: float = cost(0.125, "cycles", "guess")
    """Cycles per element to pack at run time with vector copies."""

    unfolded_copy: float = cost(1.25, "cycles", "guess")
    """Cycles per element to pack at run time with scalar copies."""

    winograd_transform: float = cost(4.4, "cycles", "measured, processor not recorded")
    """Cycles to transform one tile element of one vector of channels, to or from the Winograd
    domain, memory traffic included."""

    filter_bandwidth: float = cost(4.0, "bytes per cycle", "guess")
    """Read bandwidth of a core for filters that are not in any cache."""

    winograd_gain: float = cost(1.15, "1", "guess")
    """Ratio of estimated cycles at which the Winograd form pays off."""

    strided_read: float = cost(
        2.0, "1", "derived: 2 loads, a permutation, the op; else 1 load, the op"
    )
    """Cycles per element that is read with a stride along the lanes, relative to a plain read."""

    # Groups of ops: `irees-form-tile-regions`, `irees-tile-attention-reduction`.

    enough_tiles: int = cost(16, "tiles", "guess")
    """Minimum number of independent tiles that fusion must leave a group."""

    common_share: int = cost(16, "1", "guess")
    """Fusion that loses a parallel loop must save at least this fraction of the bytes."""

    padded_tile_bytes: int = cost(256 << 10, "bytes", "derived: a quarter of an L2 cache of 1 MiB")
    """Most bytes of a padded tile that a convolution by channels or groups reads from the cache."""

    least_masked_columns: int = cost(256, "columns", "guess")
    """A product of masked scores is computed with the scores if they have this many columns."""

    masked_tile_rows: int = cost(
        72, "rows", "measured: AMD EPYC, causal attention of 512 to 2048 keys"
    )
    """Most rows of a tile of masked scores; a tile computes the columns that any row sees."""

    attention_keys: int = cost(
        256, "keys", "8 heads, 2048 queries and keys, f32: 64 keys take 1.7 times as long"
    )
    """Keys per block of attention."""


CPU = CpuCosts()
"""The costs that passes read."""
