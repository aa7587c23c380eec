"""
The compiler, as a list of phases.

Each phase is a tuple of passes and the dialects that it may leave. `xdsl-opt -p
irees-pipeline` runs all of it, `irees-pipeline{to=stream}` up to and with a phase,
`irees-pipeline{start=stream}` from the one after it; every pass can be run alone by its name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irees.dialects.resources import publish_resources
from irees.errors import ArgumentError, InternalError, UnsupportedError
from irees.options import Options
from irees.phase import Announcement, Listener, Phase, Ready
from irees.remarks import remark
from irees.rewrites import limited
from irees.target import GpuFacts, Target
from irees.transforms import load_pass
from irees.transforms.utils.upstream_passes import (
    CountedCanonicalizePass,
    CountedCommonSubexpressionElimination,
    KeepingLowerAffinePass,
)

TENSORS = frozenset(
    "builtin func linalg tensor iree_linalg_ext arith math complex scf cf util affine".split()
)
HOST = frozenset("builtin func flow arith math complex scf cf util memref affine".split())
KERNELS = HOST | frozenset("stream vector gpu nvgpu nvvm irees x86vector".split())


def a(name: str, **options: object) -> ModulePass:
    """The pass `irees-<name>` with these options."""
    return load_pass(f"irees-{name}")(**options)


def from_importers() -> tuple[ModulePass, ...]:
    """Functions of one block that call no other, on ops of linalg, tensor, scf and the like."""
    names = """
        convert-tm-tensor-to-linalg-ext convert-ml-program-to-util evaluate-initializers
        convert-util-to-func convert-flow-to-tensor lift-cf-to-scf simplify-scf inline-calls
        drop-lowering-configs verify-input-legality
    """
    return tuple(map(a, names.split()))


def device_phases(options: Options) -> tuple[Phase, ...]:
    """The phases that cut a program for several devices into one program for each."""
    names = tuple(options.device_specs())
    stages = options.pipeline_stages
    shares = {"stages": stages, "balance": options.pipeline_balance, "devices": names}
    return (
        Phase(
            "input",
            "every accepted dialect becomes linalg, tensor, iree_linalg_ext, arith and the like",
            from_importers(),
            TENSORS | {"flow"},
            fault=UnsupportedError,
        ),
        Phase(
            "placement",
            "every op has a device, and what it reads elsewhere is transferred",
            (
                a("wrap-entry-points"),
                *([a("partition-pipeline", **shares)] if stages else []),
                a("place-globals", devices=names),
                a("lower-spanning-scf"),
                *([a("annotate-affinities")] if options.annotate_input_affinities else []),
                a("place-transfers", devices=names),
            ),
            TENSORS | {"hal", "flow"},
        ),
        Phase(
            "devices",
            "each device gets a module of its own, and the program says who runs what when",
            (a("outline-device-segments", devices=names),),
            TENSORS | {"hal", "flow", "irees"},
        ),
    )


def phases(options: Options) -> tuple[Phase, ...]:
    """The phases of a compilation, in order."""
    if options.devices:
        return device_phases(options)
    target = options.target if isinstance(options.target, Target) else Target.parse(options.target)
    strict = options.fp == "strict"
    # Larger ones are never written by a GPU, which sums up in another order for that.
    largest_scores = 0 if target.gpu is None or strict else target.gpu.l2_bytes
    for_cpu, vectors = target.gpu is None, {"vector_bytes": target.vector_bytes}
    blocked_layouts = a("propagate-blocked-layouts", **vectors)
    winograd = a("convert-conv2d-to-winograd", **vectors)
    # Those of floats have an order of their own, and take subnormals for zeros.
    dots = target.integer_dot_products if strict else target.dot_products
    registers = target.vector_registers
    busy = target.gpu.multiprocessors if target.gpu else 0
    tiles = {"enough_tiles": busy, "small_tile": target.gpu.launch_bytes} if target.gpu else {}
    panels = a("pack-constant-operands", registers=registers, dot_products=dots, **vectors)
    return (
        Phase(
            "input",
            "every accepted dialect becomes linalg, tensor, iree_linalg_ext, arith and the like",
            (
                *from_importers(),
                a("drop-transfers"),
                *([a("annotate-affinities")] if options.annotate_input_affinities else []),
                KeepingLowerAffinePass(),
            ),
            TENSORS,
            fault=UnsupportedError,
        ),
        Phase(
            "global-opt",
            "named ops become generics, shapes become values, elementwise chains become one op",
            (
                *map(a, ("inline-custom-ops", "convert-elementwise-to-linalg", "expand-arith")),
                *map(a, ("keep-inits", "insert-shape-checks", "erase-unused-results")),
                a("initialize-empties"),
                a("raise-special-ops"),
                a("decompose-selections"),
                a("decompose-moves"),
                a("decompose-packs"),
                a("decompose-im2col"),
                a("decompose-winograd"),
                a("decompose-fft"),
                a("decompose-attention", largest=largest_scores, reciprocal=not strict),
                a("decompose-exp-reduction"),
                a("decompose-softmax", use_fusion=False, from_infinity=True, reciprocal=not strict),
                a("decompose-tensor-ops"),
                a("generalize-linalg-named-ops"),
                # Behind all that writes bodies, before what looks into them.
                a("store-narrow-types"),
                a("resolve-shaped-type-result-dims"),
                CountedCanonicalizePass(),
                CountedCommonSubexpressionElimination(),
                a("optimize-int-arithmetic"),
                # Behind what makes `i mod 2` the bare `i` of a loop of two iterations.
                a("clamp-extracts"),
                *([] if strict else [a("widen-accumulators")]),
                *map(a, ("fold-unit-extent-dims", "compute-extracted-elements", "fold-constants")),
                *map(a, ("fold-constant-gathers", "sink-reshapes", "fuse-elementwise-ops")),
                a("fold-constants"),
                *([] if strict or not for_cpu else [a("fold-reciprocals")]),
                a("fold-affine-epilogues", scale=not strict),
                *([blocked_layouts, winograd] if for_cpu and not strict else []),
                *([panels] if for_cpu else []),
                *([] if for_cpu or strict else [a("split-reductions", workgroups=busy)]),
                *([] if for_cpu else [a("split-sorts", workgroups=busy)]),
                *([a("widen-half-arith", elide=not strict)] if for_cpu else []),
                CountedCanonicalizePass(),
                CountedCommonSubexpressionElimination(),
                *([] if strict or not for_cpu else [a("merge-variance-passes")]),
                *([a("fuse-sibling-reductions")] if for_cpu else []),
            ),
            TENSORS | {"irees"},
        ),
        Phase(
            "dispatch-creation",
            "ops are grouped into kernels, each an executable of its own; equal ones are merged",
            (
                a("annotate-dispatches"),
                a("form-dispatch-regions", one_tile_loop=True, **tiles),
                a("outline-dispatch-regions"),
                *([a("tie-dispatch-operands")] if for_cpu else []),
                a("deduplicate-executables"),
                a("annotate-dispatches"),
                *([a("trace-dispatch-tensors")] if options.trace_dispatch_tensors else []),
                *([a("trace-dispatch-tensors", tensors=False)] if options.time_dispatches else []),
            ),
            TENSORS | {"irees", "flow", "iree_tensor_ext"},
        ),
        Phase(
            "stream",
            "the host program works on buffers",
            (
                a("lower-util-ops"),
                a("convert-to-stream"),
                CountedCommonSubexpressionElimination(),
                a("plan-arena"),
            ),
            TENSORS | {"irees", "flow", "iree_tensor_ext", "stream", "memref"},
        ),
        Phase(
            "codegen",
            "each executable becomes loops over vectors and scalars",
            (
                a("bufferize-dispatch"),
                *([a("apply-tuning", tuning=options.tuning)] if options.tuning else []),
                *(
                    cpu_codegen(target, strict)
                    if target.gpu is None
                    else gpu_codegen(target.gpu, strict, options)
                ),
            ),
            KERNELS,
            each_executable=True,
        ),
        Phase(
            "verification",
            "every access is shown to be inside of its buffer, or guarded",
            (a("verify-accesses"),),
            KERNELS,
        ),
    )


def cpu_codegen(target: Target, strict: bool) -> tuple[ModulePass, ...]:
    """Kernels on buffers become loops over the vectors of a CPU."""
    registers = {"vector_bytes": target.vector_bytes, "registers": target.vector_registers}
    dots = target.integer_dot_products if strict else target.dot_products
    order, large = {"reassociate": not strict}, target.l3_bytes // 2
    shares = {"shares": 2 * target.threads, "registers": target.vector_registers}
    return (
        a("select-strategy", threads=target.threads, l2_bytes=target.l2_bytes, **registers),
        a("tile-and-distribute"),
        a("lower-linalg-ext-to-loops", together=(64, 16)),
        a("lower-contractions", dot_products=dots, **order, **registers),
        a("vectorize-structured-ops", **order, vector_bytes=target.vector_bytes, large=large),
        a("lower-gather"),
        a("erase-unread-buffers"),
        a("expand-math", lookups=not strict and target.vector_bytes >= 64),
        a("pipeline-workgroups", tile_bytes=target.l1_bytes, **shares),
        a("interleave-chains"),
        a("use-nontemporal-stores", limit=large),
        a("prefetch-next-tiles", limit=target.l2_bytes, tile_bytes=target.l1_bytes),
        a("prefetch-outputs", limit=target.l2_bytes, tile_bytes=target.l1_bytes),
        a("prefetch-streams", limit=target.l2_bytes),
        a("cpu-check-resource-usage"),
    )


def gpu_codegen(gpu: GpuFacts, strict: bool, options: Options) -> tuple[ModulePass, ...]:
    """Kernels on buffers become loops over workgroups, and those loops over threads."""
    matrices = max(gpu.shared_bytes, gpu.shared_opt_in_bytes // 2)
    machine = {"workgroups": gpu.multiprocessors, "small_tile": gpu.launch_bytes}
    room = {"shared_bytes": gpu.shared_bytes, "matrix_shared_bytes": matrices}
    room["warpgroup_shared_bytes"] = gpu.shared_opt_in_bytes
    # An f32 product is one of f32, unless its operands may be rounded.
    kinds = tuple(kind for kind in gpu.matrix_kinds if kind != "tf32" or options.allow_tf32)
    matrix = {"matrix_kinds": kinds, "asynchronous": gpu.asynchronous_copies}
    return (
        a(
            "gpu-select-strategy",
            reassociate=not strict,
            warpgroup_kinds=gpu.warpgroup_kinds,
            # Some blocks are only for those.
            boxes="irees-gpu-use-bulk-copies" not in options.disable_pass,
            **machine,
            **matrix,
            **room,
        ),
        a("tile-and-distribute"),
        a("gpu-form-workgroups"),
        a("gpu-lower-attention", shared_bytes=matrices, **matrix),
        a("gpu-lower-linalg-ext", shared_bytes=matrices, workgroups=gpu.multiprocessors),
        a("lower-linalg-ext-to-loops"),
        a("gpu-use-bulk-copies"),
        a("gpu-stream-k", reassociate=not strict, **machine),
        a("gpu-lower-contractions", **room),
        a("gpu-lower-reductions", reassociate=not strict),
        a("gpu-lower-transposes"),
        a("gpu-distribute-to-threads"),
        a("erase-unread-buffers"),
        a("gpu-infer-memory-space", limit=gpu.shared_bytes),
        a("lower-gather"),
        a("expand-math", native=() if strict else gpu.native_math),
        a("gpu-check-resource-usage", limit=gpu.shared_opt_in_bytes),
    )


OPTIONAL = frozenset(
    """
    irees-erase-unused-results irees-raise-special-ops irees-optimize-int-arithmetic canonicalize
    cse irees-fold-unit-extent-dims irees-compute-extracted-elements irees-fold-constants
    irees-fold-constant-gathers irees-sink-reshapes irees-fuse-elementwise-ops
    irees-merge-variance-passes irees-fold-reciprocals irees-fuse-sibling-reductions
    irees-widen-accumulators irees-widen-half-arith irees-fold-affine-epilogues
    irees-propagate-blocked-layouts irees-tie-dispatch-operands irees-convert-conv2d-to-winograd
    irees-pack-constant-operands irees-deduplicate-executables irees-annotate-dispatches
    irees-lower-contractions irees-pipeline-workgroups irees-interleave-chains
    irees-use-nontemporal-stores irees-prefetch-next-tiles irees-prefetch-outputs
    irees-prefetch-streams irees-gpu-lower-linalg-ext irees-gpu-use-bulk-copies
    irees-gpu-lower-contractions irees-gpu-lower-reductions irees-gpu-lower-transposes
    irees-gpu-stream-k irees-split-reductions irees-split-sorts
    """.split()
)
"""
Passes that only make programs faster or smaller. Each may be left out, by `disable_pass` or
because it failed, and the program is still right; so may each single rewrite of theirs, by
`rewrite_limit`, since they ask `irees.rewrites.may_rewrite` first.
"""

PHASES = phases(Options())
"""The phases with default options."""


def run_phases(
    ctx: Context,
    module: ModuleOp,
    options: Options,
    *,
    start: str | None = None,
    to: str | None = None,
    before: Announcement | None = None,
    listener: Listener | None = None,
    after: Listener | None = None,
    ready: Ready | None = None,
) -> frozenset[str]:
    """
    Runs the pipeline on a module in place, after phase `start` and up to and with phase `to`.
    Returns the optional passes that failed and were left out.

    `before` and `listener` hear of every pass, `after` of every phase and `ready` of every
    executable that is done; of some twice when the rest starts again without a pass that failed.
    Raises ArgumentError when there is no phase of a name, or for a pass that cannot be disabled.
    """
    todo = phases(options)
    names = [p.name for p in todo]
    for name in (start, to):
        if name is not None and name not in names:
            raise ArgumentError(f"no phase {name!r}", hint=f"use one of {', '.join(names)}")
    first = 0 if start is None else names.index(start) + 1
    last = len(todo) if to is None else names.index(to) + 1
    for name in options.disable_pass:
        if name not in OPTIONAL:
            raise ArgumentError(
                f"pass {name!r} cannot be left out",
                hint=f"use one of {', '.join(sorted(OPTIONAL))}",
            )
    without, verify_each, pristine = set(options.disable_pass), False, module.clone()
    while True:
        try:
            with limited(options.rewrite_limit):
                for phase in todo[first:last]:
                    chosen = {"without": without, "verify_each": verify_each}
                    phase.run(ctx, module, listener, before, ready, **chosen)
                    if after is not None:
                        after(phase.name, module, 0.0)
            return frozenset(without.difference(options.disable_pass))
        except InternalError as error:
            # An optional pass that fails is left out, and the module starts again as it came.
            # What a whole phase broke is looked for pass by pass first.
            name = getattr(error, "pass_name", None)
            if name is None and not verify_each:
                verify_each = True
            elif name in OPTIONAL and name not in without:
                remark("failed", name, module, f"left out: {error}")
                without.add(name)
                # Other passes may count on it.
                todo = phases(replace(options, disable_pass=tuple(without)))
            else:
                raise
            restore(module, pristine)


def restore(module: ModuleOp, pristine: ModuleOp) -> None:
    """Makes a module what it was, in place."""
    fresh = pristine.clone()
    module.attributes = fresh.attributes
    module.properties = fresh.properties
    module.detach_region(module.body).drop_all_references()
    module.add_region(fresh.detach_region(fresh.body))


@dataclass(frozen=True)
class IreesPipelinePass(ModulePass):
    """The whole pipeline, or the part between two phases, as one pass."""

    name = "irees-pipeline"

    target: str = "cpu"
    fp: str = "default"
    allow_tf32: bool = False
    opt_level: int = 2
    rewrite_limit: int | None = None
    to: str | None = None
    start: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        options = Options(
            target=self.target,
            fp=self.fp,
            allow_tf32=self.allow_tf32,
            opt_level=self.opt_level,
            rewrite_limit=self.rewrite_limit,
        )
        run_phases(ctx, op, options, start=self.start, to=self.to)
        # Constants that passes made are known to irees only; xdsl-opt prints its own table.
        publish_resources(op)

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[ModulePass, ...]:
        # xdsl-gui would otherwise compile a clone at every step to see what changes.
        return ()
