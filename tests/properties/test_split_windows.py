"""Windows that are reduced one axis after the other give what the whole window gives."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from irees.dialects import get_context
from irees.frontends.mlir import import_mlir
from irees.testing import profiles
from irees.testing.oracles import Case, compiled_agrees, interpret
from irees.transforms import load_pass

FACTOR = profiles.load()

FOLDS = {
    "maximumf": ("f32", np.float32),
    "minnumf": ("f64", np.float64),
    "addf": ("f32", np.float32),
    "maxsi": ("i32", np.int32),
    "addi": ("i64", np.int64),
    "minui": ("i8", np.int8),
}


@st.composite
def windows(draw) -> tuple[str, list[np.ndarray]]:
    """A reduction of windows over two or three axes in any order of dims, with its inputs."""
    count, fold = draw(st.sampled_from([2, 2, 2, 3])), draw(st.sampled_from(sorted(FOLDS)))
    element, dtype = FOLDS[fold]
    channels = draw(st.sampled_from([0, 1, 3]))
    steps = [draw(st.tuples(st.integers(1, 2), st.integers(1, 2))) for _ in range(count)]
    taps = [draw(st.integers(1, 5)) for _ in range(count)]
    sizes = [draw(st.sampled_from([1, 2, 5, 17])) for _ in range(count)]
    starts = [draw(st.integers(0, 1)) for _ in range(count)]
    points, tap_loops = [f"p{i}" for i in range(count)], [f"t{i}" for i in range(count)]
    indices = [
        f"{p} * {stride} + {t} * {dilation} + {start}"
        for p, t, (stride, dilation), start in zip(points, tap_loops, steps, starts, strict=True)
    ]
    reach = [
        (n - 1) * stride + (k - 1) * dilation + start + 1
        for n, k, (stride, dilation), start in zip(sizes, taps, steps, starts, strict=True)
    ]
    shape, out = list(zip(indices, reach, strict=True)), list(zip(points, sizes, strict=True))
    if channels:
        shape.insert(draw(st.integers(0, count)), ("c", channels))
        out.insert(draw(st.integers(0, count)), ("c", channels))
    loops = [*(["c"] if channels else []), *points, *tap_loops]
    dynamic = draw(st.booleans())

    def tensor(dims: list[int], unknown: bool = dynamic) -> str:
        return f"tensor<{'x'.join('?' if unknown else str(n) for n in dims)}x{element}>"

    x, o, k = tensor([n for _, n in shape]), tensor([n for _, n in out]), tensor(taps, False)
    kinds = ['"parallel"'] * (len(loops) - count) + ['"reduction"'] * count
    prefix = draw(st.booleans()) and element.startswith("f")
    own = f"    %n = arith.negf %a : {element}\n" if prefix else ""
    maps = ", ".join(
        f"affine_map<({', '.join(loops)}) -> ({', '.join(results)})>"
        for results in ([i for i, _ in shape], tap_loops, [i for i, _ in out])
    )
    text = f"""func.func @main(%x: {x}, %o: {o}) -> {o} {{
  %k = tensor.empty() : {k}
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{", ".join(kinds)}]}}
      ins(%x, %k : {x}, {k}) outs(%o : {o}) {{
  ^bb0(%a: {element}, %b: {element}, %c: {element}):
{own}    %m = arith.{fold} %c, {"%n" if prefix else "%a"} : {element}
    linalg.yield %m : {element}
  }} -> {o}
  return %r : {o}
}}"""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    arrays = [(random.integers(-9, 9, [n for _, n in dims])).astype(dtype) for dims in (shape, out)]
    if element.startswith("f") and fold != "addf" and draw(st.booleans()):
        arrays[0].flat[:: draw(st.integers(2, 7))] = draw(
            st.sampled_from([np.nan, -np.inf, np.inf, -0.0])
        )
    return text, arrays


@settings(max_examples=40 * FACTOR, deadline=None)
@given(windows())
def test_steps_give_what_the_window_gives(window):
    """Numbers are small integers, whose sums are exact in any order."""
    text, arrays = window
    module, case = import_mlir(text), Case("main", tuple(arrays))
    (want,) = interpret(module, [case])["main"]
    load_pass("irees-split-windows")().apply(get_context(), module)
    module.verify()
    event(f"{str(module).count('linalg.generic')} generics")
    (got,) = interpret(module, [case])["main"]
    assert np.array_equal(got, want, equal_nan=got.dtype.kind == "f")
    if "maximumf" in text:
        assert np.array_equal(np.signbit(got), np.signbit(want))


@settings(max_examples=6 * FACTOR, deadline=None)
@given(windows())
def test_compiled_windows_give_what_the_interpreter_gives(window):
    text, arrays = window
    module, cases = import_mlir(text), [Case("main", tuple(arrays))]
    assert compiled_agrees(module, cases, interpret(module, cases)) == []
