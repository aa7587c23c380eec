"""Which NVRTC is loaded, and what of CuPy the runtime needs."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import irees
from irees.backends.cuda import toolchain
from irees.errors import ToolchainError
from irees.runtime.cache import Cache


class Loader:
    """What `ctypes.CDLL` is asked for. An NVRTC opens its builtins by name, as that of 13.0 does."""

    def __init__(self, missing: tuple[str, ...] = ()):
        self.loaded: list[str] = []
        self.missing = missing

    def __call__(self, name: str) -> str:
        if any(part in name for part in self.missing):
            raise OSError(name)
        self.loaded.append(Path(name).name)
        return name


@pytest.fixture
def wheel(tmp_path, monkeypatch) -> Path:
    """A wheel with an NVRTC, and the system's libraries missing."""
    folder = tmp_path / "lib"
    folder.mkdir()
    for name in ("libnvrtc.so.13", "libnvrtc-builtins.so.13.0", "libnvrtc.alt.so.13"):
        (folder / name).touch()
    monkeypatch.setattr(
        toolchain,
        "find_spec",
        lambda package: type("Spec", (), {"submodule_search_locations": [str(tmp_path)]})(),
    )
    toolchain.find_nvrtc.cache_clear()
    yield folder
    toolchain.find_nvrtc.cache_clear()


def test_builtins_are_loaded_first(wheel, monkeypatch):
    loader = Loader()
    monkeypatch.setattr(toolchain.ctypes, "CDLL", loader)
    assert toolchain.find_nvrtc() == str(wheel / "libnvrtc.so.13")
    assert loader.loaded == ["libnvrtc-builtins.so.13.0", "libnvrtc.so.13"]


def test_an_nvrtc_that_cannot_be_loaded_is_passed_over(wheel, monkeypatch):
    monkeypatch.setattr(toolchain.ctypes, "CDLL", Loader(missing=("builtins",)))
    assert toolchain.find_nvrtc() in toolchain._NAMES
    toolchain.find_nvrtc.cache_clear()
    monkeypatch.setattr(toolchain.ctypes, "CDLL", Loader(missing=("nvrtc",)))
    with pytest.raises(ToolchainError, match="pip install nvidia-cuda-nvrtc"):
        toolchain.find_nvrtc()


@pytest.mark.parametrize(("version", "off"), [("12.8", False), ("12.9", True), ("13.0", True)])
def test_the_cache_of_nvrtc_is_off(monkeypatch, version, off):
    """A cubin from it comes without the resource usage of its kernels."""
    monkeypatch.setattr(toolchain, "nvrtc_version", lambda: version)
    assert ("--no-cache" in toolchain.options_of("sm_90", "default")) == off


def test_a_cubin_without_resource_usage_is_a_typed_error(monkeypatch, tmp_path):
    monkeypatch.setattr(toolchain, "_run_nvrtc", lambda text, options: (b"cubin", "\0"))
    with pytest.raises(ToolchainError, match="did not report the resource usage of a kernel"):
        toolchain.compile_cubin("text", "sm_90", store=Cache(tmp_path))


CALLED = {
    "cuda.Device": 1, "cuda.alloc": 1, "cuda.get_current_stream": 0, "cuda.Event": 0, "cuda.get_elapsed_time": 2, "cuda.runtime.memcpyAsync": 5,
    "cuda.runtime.memsetAsync": 4, "cuda.runtime.getDevice": 0, "cuda.runtime.setDevice": 1,
    "cuda.runtime.streamSynchronize": 1, "cuda.runtime.graphLaunch": 2,
    "cuda.runtime.eventRecord": 2, "cuda.runtime.streamWaitEvent": 2, "cuda.function.Module": 0,
    "cuda.driver.funcSetAttribute": 3, "cuda.Stream": 0, "asarray": 1, "ascontiguousarray": 1,
    "ndarray": 3,
}  # fmt: skip
"""Names of CuPy that the runtime uses, and with how many arguments by position."""


def names_in(path: Path) -> set[str]:
    """The names below `cupy` or `runtime` that a file uses."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            text = ast.unparse(node)
            for start in ("cupy.", ".cupy."):
                if start in text:
                    found.add(text.rpartition(start)[2].partition("(")[0])
    return found


def test_all_names_of_cupy_are_listed():
    runtime = Path(irees.__file__).parent / "runtime"
    used = set().union(*map(names_in, runtime.glob("*.py")))
    outermost = {
        name for name in used if not any(other.startswith(name + ".") for other in used)
    } - {"cuda.runtime"}
    assert outermost <= {*CALLED}, outermost - {*CALLED}


@pytest.mark.parametrize("name", CALLED)
def test_cupy_has_what_is_called(name):
    found = pytest.importorskip("cupy", reason="extras `cuda12` and `cuda13`")
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found)
    try:
        parameters = [*inspect.signature(found).parameters.values()]
    except (TypeError, ValueError):
        # Compiled functions may not say; then the first line of their docstring does.
        text = (getattr(found, "__doc__", "") or "").partition(")")[0]
        assert CALLED[name] <= text.count(",") + 1
        return
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least = sum(p.default is p.empty for p in positional)
    assert least <= CALLED[name] <= len(positional) or any(
        p.kind == p.VAR_POSITIONAL for p in parameters
    )
