"""Faults of ONNX models as programs, and of programs that are called to be timed."""

from __future__ import annotations

from mutant import Mutant

ONNX = "tests/frontends/test_onnx.py"
TIMED = "tests/frontends/test_torch_tuning.py"

MUTANTS = (
    Mutant(
        "A564",
        "unsigned results of an ONNX model are signed",
        "irees/frontends/onnx/__init__.py",
        '    mark_unsigned(_function(module), said["unsigned"])',
        "    mark_unsigned(_function(module), [])",
        (ONNX,),
    ),
    Mutant(
        "A565",
        "weights that an ONNX model lists among its inputs are arguments",
        "irees/frontends/onnx/lowering.py",
        "for value in graph.input if value.name not in weights",
        "for value in graph.input",
        (ONNX,),
    ),
    Mutant(
        "A566",
        "a crash of torch-mlir is not told",
        "irees/frontends/onnx/__init__.py",
        "    if done.returncode < 0:",
        "    if False:",
        (ONNX,),
    ),
    Mutant(
        "A567",
        "calls that are timed update the caller's arguments and the state",
        "irees/runtime/program.py",
        "    return list(map(_copied, flat)) if function.updates else flat",
        "    return flat",
        (TIMED,),
    ),
    Mutant(
        "A568",
        "a program is explained with a tree as a flat argument",
        "irees/runtime/program.py",
        "            if function is None and self.signature is not None:",
        "            if False:",
        (TIMED,),
    ),
    Mutant(
        "A569",
        "DepthToSpace in the order CRD is left to torch-mlir",
        "irees/frontends/onnx/repairs.py",
        '    "DepthToSpace": _depth_to_space,\n',
        "",
        (ONNX,),
    ),
    Mutant(
        "A570",
        "a grid outside of an image is left to torch-mlir",
        "irees/frontends/onnx/repairs.py",
        '    "GridSample": _grid_sample,\n',
        "",
        (ONNX,),
    ),
    Mutant(
        "A571",
        "a pad that wraps takes its low end from the begin",
        "irees/frontends/onnx/repairs.py",
        "        ends = [(size - low, size), (0, size), (0, high)]",
        "        ends = [(0, low), (0, size), (0, high)]",
        (ONNX,),
    ),
    Mutant(
        "A572",
        "numbers of 16 bits are rounded once from f64",
        "irees/frontends/builder/dtypes.py",
        "        if self.bits == 16:",
        "        if False:",
        ("tests/frontends/test_torch_halves.py",),
    ),
    Mutant(
        "A573",
        "f64 is rounded once to f16",
        "irees/frontends/builder/scalars.py",
        "            if dtype.bits == 16 and self.dtype is not F32:",
        "            if dtype.bits == self.dtype.bits:",
        ("tests/frontends/test_torch_halves.py",),
    ),
    Mutant(
        "A574",
        "a file in the working folder hides a module of the child process",
        "irees/frontends/onnx/__init__.py",
        'sys.executable, "-P", "-m"',
        'sys.executable, "-m"',
        (ONNX,),
    ),
)
