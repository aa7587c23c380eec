"""Whole programs in the cache: what was stored comes back, cheaply."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from types import FunctionType

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import arith

import irees
from irees import program_cache
from irees.blobs import Blob
from irees.build import is_altered
from irees.frontends.mlir import import_mlir, open_source
from irees.options import Options
from irees.program_cache import PACKAGES, Built, compiler_version, find, program_key, store
from irees.rewrites import limited, watched
from irees.runtime.alignment import CACHE_LINE, HUGE_PAGE, placed
from irees.runtime.cache import Cache, key_of
from irees.target import Target
from irees.transforms import load_pass

SOURCE = np.arange(5, dtype=np.float32)


def built() -> Built:
    random = np.random.default_rng(0)
    constants = {
        "odd": random.integers(0, 255, 67, np.uint8),
        "half": random.standard_normal((3, 5)).astype(ml_dtypes.bfloat16),
        "turned": random.standard_normal((6, 7)).T,
        "given": SOURCE,
        "empty": np.zeros((0, 4), np.float32),
        "truth": np.array(True),
        "large": random.standard_normal(HUGE_PAGE // 8 + 1),
    }
    return Built(b"library", {"kernels": []}, {"k": "text"}, constants, {"given": "w"}, {"k": b"i"})


def test_what_is_stored_is_found():
    key, put = key_of("test_what_is_stored_is_found"), built()
    store(key, put)
    found = find(key, {"w": Blob.from_array("w", SOURCE)})
    assert found is not None
    for name in ("library", "manifest", "texts", "from_source", "cubins"):
        assert getattr(found, name) == getattr(put, name)
    assert list(found.constants) == list(put.constants)
    for name, array in put.constants.items():
        assert found.constants[name].dtype == array.dtype
        np.testing.assert_array_equal(found.constants[name], array)


def test_constants_that_were_read_are_used_where_they_lie():
    key = key_of("test_constants_that_were_read_are_used_where_they_lie")
    store(key, built())
    found = find(key, {"w": Blob.from_array("w", SOURCE)})
    assert found is not None
    moved = placed(found.constants)
    for name in found.constants.keys() - found.from_source.keys():
        begin = found.constants[name].ctypes.data
        assert begin % CACHE_LINE == 0
        assert moved[name].ctypes.data == begin


def test_a_program_with_a_failed_pass_is_not_kept():
    key, put = key_of("test_a_program_with_a_failed_pass_is_not_kept"), built()
    put.failed_passes = frozenset({"irees-x"})
    store(key, put)
    assert find(key, {}) is None


def test_a_program_that_is_found_needs_nothing_that_knows_ir(tmp_path):
    code = """
import sys
import numpy as np
import irees
text = "func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {"
text += "%y = arith.addf %x, %x : tensor<3xf32> return %y : tensor<3xf32> }"
print(irees.compile(text)(np.arange(3, dtype=np.float32)), "xdsl" in sys.modules)
"""
    for knows_ir in (True, False):
        answer = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"IREES_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert answer.stdout == f"[0. 2. 4.] {knows_ir}\n"


TEXT = """
func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {{
  %c = arith.constant dense<{0}> : tensor<3xf32>
  %y = arith.addf %x, %c : tensor<3xf32>
  return %y : tensor<3xf32>
}}
"""


def doubled(module) -> None:
    """Makes `x + c` of the module `x + x`: a change that every result shows."""
    for op in list(module.walk()):
        if op.name == "arith.addf":
            op.operands[1] = op.operands[0]


def answer(text: str, **options) -> list[float]:
    return irees.compile(text, **options)(SOURCE[1:4]).tolist()


def doubled_once(name: str):
    """A listener that changes the module when it first hears of something."""
    seen = []

    def hear(_, module, *__) -> None:
        if not seen:
            seen.append(name)
            doubled(module)

    return hear


@pytest.mark.parametrize("devices", [None, {"dev_0": "cpu:0"}], ids=["one target", "devices"])
@pytest.mark.parametrize("name", ["before", "listener", "after"])
def test_a_program_that_a_listener_could_change_is_not_stored(name, devices):
    # Each its own text, so that nothing else of this file stores it.
    offset = 10.0 + len(name) + (100.0 if devices else 0.0)
    text, options = TEXT.format(offset), {"devices": devices}
    changed = answer(text, **{name: doubled_once(name)}, **options)
    if name == "before":
        assert changed == [2.0, 4.0, 6.0]
    assert answer(text, **options) == [x + offset for x in (1.0, 2.0, 3.0)]
    # And one that is in the cache is compiled again where somebody listens.
    heard = []
    irees.compile(text, **{name: lambda *_: heard.append(1)}, **options)
    assert heard


def test_a_program_of_patched_passes_is_not_stored(monkeypatch):
    text = TEXT.format(20.0)
    irees.compile(TEXT.format(21.0))  # the modules are loaded, and recorded, before the patch
    with monkeypatch.context() as patch:
        chosen = load_pass("irees-convert-elementwise-to-linalg")
        apply = chosen.apply

        def changed(self, ctx, module):
            doubled(module)
            apply(self, ctx, module)

        patch.setattr(chosen, "apply", changed)
        assert answer(text) == [2.0, 4.0, 6.0]
    assert answer(text) == [21.0, 22.0, 23.0]


def stored(text: str, monkeypatch) -> bool:
    """Whether compiling a text writes a program to the cache."""
    keys = []
    put = Cache.put
    monkeypatch.setattr(
        Cache, "put", lambda self, key, *parts: keys.append(key) or put(self, key, *parts)
    )
    irees.compile(text)
    return program_key(open_source(text), Options(), Target.parse("cpu")) in keys


def test_plain_programs_are_stored(monkeypatch):
    assert stored(TEXT.format(30.0), monkeypatch)


@pytest.mark.parametrize("what", ["constant", "phases", "limited", "watched", "printer"])
def test_what_no_key_names_keeps_programs_out_of_the_cache(what, monkeypatch):
    irees.compile(TEXT.format(31.0))
    with ExitStack() as stack:
        if what == "constant":
            from irees.transforms.global_opt import fuse_elementwise_ops

            few = replace(fuse_elementwise_ops.COMMON, body_operands=4)
            monkeypatch.setattr(fuse_elementwise_ops, "COMMON", few)
        elif what == "phases":
            from irees import pipeline

            phases = pipeline.phases
            monkeypatch.setattr(pipeline, "phases", lambda options, **how: phases(options, **how))
        elif what == "printer":
            from irees.backends.common import printer

            some = next(f for f in vars(printer).values() if isinstance(f, FunctionType))
            monkeypatch.setattr(printer, some.__name__, lambda *args: some(*args))
        elif what == "limited":
            stack.enter_context(limited(1))
        else:
            stack.enter_context(watched(lambda *_: None))
        assert not stored(TEXT.format(32.0 + len(what)), monkeypatch)


def test_ops_of_a_plug_in_keep_a_program_out_of_the_cache():
    module = import_mlir(TEXT.format(40.0))
    assert not is_altered(module, Options())
    foreign = type("AddfOp", (arith.AddfOp,), {"__module__": "another.dialect"})
    add = next(op for op in module.walk() if op.name == "arith.addf")
    add.__class__ = foreign
    assert is_altered(module, Options())


def test_the_key_names_what_takes_part(monkeypatch):
    real, other = program_cache.version, ""
    monkeypatch.setattr(program_cache, "version", lambda name: "0" if name == other else real(name))
    compiler_version.cache_clear()
    plain = compiler_version()
    for other in PACKAGES:  # noqa: B007 (the lambda reads it)
        compiler_version.cache_clear()
        assert compiler_version() != plain
    compiler_version.cache_clear()
