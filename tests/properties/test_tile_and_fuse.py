"""Tiled ops give what they gave, and no tile has a tensor of its own."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from irees.testing import profiles
from irees.testing.oracles import passes_agree
from irees.transforms import load_pass

FACTOR = profiles.load()
IDENTITY, ROW = "affine_map<(d0, d1) -> (d0, d1)>", "affine_map<(d0, d1) -> (d0)>"
CROSSED = "affine_map<(d0, d1) -> (d1, d0)>"


@settings(max_examples=120 * FACTOR)
@given(st.data())
def test_tiles_change_nothing(data):
    n, m = (data.draw(st.sampled_from([1, 4, 5, 8, 0])) for _ in range(2))
    square = data.draw(st.booleans())
    m = n if square else m
    dynamic = data.draw(st.booleans())
    full = f"tensor<?x{m}xi32>" if dynamic else f"tensor<{n}x{m}xi32>"
    row = "tensor<?xi32>" if dynamic else f"tensor<{n}xi32>"
    size = "(%n)" if dynamic else "()"
    lines = [
        "%c0 = arith.constant 0 : index",
        "%zero = arith.constant 3 : i32",
        f"%n = tensor.dim %x, %c0 : {full}",
        f"%t = tensor.empty{size} : {full}",
        f"%s = tensor.empty{size} : {row}",
    ]
    values = [("%x", full), ("%y", full)]

    def read(value, kind):
        if kind == row:
            return ROW
        crossed = square and not dynamic and data.draw(st.integers(0, 3)) == 0
        return CROSSED if crossed else IDENTITY

    def op(number, last):
        kind = full if last else data.draw(st.sampled_from([full, full, row]))
        inputs = [data.draw(st.sampled_from(values)) for _ in range(data.draw(st.integers(1, 2)))]
        inputs = [v for v in inputs if kind == full or v[1] == full] or [("%x", full)]
        maps = [read(*v) for v in inputs]
        if kind == row:
            maps[0] = IDENTITY
        target, result = (IDENTITY, "%t") if kind == full else (ROW, f"%f{number}")
        if kind == row:
            lines.append(f"%f{number} = linalg.fill ins(%zero : i32) outs(%s : {row}) -> {row}")
        elif last or data.draw(st.integers(0, 3)) == 0:
            result = "%y"
        scalars = [f"%a{k}" for k in range(len(inputs))]
        body = [f"%i = linalg.index {data.draw(st.integers(0, 1))} : index",
                "%j = arith.index_cast %i : index to i32"]  # fmt: skip
        total = "%j" if data.draw(st.booleans()) else "%zero"
        for k, scalar in enumerate([*scalars, "%out"] if kind == row or last else scalars):
            body.append(f"%v{k} = arith.{'subi' if k else 'addi'} {scalar}, {total} : i32")
            total = f"%v{k}"
        if kind == row:
            # Sums in any order of the columns.
            body.append("%w = arith.addi %a0, %out : i32\n    linalg.yield %w : i32")
            body = [b for b in body if b.startswith("%w")]
        else:
            body.append(f"linalg.yield {total} : i32")
        tiled = last or data.draw(st.integers(0, 4)) == 0
        tile = data.draw(st.sampled_from([0, 1, 2, 3, 4])) if tiled else 0
        other = data.draw(st.sampled_from([0, 2, 5])) if tiled and kind == full else 0
        config = f"#iree_codegen.lowering_config<{{workgroup = [{tile}, {other}]}}>"
        kinds = '"parallel", "parallel"' if kind == full else '"parallel", "reduction"'
        lines.append(
            f"%r{number} = linalg.generic {{indexing_maps = [{', '.join([*maps, target])}], "
            f"iterator_types = [{kinds}]}} ins({', '.join(v for v, _ in inputs)} : "
            f"{', '.join(k for _, k in inputs)}) outs({result} : {kind}) "
            + (f"attrs = {{lowering_config = {config}}} " if tile or other else "")
            + "{\n  ^bb0("
            + ", ".join(f"{v}: i32" for v in [*scalars, "%out"])
            + "):\n    "
            + "\n    ".join(body)
            + f"\n  }} -> {kind}"
        )
        values.append((f"%r{number}", kind))
        return tile or other

    count = data.draw(st.integers(1, 5))
    tiled = [op(number, number == count - 1) for number in range(count)]
    text = (
        f"func.func @main(%x: {full}, %y: {full}) -> ({full}, {full}) {{\n  "
        + "\n  ".join(lines)
        + f"\n  return %r{count - 1}, %y : {full}, {full}\n}}\n"
    )
    inputs = [np.arange(n * m, dtype=np.int32).reshape(n, m) * k for k in (1, -3)]
    module, wrong = passes_agree(text, [load_pass("irees-tile-and-fuse")()], *inputs)
    assert wrong == []
    loops = [o for o in module.walk() if o.name == "scf.forall"]
    assert bool(loops) == bool(tiled[-1]) or any(tiled)
    for loop in loops:
        assert not any(o.name == "tensor.empty" for o in loop.walk())
    fused = sum(o.name.startswith("linalg.") for loop in loops for o in loop.walk())
    event(f"{len(loops)} loops, {min(fused, 9)} ops inside")
