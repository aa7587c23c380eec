"""
Builds a program from a module: runs all phases, then the C compilers.

`irees.compiler` imports this module only on a cache miss: importing all passes takes longer than
reading a program from the cache.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import (
    DenseResourceAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    UnitAttr,
)
from xdsl.printer import Printer

from irees.backends.c import backend as c
from irees.backends.common.program_text import ProgramText, Sources, print_program
from irees.backends.common.toolchain import CXX, LibraryCompiler
from irees.backends.cuda import backend as cuda
from irees.backends.cuda.backend import emulation_engine
from irees.backends.cuda.toolchain import compile_cubins, host_and_kernels
from irees.backends.reference.backend import ReferenceProgram
from irees.blobs import Blob, ResourceKey
from irees.device_programs import alone, device_program, options_for, parts_of, schedule_of
from irees.dialects import get_context
from irees.dialects.flow import ExecutableOp
from irees.dialects.resources import blob_of
from irees.dialects.signature import drop_updates
from irees.errors import ArgumentError, IreesError
from irees.frontends.imported import Imported
from irees.frontends.jax import import_jax_program, is_jax
from irees.frontends.mlir import admit, import_mlir, import_opened, open_source
from irees.frontends.mlir.sections import Source as Opened
from irees.frontends.onnx import import_onnx_program, is_onnx
from irees.hooks import NO_HOOKS, Hooks
from irees.integrity import is_patched, record
from irees.options import Options
from irees.phase import PassError
from irees.pipeline import a, device_phases, own_phases, phases, run_phases
from irees.places import PART, are_known, phase_of
from irees.plugins import active
from irees.program_cache import (
    Built,
    find,
    find_parts,
    program_key,
    program_of,
    store,
    store_parts,
)
from irees.remarks import Remark, collect, tell
from irees.rewrites import is_observed
from irees.runtime.device_program import DeviceProgram, Maker
from irees.runtime.manifest import target_record
from irees.runtime.program import Function, Program
from irees.runtime.services import Services
from irees.runtime.tracing import Tracer
from irees.target import Target
from irees.transforms.input.raise_buffers.functions import writes_arguments
from irees.verification import verify

record()

Source = Any
"""A path, MLIR text, an xDSL ModuleOp, a torch ExportedProgram or nn.Module, a jitted function."""


def import_source(source: Source, inputs: Sequence[Any] | None = None, **examples: Any) -> Imported:
    """
    Imports a source as a module with its signature. A ModuleOp is cloned, so the caller's module
    stays unchanged. `examples` are `kwargs` and `dynamic_shapes` of a PyTorch program.

    Raises ParseError, VerifyError, LimitExceededError, ArgumentError or UnsupportedError.
    """
    if isinstance(source, ModuleOp | Imported):
        given = source if isinstance(source, Imported) else Imported(source)
        admit(given.module)
        return Imported(given.module.clone(), given.signature, given.state)
    if isinstance(source, Program | Function | DeviceProgram | ReferenceProgram):
        raise ArgumentError("the program is compiled already", hint="compile what it is made of")
    if is_onnx(source):
        _refuse_dynamic_shapes(examples, "name the dims of the model's inputs")
        return import_onnx_program(source)
    if isinstance(source, str | Path):
        return Imported(import_mlir(source))
    if is_jax(source):
        _refuse_dynamic_shapes(examples, "export the function with symbolic shapes")
        return import_jax_program(source, inputs or (), examples.get("kwargs"))
    if not callable(source) or isinstance(source, type):
        raise ArgumentError(
            f"the program is a {type(source).__name__}, but must be MLIR text or its path, a "
            "module, or a program of PyTorch, JAX or ONNX",
            hint="decode bytes, and instantiate a class, as in irees.compile(Model(), (x,))",
        )
    from irees.frontends.torch import import_program

    return import_program(source, inputs, **examples)


def _refuse_dynamic_shapes(examples: Mapping[str, Any], hint: str) -> None:
    """Raises ArgumentError if `dynamic_shapes` are given."""
    if examples.get("dynamic_shapes") is not None:
        raise ArgumentError("dynamic_shapes are for programs of PyTorch", hint=hint)


class Texts:
    """
    Prints the texts of a program, each as soon as its executable is lowered.

    Texts for the CPU are passed to the C compilers immediately, which run in parallel with the
    passes.
    """

    def __init__(self, target: Target, compiler: LibraryCompiler):
        self.target = target
        self.backend = (c if target.gpu is None else cuda).BACKEND
        self.compiler = compiler
        self.program: ProgramText | None = None

    def ready(self, module: ModuleOp, executable: ExecutableOp) -> None:
        """Prints an executable, and starts to compile its texts."""
        if self.program is None or executable.sym_name.data in self.program.unit.kernels:
            # Start, or restart: after a failed optional pass all executables are lowered again.
            self.program = ProgramText(module, self.backend)
        for name, text in self.program.print_kernel(executable).items():
            if self.target.kind == "cpu":
                self.compiler.begin(name, text)
            elif self.target.kind == "cuda-emulated":
                self.compiler.begin(name, text, CXX)

    def sources(self, module: ModuleOp) -> Sources:
        """All texts, with manifest and constants."""
        executables = [o for o in module.body.block.ops if isinstance(o, ExecutableOp)]
        names = [o.sym_name.data for o in executables]
        if self.program is None or list(self.program.unit.kernels) != names:
            return print_program(module, self.backend)
        # Executables that were guarded after they were printed must be printed again.
        if not self.program.print_again(filter(is_guarded, executables)):
            return print_program(module, self.backend)
        return self.program.finish()


def is_guarded(executable: ExecutableOp) -> bool:
    """Whether accesses of an executable were guarded after code generation."""
    numbers = executable.attributes.get("accesses")
    guarded = numbers.data.get("guarded") if isinstance(numbers, DictionaryAttr) else None
    return isinstance(guarded, IntegerAttr) and guarded.value.data > 0


def build_imported(
    imported: Imported, options: Options, start: str | None, hooks: Hooks = NO_HOOKS
) -> Built:
    """
    Builds an imported program after phase `start`, with its signature. A module from a frontend is
    read from the cache if it was built before, unless it is observed or `start` is given. A module
    of the caller is always built.
    """
    if imported.signature is None or start is not None or hooks.observe:
        built = build(imported.module, options, start, hooks)
    else:
        built = build_cached(imported.module, options)
    imported.complete(built.manifest, built.constants)
    return built


def build_cached(module: ModuleOp, options: Options) -> Built:
    """Builds a module, or reads a build with the same text and weights from the cache."""
    blobs = blobs_of(module)
    text = StringIO()
    Printer(text, print_debuginfo=True).print_op(module)
    source = Opened("<module>", text.getvalue().encode())
    source.blobs = blobs
    key = program_key(source, options, Target.parse(options.target))
    if (found := find(key, blobs)) is not None:
        return found
    built = build(module, options)
    built.from_source = unchanged_constants(module, blobs)
    store(key, built)
    return built


def blobs_of(module: ModuleOp) -> dict[str, Blob]:
    """The weights of a module by name."""
    found: dict[str, Blob] = {}
    for op in module.walk():
        value = op.properties.get("value")
        if isinstance(value, DenseResourceAttr):
            blob = blob_of(value)
            found[blob.key] = blob
    return found


def build(
    module: ModuleOp, options: Options, start: str | None = None, hooks: Hooks = NO_HOOKS
) -> Built:
    """Lowers a module through all phases after `start`, in place, and compiles its texts."""
    target, altered = Target.parse(options.target), is_altered(module, options)
    return_updates(module, options)
    defines = ("IREES_EMULATED",) if target.kind == "cuda-emulated" else ()
    flags: dict[str, Any] = {"target": target, "fp": options.fp, "opt_level": options.opt_level}
    with LibraryCompiler(**flags, defines=defines) as compiler:
        compiler.begin_runtime()
        texts = Texts(target, compiler)
        hooks = replace(hooks, ready=texts.ready)
        with collect() as remarks:
            failed = run_phases(get_context(), module, options, start=start, hooks=hooks)
        for each in remarks:
            tell(each)
        sources = texts.sources(module)
        describe(sources, remarks, target, options)
        certify(sources, module)
        library, cubins = compile_texts(sources, target, options, compiler)
    made = (library, sources.manifest, sources.texts, sources.constants)
    return Built(*made, {}, cubins, failed, altered)


def return_updates(module: ModuleOp, options: Options) -> None:
    """
    Turns updates of arguments into ordinary results if they cannot be written in place: arguments
    on a device are copies, and traced tensors must keep their values.
    """
    if Target.parse(options.target).kind != "cpu" or options.trace_dispatch_tensors:
        for function in [op for op in module.ops if isinstance(op, func.FuncOp)]:
            drop_updates(function)


def is_altered(module: ModuleOp, options: Options) -> bool:
    """
    Whether a compilation depends on something that the cache key does not contain: ops or passes
    of a package that is not a plug-in, patched irees code, or rewrites that the caller limits or
    watches.
    """
    homes = {type(op).__module__.partition(".")[0] for op in module.walk()}
    known = {"irees", "xdsl", *(each.package for each in active(options.plugins))}
    return not homes <= known or not are_known(options) or is_observed() or is_patched()


def build_opened(opened: Opened, options: Options, hooks: Hooks = NO_HOOKS) -> Built:
    """Builds an opened text; records which of its weights the program uses unchanged."""
    module = import_opened(opened)
    built = build(module, options, hooks=hooks)
    built.from_source = unchanged_constants(module, opened.blobs)
    return built


def unchanged_constants(module: ModuleOp, blobs: Mapping[str, Blob]) -> dict[str, str]:
    """Globals that hold an unchanged resource of the source: global name => resource key."""
    keys = {id(blob): key for key, blob in blobs.items()}
    found: dict[str, str] = {}
    for op in module.body.block.ops:
        value = op.initial_value if isinstance(op, memref.GlobalOp) else None
        if isinstance(op, memref.GlobalOp) and isinstance(value, DenseResourceAttr):
            name = value.resource_handle.data
            if isinstance(name, ResourceKey) and id(name.blob) in keys:
                found[op.sym_name.data] = keys[id(name.blob)]
    return found


def describe(sources: Sources, remarks: Sequence[Remark], target: Target, options: Options) -> None:
    """Adds target, options and remarks to the manifest."""
    sources.manifest["remarks"] = [str(remark) for remark in remarks]
    for kernel in sources.manifest["kernels"]:
        # Equal dispatches were merged, so a kernel may have duplicate remarks.
        said = (f"{r.pass_name}: {r.text}" for r in remarks if r.dispatch == kernel["name"])
        kernel["remarks"] = list(dict.fromkeys(said))
    sources.manifest["target"] = target_record(target)
    if isinstance(options.trace_dispatch_tensors, str):
        sources.manifest["trace_directory"] = options.trace_dispatch_tensors
    if options.time_dispatches:
        sources.manifest["time_dispatches"] = True
    if options.tuning:
        sources.manifest["tuning"] = json.loads(str(options.tuning))


def certify(sources: Sources, module: ModuleOp) -> None:
    """Adds each kernel's certificate of in-bounds accesses to the manifest."""
    executables = {o.sym_name.data: o for o in module.ops if isinstance(o, ExecutableOp)}
    for kernel in sources.manifest["kernels"]:
        attributes = executables[kernel["name"]].attributes
        numbers, text = attributes.get("accesses"), attributes.get("certificate")
        if isinstance(numbers, DictionaryAttr) and isinstance(text, StringAttr):
            counted = {k: n for k, n in numbers.data.items() if isinstance(n, IntegerAttr)}
            kernel["accesses"] = {kind: n.value.data for kind, n in counted.items()}
            kernel["certificate"] = json.loads(text.data)


def compile_texts(
    sources: Sources, target: Target, options: Options, compiler: LibraryCompiler
) -> tuple[bytes, dict[str, bytes]]:
    """
    Compiles the library of a program, and for a GPU the cubins by text name.

    Adds the registers and spills of each GPU kernel to the manifest. Raises ToolchainError.
    """
    if target.kind == "cpu":
        return compiler.library(sources.texts), {}
    host, kernels = host_and_kernels(sources.texts)
    if target.kind == "cuda-emulated":
        return compiler.library(host, {**kernels, "emulation": emulation_engine()}), {}
    cubins = compile_cubins(kernels, target, options.fp)
    for launch in sources.manifest["launches"]:
        taken = cubins[launch["source"]].resources[launch["name"]]
        launch.update(registers=taken.registers, spilled_bytes=taken.spilled_bytes)
    return compiler.library(host), {name: c.image for name, c in cubins.items()}


def make_interpretable(module: ModuleOp, options: Options) -> None:
    """
    Lowers the parts of an imported program that the interpreter cannot run, in place: ops of
    plug-ins without `evaluate`, and functions that write to the caller's buffers, which get results
    instead.

    Raises PluginError, UnsupportedError, or PassError for a pass that fails or leaves invalid IR.
    """
    passes = [a("decompose-plugin-ops", plugins=options.plugins, keep_evaluated=True)]
    if writes_arguments(module):
        names = ("lift-cf-to-scf", "simplify-scf", "inline-calls")
        passes += [*map(a, names), a("return-updates")]
    for each in passes:
        try:
            each.apply(get_context(), module)
            if len(passes) > 1:
                verify(module)
        except IreesError:
            raise
        except Exception as error:
            raise PassError(each.name, error) from error


def reference_program(
    module: ModuleOp, options: Options, imported: Imported | None = None
) -> ReferenceProgram:
    """
    The program that interprets a module as imported, or after the last phase in which the caller
    inserts a pass. To trace dispatches, it also interprets a copy lowered to dispatches, whose
    values are traced but never returned. Raises ArgumentError for a place after these phases.
    """
    make_interpretable(module, options)
    if last := last_phase_with_insertion(options):
        run_phases(get_context(), module, replace(options, target="cpu"), to=last)
    wanted = options.trace_dispatch_tensors
    call = (None, None) if imported is None else (imported.signature, imported.state)
    if not wanted:
        return ReferenceProgram(module, *call)
    dispatches = module.clone()
    run_phases(get_context(), dispatches, replace(options, target="cpu"), to="dispatch-creation")
    tracer = Tracer(directory=wanted if isinstance(wanted, str) else None)
    return ReferenceProgram(module, *call, traced=dispatches, tracer=tracer)


INTERPRETED = ("input", "global-opt", "dispatch-creation")
"""Phases after which `target="reference"` interprets a program with inserted passes."""


def last_phase_with_insertion(options: Options) -> str | None:
    """Returns the last phase in which a pass is inserted. Raises ArgumentError for later ones."""
    assert isinstance(options.passes, tuple)
    found: set[str] = set()
    for each in options.passes:
        phase = phase_of(own_phases(replace(options, target="cpu")), each.place)
        if phase not in INTERPRETED:
            raise ArgumentError(
                f"target=reference has no place {each.place}",
                hint=f"use one up to the end of {INTERPRETED[-1]}, or another target",
            )
        found.add(phase)
    return max(found, key=INTERPRETED.index, default=None)


def compile_devices(
    module: ModuleOp,
    options: Options,
    start: str | None = None,
    kept: tuple[str, Opened] | None = None,
    hooks: Hooks = NO_HOOKS,
) -> DeviceProgram:
    """
    Compiles a multi-device program: cuts the module into parts, in place, and compiles each part
    for its device. With `kept` (key and opened source), stores the program in the cache.
    """
    run_phases(get_context(), module, options, start=start, hooks=hooks)
    schedule = schedule_of(module, options)
    makers: dict[str, Maker] = {}
    built: dict[str, Built] = {}
    for name, part in parts_of(module).items():
        chosen = options_for(schedule["devices"][name], options)
        if chosen.target == "reference":
            # Its inserted passes ran before the cut, or have no place in an interpreted part.
            chosen = replace(chosen, passes=())
            makers[name] = partial(_interpreted, reference_program(alone(part), chosen))
            continue
        built[name] = build(alone(part), chosen, hooks=hooks)
        makers[name] = partial(program_of, built[name])
        if kept is not None:
            built[name].from_source = unchanged_constants(part, kept[1].blobs)
    if kept is not None and len(built) == len(makers):
        store_parts(kept[0], schedule, built)
    return device_program(schedule, makers)


def _interpreted(program: ReferenceProgram, services: Services | None) -> ReferenceProgram:
    return program


def _devices_key(opened: Opened, options: Options) -> str:
    parts = (options_for(spec, options) for spec in options.device_specs().values())
    targets = [Target.parse(each.target) for each in parts if each.target != "reference"]
    return program_key(opened, options, *targets)


def compile_devices_text(source: str | Path, options: Options, hooks: Hooks) -> DeviceProgram:
    """
    Compiles MLIR text for several devices, or reads the program from the cache. If it is observed,
    and may be changed by that, it is always compiled and not stored.
    """
    opened = open_source(source)
    if hooks.observe:
        return compile_devices(import_opened(opened), options, hooks=hooks)
    # Compute the key first: decoding the blobs changes their hashes.
    key = _devices_key(opened, options)
    found = find_parts(key, opened.blobs)
    if found is None:
        return compile_devices(import_opened(opened), options, kept=(key, opened))
    schedule, built = found
    makers = {name: partial(program_of, each) for name, each in built.items()}
    return device_program(schedule, makers)


def lower(module: ModuleOp, options: Options, start: str | None, to: str, hooks: Hooks) -> None:
    """
    Lowers a module up to a phase, in place; after the cut for several devices, lowers each part.
    Raises ArgumentError for an unknown phase.
    """
    if not options.devices:
        run_phases(get_context(), module, options, start=start, to=to, hooks=hooks)
        return
    cut = [phase.name for phase in device_phases(options)]
    chosen = {name: options_for(spec, options) for name, spec in options.device_specs().items()}
    for name, each in chosen.items():
        if each.target == "reference":
            chosen[name] = replace(each, target="cpu")
    later = dict.fromkeys(phase.name for each in chosen.values() for phase in phases(each))
    if to not in (known := [*cut, *(name for name in later if name not in cut)]):
        raise ArgumentError(f"no phase {to!r}", hint=f"use one of {', '.join(known)}")
    last = to if to in cut else cut[-1]
    run_phases(get_context(), module, options, start=start, to=last, hooks=hooks)
    if last != to:
        for name, part in parts_of(module).items():
            part.attributes[PART] = UnitAttr()
            run_phases(get_context(), part, chosen[name], to=to, hooks=hooks)
