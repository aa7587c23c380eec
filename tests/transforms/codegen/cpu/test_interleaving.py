"""Ops with a short last loop, whose iterations become interleaved vectors, against numpy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irees
from irees.testing import profiles
from irees.transforms.codegen.cpu.vectorize_shuffled_ops.interleaving import Interleaving

FACTOR = profiles.load()
SIZES = st.sampled_from((1, 3, 4, 8, 15, 16, 17, 31, 33, 48, 130))
TYPES = {
    "f32": "f4", "f64": "f8", "i32": "i4", "i64": "i8", "i8": "i1", "i16": "i2", "bf16": "bf16",
}  # fmt: skip


def text(shape: tuple[int, int], count: int, element: str, dynamic: bool, form: str) -> str:
    """
    out[i, j, k] = x[i, j] (repeated), one of x[i, j] and y[i, j] by k (stacked), or x[i, j] +
    y[i, k] (added), or x[i, 2 * j] (short)
    """

    def tensor(sizes, unknown: bool = dynamic) -> str:
        return "tensor<" + "".join(f"{'?' if unknown else s}x" for s in sizes) + f"{element}>"

    step = 2 if form == "short" else 1
    wide = tensor((shape[0], shape[1] * step))
    other = tensor((shape[0], count), False) if form == "added" else wide
    known = f"{'?' if dynamic else shape[0]}x{'?' if dynamic else shape[1]}x{count}x{element}"
    add = "arith.addf" if "f" in element else "arith.addi"
    body = {
        "repeated": "linalg.yield %a",
        "short": "linalg.yield %a",
        "added": f"%s = {add} %a, %b : {element}\n    linalg.yield %s",
        "stacked": "%k = linalg.index 2 : index\n    %q = arith.cmpi eq, %k, %zero : index\n"
        f"    %s = arith.select %q, %a, %b : {element}\n    linalg.yield %s",
    }[form]
    maps = [
        f"(i, j, k) -> (i, j * {step})",
        f"(i, j, k) -> (i, {'k' if form == 'added' else f'j * {step}'})",
    ]
    return f"""func.func @main(%x: {wide}, %y: {other}, %e: tensor<{known}>) -> tensor<{known}> {{
  %zero = arith.constant 0 : index
  %r = linalg.generic {{indexing_maps = [{", ".join(f"affine_map<{m}>" for m in maps)},
      affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%x, %y : {wide}, {other}) outs(%e : tensor<{known}>) {{
  ^bb0(%a: {element}, %b: {element}, %o: {element}):
    {body} : {element}
  }} -> tensor<{known}>
  return %r : tensor<{known}>
}}"""


def numpy_of(element: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if element == "bf16" else TYPES[element])


@pytest.mark.parametrize("target", ["cpu", "cpu:generic"])
def test_interleaved_vectors(target):
    @settings(max_examples=15 * FACTOR, deadline=None)
    @given(st.data())
    def agree(data):
        shape, count = (
            (data.draw(st.sampled_from((1, 5))), data.draw(SIZES)),
            data.draw(st.integers(2, 4)),
        )
        element, dynamic = data.draw(st.sampled_from(sorted(TYPES))), data.draw(st.booleans())
        form = data.draw(st.sampled_from(("repeated", "short", "added", "stacked")))
        program = irees.compile(text(shape, count, element, dynamic, form), target=target)
        rng, step = np.random.default_rng(0), 2 if form == "short" else 1
        sizes = (
            (shape[0], shape[1] * step),
            (shape[0], count if form == "added" else shape[1] * step),
        )
        x, y = (rng.integers(-9, 9, s).astype(numpy_of(element)) for s in sizes)
        out = np.zeros((*shape, count), numpy_of(element))
        first = x[:, ::step, None] + np.zeros_like(out)
        expected = {
            "added": lambda: x[..., None] + y[:, None],
            "stacked": lambda: np.where(np.arange(count) == 0, first, y[..., None]),
        }.get(form, lambda: first)()
        np.testing.assert_array_equal(program(x, y, out), expected.astype(out.dtype))

    agree()


@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_form_is_used(count, monkeypatch):
    built = []
    real = Interleaving.build
    monkeypatch.setattr(
        Interleaving,
        "build",
        lambda self: (built.append(self.count), real(self)),
    )
    irees.compile(
        text((2, 64), count, "f32", False, "stacked"), target="cpu:x86-64-v3", to="codegen"
    )
    assert built == [count]
