"""Faults that can be seen in the machine code of kernels, without a device to run them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import irees
from irees.backends.cuda import toolchain
from irees.backends.cuda.backend import emit_program
from irees.errors import ToolchainError

sys.path.insert(0, str(Path(__file__).parent))
import kernels
import sass
from test_nvrtc import SAMPLE, WARPGROUPS

TOLERANCE = 0.05
"""What a number may be over its budget: another version of NVRTC orders instructions differently."""

MOST_ALTERNATIONS = 5
"""Loads that each wait for the store before it: more are a chain."""

MORE = {
    "convolution of halves": kernels.convolution(30, 256, 256, "f16"),
    **{
        f"{element} {'residual' if residual else 'bias'}": kernels.epilogue_matmul(
            2048, 2048, 1024, element, residual=residual
        )
        for element in ("f16", "bf16", "f32")
        for residual in (False, True)
    },
    **{
        f"{rows} rows": kernels.widening_matmul(rows, 4096, 4096, "f16", "m, k; n, k")
        for rows in (1, 16, 64, 128)
    },
    "odd depth": kernels.widening_matmul(512, 512, 1001, "f16"),
    "bytes, B in rows": kernels.widening_matmul(2048, 2048, 512, "i8"),
    "odd bytes": kernels.widening_matmul(511, 511, 511, "i8"),
    "embedding": kernels.embedding(512, 50000, 768),
    "scan of one row": kernels.scan(1, 131072),
    "scan of rows": kernels.scan(1024, 128),
}
ONLY_90 = {f"warpgroups: {name}": text for name, (text, _) in WARPGROUPS.items()}
ARCHS = ("sm_80", "sm_90")
PROGRAMS: dict[str, tuple[str, str]] = {
    **{f"{n}, {a}": (t, a) for n, t in {**SAMPLE, **MORE}.items() for a in ARCHS},
    **{f"{name}, sm_90": (text, "sm_90") for name, text in ONLY_90.items()},
}

IN_ORDER = {"one thread": "a row with NaN is folded in order, by one thread"}
EDGES = {
    "chain": "each pair of results at an edge is loaded for and stored under a test of its own"
}
IN_PLACE = {"chain": "each row waits for the stores of the row before"}

SINGLE = {"byte stores": "rows of odd length are not aligned: each byte is loaded alone"}

FAULTS: dict[str, dict[str, str]] = {
    **{f"argmax, {arch}": IN_ORDER for arch in ARCHS},
    **{f"odd bytes, {arch}": SINGLE for arch in ARCHS},
    "f16 bias, sm_90": {"chain": "128 sums leave registers for a few loads of the bias at a time"},
    "f16 residual, sm_90": IN_PLACE,
    "bf16 residual, sm_90": IN_PLACE,
    "warpgroups: cut epilogue, sm_90": EDGES,
    "warpgroups: sums, sm_90": IN_PLACE,
}
"""What is known to be wrong, by program and check, and why; what is mended must go."""


@dataclass(frozen=True)
class Inspected:
    """What was found of a program: its numbers, and what each check has against it."""

    numbers: sass.Numbers
    faults: dict[str, str]


@cache
def inspected(name: str) -> Inspected:
    """Compiles and reads a program."""
    text, arch = PROGRAMS[name]
    module = irees.compile(text, target=f"cuda:{arch}", to="codegen")
    _, texts = toolchain.host_and_kernels(emit_program(module).texts)
    numbers: sass.Numbers = {}
    faults: dict[str, str] = {}
    for source in texts.values():
        options = (f"-arch={toolchain.arch_of(source, arch)}", *toolchain._OPTIONS, "--fmad=true")
        image, log = toolchain._run_nvrtc(source, options)
        if serialized := [line for line in log.splitlines() if "(C75" in line]:
            faults["wgmma"] = serialized[0]
        if serial := sass.serial_loops(source):
            faults["one thread"] = serial[0]
        for code in sass.disassemble(image):
            if local := code.count("LDL", "STL"):
                faults["local memory"] = f"{code.name} has {local} accesses"
            if code.count(*sass.TENSOR) and (stores := code.ops.count("STS.U8")):
                faults["byte stores"] = f"{code.name} has {stores} to shared memory"
            if (count := code.alternations()) > MOST_ALTERNATIONS:
                faults["chain"] = f"{code.name} waits for {count} stores"
            numbers[code.name] = code.numbers()
    return Inspected(numbers, faults)


@pytest.fixture(autouse=True)
def tools() -> None:
    try:
        toolchain.find_nvrtc()
    except ToolchainError as error:
        pytest.skip(f"{error}; extra `test` has it")
    if sass.find_nvdisasm() is None:
        pytest.skip("there is no nvdisasm; `pip install nvidia-cuda-nvdisasm`, extra `test` has it")


@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_code(name):
    """No spills, no chains of stores and loads, no loop of one thread; and what the budget allows."""
    found, known = inspected(name), FAULTS.get(name, {})
    wrong = {check: said for check, said in found.faults.items() if check not in known}
    assert not wrong
    assert not {*known} - {*found.faults}, "mended: take it out of FAULTS"
    assert not sass.worse(sass.read_budget().get(name, {}), found.numbers, TOLERANCE), (
        "if that is meant: python tests/backends/cuda/sass.py --write"
    )
    if known:
        pytest.xfail("; ".join(known.values()))


def test_the_budget_is_of_these_programs():
    assert {*sass.read_budget()} == {*PROGRAMS}


LOOPS = """
.section .text.f,"ax",@progbits
        /*0000*/                   LDG.E.64.CONSTANT R2, [R2.64] ;
.L_x_1:
        /*0010*/               @P0 STG.E.U16 [R4.64], R2 ;
        /*0020*/                   LDG.E R3, [R6.64] ;
        /*0030*/                   HMMA.16816.F32 R8, R4, R6, R8 ;
        /*0040*/               @P1 BRA `(.L_x_1) ;
        /*0050*/                   STS.128 [R2], R4 ;
        /*0060*/                   STL [R1], R4 ;
        /*0070*/                   EXIT ;
        /*0080*/                   NOP;
"""


def test_what_is_read_of_machine_code():
    (code,) = sass.parse(LOOPS)
    assert (code.name, len(code.ops)) == ("f", 8)
    assert (code.count("LDL", "STL"), code.alternations()) == (1, 1)
    assert code.numbers() == {
        "instructions": 8,
        "global load bytes": 6,
        "global store bytes": 2,
        "shared store bytes": 16,
        "instructions per tensor instruction": 4,
    }


def test_loops_of_one_thread():
    text = """
  if (threadIdx.x < 1) {
    for (int64_t i = 0; i < 4; i += 1) {
    }
    for (int64_t j = 0; j < n; j += 1) {
    }
  }
  for (int64_t k = 0; k < n; k += 1) {
  }
"""
    assert sass.serial_loops(text) == ["for (int64_t j = 0; j < n; j += 1) {"]


def test_what_is_over_the_budget():
    budget = {"f": {"instructions": 100.0, "global load bytes": 16.0}}
    assert sass.worse(budget, {"f": {"instructions": 104, "global load bytes": 16}}, 0.05) == []
    more = {"f": {"instructions": 106, "global load bytes": 8}}
    assert len(sass.worse(budget, more, 0.05)) == 2
    assert len(sass.differences({"p": budget}, {"p": more})) == 2
