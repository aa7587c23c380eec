"""
The implementations that are timed beside each other.

`prepare(program)` does once what does not depend on the number of threads, and returns what opens
the program for a number of threads: something to call. Either may raise; the table then has a dash
and the reason. What IREE and Inductor compile is kept in the folder `cache`, other files in `folder`.
"""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from programs import Program

import irees

Call = Callable[[], object]
Open = Callable[[int], Call]

QUADRATIC = 1 << 13
"""Longer rows are not given to IREE, whose sort takes time that grows with their square."""


class OtherProgramError(Exception):
    """A contender runs a program with other effects than the one that was asked for."""


class TooSlow(BaseException):
    """
    A contender that was not ready within its time. Not an Exception: compilers catch those, and
    go on without the pass that was running.
    """


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TooSlow in the block when it takes longer."""

    def stop(*_: object) -> None:
        raise TooSlow(f"not ready after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def tensors(inputs: list[np.ndarray]) -> list[Any]:
    """The inputs as torch tensors."""
    import torch

    def one(array: np.ndarray) -> Any:
        if array.dtype.name == "bfloat16":
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(array)

    return [one(array) for array in inputs]


class Irees:
    """irees, target cpu. Its manifest says what the program has to do."""

    def __init__(self, folder: Path, cache: Path):
        self.flops: int | None = None
        self.bytes: int | None = None

    def prepare(self, program: Program) -> Open:
        """Compiles."""
        self.flops = self.bytes = None
        if program.source is None:
            arguments = tuple(tensors(program.inputs))
            made = irees.compile(program.module, arguments, dynamic_shapes=program.dynamic)
        else:
            made = irees.compile(program.source)
        main = made.manifest["functions"][0]
        self.flops, self.bytes = main["flops"], main["bytes"]

        def at(threads: int) -> Call:
            irees.set_num_threads(threads)
            return lambda: made(*program.inputs)

        return at


class Torch:
    """PyTorch eager."""

    def __init__(self, folder: Path, cache: Path):
        pass

    def prepare(self, program: Program) -> Open:
        """Nothing to do."""
        import torch

        arguments = tensors(program.inputs)

        def at(threads: int) -> Call:
            torch.set_num_threads(threads)

            def call() -> object:
                with torch.inference_mode():
                    return program.module(*arguments)

            return call

        return at


class Inductor:
    """PyTorch's compiler; it compiles for a number of threads."""

    def __init__(self, folder: Path, cache: Path):
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache / "inductor")

    def prepare(self, program: Program) -> Open:
        """Nothing to do: the first call compiles."""
        import torch

        # What is compiled for each number of threads is kept, and modules that are made by one
        # function share their code: each has a limit of its own else.
        torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = (
            1000
        )
        arguments = tensors(program.inputs)
        compiled = torch.compile(program.module, dynamic=program.dynamic is not None)

        def at(threads: int) -> Call:
            torch.set_num_threads(threads)

            def call() -> object:
                with torch.no_grad():
                    return compiled(*arguments)

            return call

        return at


def onnx_model(program: Program, folder: Path) -> Path:
    """The file of what torch.onnx exports, or of the program's own ONNX model."""
    path = folder / f"{program.name}.onnx"
    if path.exists():
        return path
    if program.onnx is not None:
        path.write_bytes(program.onnx())
        return path
    import torch

    arguments = tuple(tensors(program.inputs))
    options: dict[str, Any] = {"dynamo": True, "verbose": False, "dynamic_shapes": program.dynamic}
    torch.onnx.export(program.module, arguments, str(path), **options)
    return path


class OnnxRuntime:
    """ONNX Runtime, all optimisations, of what torch.onnx exports."""

    def __init__(self, folder: Path, cache: Path):
        self.folder = folder

    def prepare(self, program: Program) -> Open:
        """Exports."""
        import onnxruntime

        path = onnx_model(program, self.folder)

        def at(threads: int) -> Call:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            options.log_severity_level = 4
            session = onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
            names = [given.name for given in session.get_inputs()]
            feed = dict(zip(names, program.inputs, strict=True))
            return lambda: session.run(None, feed)

        return at


class OpenVino:
    """OpenVINO of the same ONNX model, f32, tuned for latency."""

    def __init__(self, folder: Path, cache: Path):
        self.folder = folder

    def prepare(self, program: Program) -> Open:
        """Exports and converts."""
        import openvino

        core = openvino.Core()
        model = core.read_model(onnx_model(program, self.folder))

        def at(threads: int) -> Call:
            options = {
                "INFERENCE_NUM_THREADS": threads,
                "PERFORMANCE_HINT": "LATENCY",
                "INFERENCE_PRECISION_HINT": "f32",
            }
            compiled = core.compile_model(model, "CPU", options)
            request = compiled.create_infer_request()
            return lambda: request.infer(program.inputs, share_inputs=True)

        return at


def torch_text(program: Program) -> str:
    """The program as torch-mlir imports it from PyTorch; IREE lowers its torch dialect itself."""
    import torch
    from torch_mlir import fx

    arguments = tuple(tensors(program.inputs))
    exported = torch.export.export(program.module, arguments, dynamic_shapes=program.dynamic)
    return str(fx.export_and_import(exported, output_type="torch", func_name="main"))


class Iree:
    """IREE, llvm-cpu for this machine; the highest opt level that compiles."""

    def __init__(self, folder: Path, cache: Path):
        self.kept = cache / "iree"

    def prepare(self, program: Program) -> Open:
        """Compiles, unless the folder of what was compiled before has it."""
        import iree.runtime as runtime

        source = program.source if program.source is not None else torch_text(program)
        first = program.inputs[0]
        if isinstance(source, str) and "linalg_ext.sort" in source and first.shape[1] > QUADRATIC:
            raise TooSlow("not run: its sort takes time that grows with the square of the row")
        text = source if isinstance(source, str) else source.read_text()
        digest = hashlib.sha256(text.encode()).hexdigest()
        path = self.kept / f"{version('iree-base-compiler')}-{digest}.vmfb"
        if not path.exists():
            self.kept.mkdir(exist_ok=True)
            path.write_bytes(self.compile(text))
        blob = path.read_bytes()

        def at(threads: int) -> Call:
            runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
            config = runtime.Config("local-sync" if threads == 1 else "local-task")
            context = runtime.SystemContext(config=config)
            context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, blob))
            main = context.modules.module["main"]
            arrays = [runtime.asdevicearray(config.device, x) for x in program.inputs]
            main(*arrays)
            # Updates of arguments in place save the copy that the program asks for.
            pairs = zip(arrays, program.inputs, strict=True)
            if any(a.to_host().tobytes() != x.tobytes() for a, x in pairs):
                raise OtherProgramError("it changes its arguments, which the program does not")
            return lambda: main(*arrays)

        return at

    def compile(self, text: str) -> bytes:
        """The module, at the highest level that does not fail. Raises CompilerToolError."""
        import iree.compiler as compiler

        for level in ("O3", "O2"):
            with suppress(compiler.CompilerToolError):
                return self.compile_at(level, text)
        return self.compile_at("O1", text)

    def compile_at(self, level: str, text: str) -> bytes:
        """The module at one level. Raises CompilerToolError."""
        import iree.compiler as compiler

        flags = ["--iree-llvmcpu-target-cpu=host", f"--iree-opt-level={level}"]
        return compiler.compile_str(text, target_backends=["llvm-cpu"], extra_args=flags)


CONTENDERS: dict[str, Callable[[Path], Any]] = {
    "irees": Irees,
    "PyTorch": Torch,
    "Inductor": Inductor,
    "ONNX Runtime": OnnxRuntime,
    "IREE": Iree,
    "OpenVINO": OpenVino,
}
