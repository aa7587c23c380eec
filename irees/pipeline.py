"""
The compiler, as a list of phases.

Each phase is a tuple of passes and the dialects that it may leave. `xdsl-opt -p
irees-pipeline` runs all phases, `irees-pipeline{to=stream}` those up to and including a phase,
`irees-pipeline{start=stream}` those after it. Every pass can also be run alone, by its name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irees.accelerators import accelerator
from irees.dialects.irees_target import assign_target, drop_target
from irees.dialects.resources import publish_resources
from irees.errors import ArgumentError, InternalError, PluginError, UnsupportedError
from irees.hooks import NO_HOOKS, Hooks
from irees.insertion import insertions_of
from irees.layers import shorten
from irees.options import Options
from irees.phase import Phase
from irees.places import PART, InsertedPass, inserted_passes, is_optional, with_insertions
from irees.remarks import collect, remark, tell
from irees.rewrites import is_observed, limited
from irees.target import Target
from irees.transforms import load_pass
from irees.transforms.utils.upstream_passes import OWN as UPSTREAM

TENSORS = frozenset(
    "builtin func linalg tensor iree_linalg_ext irees arith math complex scf cf util affine".split()
)
HOST = frozenset("builtin func flow arith math complex scf cf util memref affine".split())
KERNELS = HOST | frozenset("stream vector gpu nvgpu nvvm irees x86vector".split())


def a(name: str, **options: object) -> ModulePass:
    """Returns the pass `irees-<name>` with these options."""
    return load_pass(f"irees-{name}")(**options)


def from_importers(options: Options) -> tuple[ModulePass, ...]:
    """Returns passes that lower input dialects to call-free, single-block functions on tensors."""
    names = """
        convert-tm-tensor-to-linalg-ext convert-ml-program-to-util evaluate-initializers
        convert-util-to-func convert-flow-to-tensor lift-cf-to-scf simplify-scf inline-calls
        drop-lowering-configs
    """
    return (
        *map(a, names.split()),
        a("raise-buffers", in_place=not options.trace_dispatch_tensors),
        a("legalize-kernels"),
        a("decompose-plugin-ops", plugins=options.plugins),
        a("verify-input-legality"),
    )


def device_phases(options: Options) -> tuple[Phase, ...]:
    """Returns the phases that split a multi-device program into one program per device."""
    names = tuple(options.device_specs())
    stages = options.pipeline_stages
    shares = {"stages": stages, "balance": options.pipeline_balance, "devices": names}
    return (
        Phase(
            "input",
            "lowers every accepted dialect to linalg, tensor, iree_linalg_ext, arith and the like",
            from_importers(options),
            TENSORS | {"flow"},
            fault=UnsupportedError,
        ),
        Phase(
            "placement",
            "assigns a device to every op, and transfers operands from other devices",
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
            "outlines a module per device; the remaining program is the schedule",
            (a("outline-device-segments", devices=names),),
            TENSORS | {"hal", "flow"},
        ),
    )


DISPATCHES = "dispatch-creation"
"""The phase that partitions a program into kernels."""

GLOBAL_OPT = """
    inline-custom-ops convert-elementwise-to-linalg expand-arith keep-inits insert-shape-checks
    erase-unused-results initialize-empties raise-special-ops split-arg-compares
    decompose-selections decompose-moves decompose-packs decompose-im2col decompose-winograd
    decompose-fft
"""
"""Named ops become generics."""

SHAPES = """
    decompose-tensor-ops generalize-linalg-named-ops store-narrow-types
    resolve-shaped-type-result-dims canonicalize cse optimize-int-arithmetic clamp-extracts
    widen-accumulators
"""
"""
`store-narrow-types` runs after the passes that create bodies and before those that match them;
`clamp-extracts` after the passes that simplify `i mod 2` to `i` in a loop of two iterations.
"""

FUSION = """
    expand-complex-contractions expand-complex sort-out-of-place fold-unit-extent-dims
    bubble-up-extract-slices compute-extracted-elements fold-constants fold-constant-gathers
    fold-transposes sink-reshapes fuse-elementwise-ops tabulate-index-expressions
    transpose-shared-rows fold-constants fold-reciprocals fold-affine-epilogues
    propagate-blocked-layouts fold-unit-extent-dims convert-conv2d-to-winograd split-windows
    pack-constant-operands split-reductions split-sorts widen-half-arith canonicalize cse
    merge-variance-passes fuse-sibling-reductions narrow-index-arithmetic
"""
"""
Elementwise chains become one op; constants are folded, and packed for the target. Packing into
blocks leaves reshapes of unit dims, which `fold-unit-extent-dims` moves away from paddings.
"""

CPU_CODEGEN = """
    inline-kernels select-strategy tile-and-distribute skip-masked-columns cpu-lower-scans
    cpu-lower-scatters lower-linalg-ext-to-loops lower-contractions pack-panels
    lower-micro-kernels widen-booleans join-contiguous-loops vectorize-shuffled-ops
    vectorize-structured-ops lower-gather erase-unread-buffers expand-casts expand-divisions
    expand-math pipeline-workgroups interleave-chains lower-vector-reductions use-nontemporal-stores
    prefetch-next-tiles prefetch-outputs prefetch-streams cpu-check-resource-usage
"""
"""Kernels on buffers become loops over the vectors of a CPU."""

GPU_CODEGEN = """
    inline-kernels gpu-spread-kernels tile-and-distribute gpu-form-workgroups gpu-lower-attention
    gpu-lower-scans gpu-lower-linalg-ext gpu-lower-scatters gpu-lower-sorts
    lower-linalg-ext-to-loops gpu-use-bulk-copies gpu-stream-k gpu-lower-warpgroup-contractions
    gpu-lower-contractions gpu-lower-reductions gpu-lower-transposes gpu-distribute-to-threads
    gpu-replicate-scalars gpu-eliminate-barriers erase-unread-buffers gpu-infer-memory-space
    lower-gather expand-casts expand-math lower-vector-reductions gpu-check-resource-usage
"""
"""Kernels on buffers become loops over workgroups, and those loops over threads."""


def passes(names: str) -> tuple[ModulePass, ...]:
    """Returns the passes of these names, with their default options."""
    return tuple(UPSTREAM[n]() if n in UPSTREAM else a(n) for n in names.split())


def phases(options: Options, *, part: bool = False) -> tuple[Phase, ...]:
    """
    Returns the phases of a compilation, in order, with the inserted passes. For a `part` of a
    multi-device program, omits the insertions that ran before the split.

    Raises ArgumentError for an unknown place or pass, PluginError.
    """
    own = own_phases(options)
    if part:
        return with_insertions(own, options, earlier=device_phases(options))
    if not options.devices:
        return with_insertions(own, options)
    one_device = replace(options, devices=None, pipeline_stages=None)
    return with_insertions(own, options, later=own_phases(one_device))


def own_phases(options: Options) -> tuple[Phase, ...]:
    """
    Returns the phases of irees alone.

    A pass that does not apply to the target, or to `fp="strict"`, does nothing: it reads both from
    the module (`irees/dialects/irees_target.py`).
    """
    return (
        device_phases(options)
        if options.devices
        else (*tensor_phases(options), *kernel_phases(options))
    )


def tensor_phases(options: Options) -> tuple[Phase, ...]:
    """Returns the phases on tensors, up to the partition into kernels."""
    exact = options.fp == "strict"
    return (
        Phase(
            "input",
            "every accepted dialect becomes linalg, tensor, iree_linalg_ext, arith and the like",
            (
                *from_importers(options),
                a("drop-transfers"),
                *when(options.annotate_input_affinities, a("annotate-affinities")),
                *passes("lower-affine"),
            ),
            TENSORS,
            fault=UnsupportedError,
        ),
        Phase(
            "global-opt",
            "named ops become generics, shapes become values, elementwise chains become one op",
            (
                *passes(GLOBAL_OPT),
                a("decompose-attention", reciprocal=not exact),
                a("decompose-exp-reduction"),
                a("decompose-softmax", use_fusion=False, from_infinity=True, reciprocal=not exact),
                *passes(SHAPES),
                *passes(FUSION),
            ),
            TENSORS,
        ),
        Phase(
            DISPATCHES,
            "ops are grouped into kernels, each an executable of its own; equal ones are merged",
            (
                a("annotate-dispatches"),
                *passes("form-tile-regions collapse-dimensions outline-dispatch-regions"),
                a("tie-dispatch-operands"),
                a("deduplicate-executables"),
                a("annotate-dispatches"),
                *when(options.trace_dispatch_tensors, a("trace-dispatch-tensors")),
                *when(options.time_dispatches, a("trace-dispatch-tensors", tensors=False)),
            ),
            TENSORS | {"flow", "iree_tensor_ext"},
        ),
    )


def kernel_phases(options: Options) -> tuple[Phase, ...]:
    """Returns the phases on buffers: the host program, and the code of kernels."""
    gpu = Target.parse(options.target).gpu is not None
    return (
        Phase(
            "stream",
            "bufferizes the host program and plans its memory",
            passes("lower-util-ops convert-to-stream cse plan-arena"),
            TENSORS | {"flow", "iree_tensor_ext", "stream", "memref"},
        ),
        Phase(
            "codegen",
            "lowers each executable to loops over vectors and scalars",
            (
                a("bufferize-dispatch"),
                *when(options.tuning, a("apply-tuning", tuning=options.tuning)),
                *(gpu_codegen(options) if gpu else passes(CPU_CODEGEN)),
            ),
            KERNELS,
            each_executable=True,
            keeps="to_c",
        ),
        Phase(
            "verification",
            "proves that every memory access is in bounds, or guards it",
            passes("verify-accesses"),
            KERNELS,
            keeps="to_c",
        ),
    )


def when(wanted: object, *chosen: ModulePass) -> tuple[ModulePass, ...]:
    """Returns the passes if the option is set, else none."""
    return chosen if wanted else ()


def gpu_codegen(options: Options) -> tuple[ModulePass, ...]:
    """Returns the passes of a GPU kernel; some block sizes require bulk copies."""
    boxes = "irees-gpu-use-bulk-copies" not in options.disable_pass
    return (a("gpu-select-strategy", boxes=boxes), *passes(GPU_CODEGEN))


OPTIONAL = frozenset(
    """
    irees-erase-unused-results irees-raise-special-ops irees-optimize-int-arithmetic canonicalize
    cse irees-fold-unit-extent-dims irees-compute-extracted-elements irees-fold-constants
    irees-fold-constant-gathers irees-sink-reshapes irees-fuse-elementwise-ops
    irees-merge-variance-passes irees-fold-reciprocals irees-fuse-sibling-reductions
    irees-widen-accumulators irees-widen-half-arith irees-fold-affine-epilogues
    irees-propagate-blocked-layouts irees-tie-dispatch-operands irees-convert-conv2d-to-winograd
    irees-pack-constant-operands irees-deduplicate-executables irees-annotate-dispatches
    irees-lower-contractions irees-vectorize-shuffled-ops irees-pipeline-workgroups
    irees-interleave-chains irees-use-nontemporal-stores irees-prefetch-next-tiles
    irees-prefetch-outputs irees-prefetch-streams irees-cpu-lower-scans irees-cpu-lower-scatters
    irees-gpu-lower-linalg-ext irees-gpu-lower-scans irees-gpu-lower-scatters
    irees-gpu-lower-sorts irees-gpu-use-bulk-copies irees-gpu-lower-warpgroup-contractions
    irees-gpu-lower-contractions irees-gpu-lower-reductions irees-gpu-lower-transposes
    irees-gpu-replicate-scalars irees-gpu-eliminate-barriers irees-gpu-stream-k
    irees-split-arg-compares irees-split-windows irees-split-reductions irees-split-sorts
    irees-sort-out-of-place irees-tabulate-index-expressions irees-bubble-up-extract-slices
    irees-collapse-dimensions irees-skip-masked-columns irees-narrow-index-arithmetic
    irees-fold-transposes irees-expand-complex irees-expand-complex-contractions
    irees-transpose-shared-rows
    irees-widen-booleans irees-join-contiguous-loops
    """.split()
)
"""
Passes that only make programs faster or smaller. The program stays correct without any of them: a
pass is skipped if `disable_pass` names it or if it failed, a single rewrite if it is beyond
`rewrite_limit`. For that, these passes call `irees.rewrites.may_rewrite` before each rewrite.
"""

PHASES = own_phases(Options())
"""The phases with default options."""


def run_phases(
    ctx: Context,
    module: ModuleOp,
    options: Options,
    *,
    start: str | None = None,
    to: str | None = None,
    hooks: Hooks = NO_HOOKS,
) -> frozenset[str]:
    """
    Runs the pipeline on a module in place, from after phase `start` through phase `to`. Returns the
    optional passes that were skipped: those that failed, or all of them if a mandatory pass failed.

    Calls some of the hooks twice if the pipeline restarts without a failed pass. Raises
    ArgumentError for an unknown phase, or for a pass that cannot be disabled.
    """
    part = module.attributes.pop(PART, None) is not None
    todo = phases(options, part=part)
    chosen = between(todo, start, to)
    optional = optional_passes(options)
    target = Target.parse(options.target)
    assign_target(module, target, strict=options.fp == "strict", tf32=options.allow_tf32)
    whole = (part, start, to, hooks.observe) == (False, None, None, False)
    disabled = disabled_passes(options, target)
    attempt, pristine = Attempt(disabled), None
    while True:
        flags = {"without": attempt.without, "verify_each": attempt.verify_each}
        try:
            with limited(options.rewrite_limit):
                rest = todo[chosen]
                if whole and may_shorten(options):
                    rest, pristine = lower_short(ctx, module, rest, flags, pristine)
                pristine = pristine or module.clone()
                for phase in rest:
                    phase.run(ctx, module, hooks, **flags)
                    if hooks.after is not None:
                        hooks.after(phase.name, module, 0.0)
            drop_target(module)
            for name, location, text in attempt.remarks:
                remark("failed", name, location, text)
            return attempt.without.difference(disabled)
        except InternalError as error:
            attempt = attempt.after(error, optional)
            hooks.restart()
            # Other passes may depend on those that are left out.
            todo = phases(replace(options, disable_pass=tuple(attempt.without)), part=part)
            if pristine is not None:
                restore(module, pristine)


_FALLS_BACK: ContextVar[bool] = ContextVar("_FALLS_BACK", default=True)


@contextmanager
def no_fallback() -> Iterator[None]:
    """
    Within the block, a mandatory pass that fails ends the compilation: who looks for a fault must
    not be given the program without optional passes.
    """
    token = _FALLS_BACK.set(False)
    try:
        yield
    finally:
        _FALLS_BACK.reset(token)


@dataclass(frozen=True)
class Attempt:
    """One run of the pipeline: the passes that it skips, and what failed before it."""

    without: frozenset[str]
    verify_each: bool = False
    remarks: tuple[tuple[str, str | None, str], ...] = ()
    """Pass, location and text, for a compilation that succeeds in the end."""

    def after(self, error: InternalError, optional: frozenset[str]) -> Attempt:
        """
        Returns the attempt that follows an error. Raises the error if there is none.

        An optional pass that failed is skipped. If a mandatory pass failed, or the check after a
        phase, an optional pass may have left invalid IR: the next attempt verifies after each pass.
        The last one skips all optional passes, since the mandatory pass may only fail on IR that
        these make.
        """
        name = error.pass_name or IreesPipelinePass.name
        if name in optional and name not in self.without:
            return self._skipping({name}, (name, error.location, f"skipped: {error}"))
        if not self.verify_each:
            return replace(self, verify_each=True)
        if not optional <= self.without and _FALLS_BACK.get():
            text = f"no optional pass runs, since it failed: {error}"
            return self._skipping(optional, (name, error.location, text))
        raise error

    def _skipping(self, names: Collection[str], remark: tuple[str, str | None, str]) -> Attempt:
        without = self.without.union(names)
        return replace(self, without=without, remarks=(*self.remarks, remark))


def may_shorten(options: Options) -> bool:
    """Whether no option observes, counts or traces the rewrites of individual layers."""
    plain = options.passes, options.trace_dispatch_tensors, options.time_dispatches
    return not any(plain) and not options.devices and not is_observed()


def lower_short(
    ctx: Context,
    module: ModuleOp,
    todo: Sequence[Phase],
    flags: dict[str, Any],
    pristine: ModuleOp | None,
) -> tuple[Sequence[Phase], ModuleOp | None]:
    """
    Runs the phases up to the partition into kernels on a few of many equal layers (`irees.layers`).

    Returns the remaining phases (all of them if that was not possible) and the original module.
    """
    last = [phase.name for phase in todo].index(DISPATCHES) + 1
    # Inserted passes may depend on the number of layers.
    inserted = any(isinstance(p, InsertedPass) for phase in todo[:last] for p in phase.passes)
    short = None if inserted else shorten(module)
    if short is None:
        return todo, pristine
    with collect() as remarks:
        for phase in todo[:last]:
            phase.run(ctx, short.module, **flags)
        if not short.extend():
            return todo, pristine
    for each in remarks:
        tell(each)
    former = take_contents(module, short.module)
    return todo[last:], pristine or former


def between(todo: Sequence[Phase], start: str | None, to: str | None) -> slice:
    """Returns the range of phases after `start` through `to`. Raises ArgumentError."""
    names = [phase.name for phase in todo]
    for name in (start, to):
        if name is not None and name not in names:
            raise ArgumentError(f"no phase {name!r}", hint=f"use one of {', '.join(names)}")
    first = 0 if start is None else names.index(start) + 1
    return slice(first, len(todo) if to is None else names.index(to) + 1)


def optional_passes(options: Options) -> frozenset[str]:
    """
    Returns the passes that are skipped if they fail.

    Raises ArgumentError for a disabled pass that is neither optional nor inserted.
    """
    inserted = inserted_passes(options)
    optional = OPTIONAL | {each.name for each in inserted if is_optional(each)}
    for name in options.disable_pass:
        if name not in optional and name not in {each.name for each in inserted}:
            near = get_close_matches(name, optional, 3) or sorted(optional)
            hint = f"use one of {', '.join(near)}"
            raise ArgumentError(f"unknown or mandatory pass {name!r}", hint=hint)
    return optional


def disabled_passes(options: Options, target: Target) -> frozenset[str]:
    """Returns the passes that the caller or an accelerator disables. Raises PluginError."""
    special = accelerator(target.accelerator)
    ours = frozenset(special.without) if special is not None else frozenset[str]()
    for name in sorted(ours - OPTIONAL):
        raise PluginError(f"target {target.accelerator!r} cannot disable the mandatory pass {name}")
    return ours.union(options.disable_pass)


def restore(module: ModuleOp, pristine: ModuleOp) -> None:
    """Restores a module from a copy, in place."""
    take_contents(module, pristine.clone()).body.drop_all_references()


def take_contents(module: ModuleOp, fresh: ModuleOp) -> ModuleOp:
    """Moves the contents of `fresh` into a module; returns the former contents as a module."""
    former = ModuleOp(module.detach_region(module.body), attributes=module.attributes)
    module.attributes = fresh.attributes
    module.properties = fresh.properties
    module.add_region(fresh.detach_region(fresh.body))
    return former


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
    insert: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        options = Options(
            target=self.target,
            fp=self.fp,
            allow_tf32=self.allow_tf32,
            opt_level=self.opt_level,
            rewrite_limit=self.rewrite_limit,
            passes=insertions_of(self.insert),
        )
        run_phases(ctx, op, options, start=self.start, to=self.to)
        # xdsl-opt prints its own table of resources, which lacks constants that passes created.
        publish_resources(op)

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[ModulePass, ...]:
        # Otherwise xdsl-gui would compile a clone at every step to preview the change.
        return ()
