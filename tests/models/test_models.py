"""
Real PyTorch models, exported by the shared script, agree with PyTorch on targets `cpu` and
`cuda-emulated`, and their kernels take of a GPU what was predicted.

The models come from `../shared/models/export.py`, or from a folder of earlier exports named by
IREES_MODELS. Without torch, torch-mlir and transformers, and without such a folder, there is
nothing to compare with: `make test-models` installs them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import irees
from irees.backends.cuda import toolchain
from irees.backends.cuda.backend import emit_program
from irees.backends.cuda.print_forall import STATIC_SHARED_BYTES
from irees.errors import ToolchainError
from irees.pipeline import PHASES
from irees.target import GPUS, Target

EXPORT = Path(__file__).parents[3] / "shared" / "models" / "export.py"
NAMES = (
    "topk_both", "topk_values", "topk_indices", "argsort_dynamic", "scatter_onehot_static",
    "scatter_onehot_mixed", "softmax_eltwise", "group_norm_silu", "two_matmul", "llama_decode",
    "deepseek_moe", "mobilenet_v2", "resnet50", "bert_base", "gpt2",
)  # fmt: skip
DYNAMIC = ("argsort_dynamic", "scatter_onehot_mixed", "llama_decode", "deepseek_moe")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder of exported models, filled as they are asked for."""
    return tmp_path_factory.mktemp("models")


@cache
def exported(name: str, folder: Path) -> Path:
    """The .mlir of one model, which is exported when it is asked for first."""
    if given := os.environ.get("IREES_MODELS"):
        return Path(given) / f"{name}.mlir"
    if not EXPORT.exists():
        pytest.skip("no ../shared/models/export.py; set IREES_MODELS to a folder of exports")
    missing = [m for m in ("torch", "torch_mlir", "transformers") if find_spec(m) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed; `make test-models` installs them")
    command = [sys.executable, str(EXPORT), str(folder), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / f"{name}.mlir"


@lru_cache(maxsize=1)
def compiled(name: str, folder: Path) -> irees.Program:
    """The program for this machine: tests of one model come one after the other."""
    return irees.compile(exported(name, folder))


def arrays(path: Path) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Inputs and PyTorch's answers."""
    data = np.load(path)
    inputs = [data[f"in{i}"] for i in range(sum(k.startswith("in") for k in data))]
    return inputs, [data[f"out{i}"] for i in range(sum(k.startswith("out") for k in data))]


def check(got: np.ndarray, want: np.ndarray) -> None:
    """Integers exactly; floats to 2e-5 of the largest, and to 1e-5 of the norm as a whole."""
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
        return
    error, scale = got.astype("f8") - want.astype("f8"), np.abs(want.astype("f8")).max()
    assert np.abs(error).max() <= 2e-5 * scale
    assert np.sqrt((error**2).mean()) <= 1e-5 * np.sqrt((want.astype("f8") ** 2).mean())


LARGE = ("mobilenet_v2", "resnet50", "bert_base", "gpt2")
SMALL = [n for n in NAMES if n not in LARGE]
DEVICES = [
    # Of the large ones CI emulates the quickest, and compiles kernels for one architecture.
    *((name, "cpu") for name in NAMES),
    *((name, "cuda-emulated") for name in (*SMALL, "mobilenet_v2")),
    *(
        pytest.param(name, "cuda-emulated", marks=pytest.mark.slow)
        for name in LARGE
        if name != "mobilenet_v2"
    ),
]
ARCHS = [
    *((name, arch) for name in SMALL for arch in ("sm_75", "sm_80", "sm_90")),
    *((name, "sm_80") for name in LARGE),
    *(
        pytest.param(name, arch, marks=pytest.mark.slow)
        for name in LARGE
        for arch in ("sm_75", "sm_90")
    ),
]


@pytest.mark.parametrize(("name", "target"), DEVICES)
def test_agrees_with_pytorch(name, target, folder):
    """One compilation answers every stored input, the other sizes of dynamic models too."""
    path = exported(name, folder)
    program = compiled(name, folder) if target == "cpu" else irees.compile(path, target=target)
    stored = [path.with_suffix(".npz")]
    if name in DYNAMIC:
        stored += [path.with_name(f"{name}.{i}.npz") for i in (1, 2)]
    for file in stored:
        inputs, answers = arrays(file)
        results = program(*inputs)
        results = results if isinstance(results, tuple) else (results,)
        assert len(results) == len(answers)
        for got, want in zip(results, answers, strict=True):
            check(np.asarray(got), want)


@pytest.mark.parametrize(
    ("name", "sent"),
    [("two_matmul", 512 * 512 * 4), pytest.param("gpt2", 64 * 768 * 4, marks=pytest.mark.slow)],
)
def test_two_stages_equal_one_device(name, sent, folder):
    """Bit for bit, with one tensor sent."""
    path = exported(name, folder)
    inputs, answers = arrays(path.with_suffix(".npz"))
    stages = irees.compile(path, pipeline_stages=2)
    assert list(stages.schedule.devices.values()) == ["cpu:0", "cpu:1"]
    got = stages(*inputs)
    check(got, answers[0])
    np.testing.assert_array_equal(got, compiled(name, folder)(*inputs))
    assert (stages.transfers.count, stages.transfers.bytes) == (1, sent)


@pytest.mark.parametrize("phase", [p.name for p in PHASES[:-1]])
@pytest.mark.parametrize("name", SMALL)
def test_a_saved_phase_can_be_compiled_on(name, phase, folder, tmp_path):
    """Printed by the pipeline pass, parsed again, compiled from there: the same answers."""
    path = exported(name, folder)
    saved = tmp_path / f"{phase}.mlir"
    command = [sys.executable, "-m", "irees.tools.main", "opt", str(path), "-o", str(saved)]
    done = subprocess.run(
        [*command, "-p", f"irees-pipeline{{to={phase}}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    program = irees.compile(saved, start=phase)
    inputs, answers = arrays(path.with_suffix(".npz"))
    results = program(*inputs)
    results = results if isinstance(results, tuple) else (results,)
    for got, want in zip(results, answers, strict=True):
        check(np.asarray(got), want)


@pytest.mark.parametrize("name", NAMES)
def test_the_arena_is_near_its_least(name, folder):
    """At most 1.1 times the most bytes of temporaries that are alive at once."""
    memory = compiled(name, folder).memory_analysis()
    for function, least in memory["live_bytes"].items():
        if least is not None:
            assert memory["arena_bytes"][function] <= 1.1 * least


LOCAL_BYTES = {
    # cosf and sinf of large angles keep their digits there.
    ("llama_decode", "sm_80"): 24,
    ("llama_decode", "sm_90"): 32,
}
"""Local memory, spilled and not, of the kernel of a model that has the most."""


@pytest.mark.parametrize(("name", "arch"), ARCHS)
def test_kernels_take_what_was_predicted(name, arch, folder):
    """Shared memory as the manifest says, few enough registers, no spill that is not known."""
    try:
        toolchain.find_nvrtc()
    except ToolchainError as error:
        pytest.skip(f"{error}; extra `test` has it")
    module = irees.compile(exported(name, folder), target=f"cuda:{arch}", to="codegen")
    sources = emit_program(module)
    _, texts = toolchain.host_and_kernels(sources.texts)
    cubins = toolchain.compile_cubins(texts, Target("cuda", arch=arch), "default")
    local = 0
    for launch in sources.manifest["launches"]:
        taken = cubins[launch["source"]].resources[launch["name"]]
        predicted = launch["shared_bytes"]
        assert taken.shared_bytes == (predicted if predicted <= STATIC_SHARED_BYTES else 0)
        assert predicted <= GPUS[arch].shared_opt_in_bytes
        assert taken.registers * launch["threads"] <= GPUS[arch].registers
        local = max(local, taken.spilled_bytes + taken.stack_bytes)
    assert local <= LOCAL_BYTES.get((name, arch), 0)
