"""Padded ops give what they gave, whatever they combine and however far their loops run."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from irees.remarks import collect
from irees.testing import profiles
from irees.testing.oracles import passes_agree
from irees.testing.tolerances import reassociated
from irees.transforms import load_pass

FACTOR = profiles.load()
LIMIT = 9
BODIES = {
    "sum": "%r = arith.addf %v, %acc : f32",
    "difference": "%r = arith.subf %acc, %v : f32",
    "product": "%r = arith.mulf %v, %acc : f32",
    "maximum": "%r = arith.maximumf %acc, %v : f32",
    "minnum": "%r = arith.minnumf %v, %acc : f32",
    "dot": "%m = arith.mulf %v, %w : f32\n    %r = arith.addf %m, %acc : f32",
    "square": "%m = arith.mulf %v, %v : f32\n    %r = arith.addf %acc, %m : f32",
    "powers": "%m = math.exp %v : f32\n    %r = arith.addf %m, %acc : f32",
    "last": "%r = arith.addf %v, %w : f32",
    "count": "%j = linalg.index 1 : index\n    %k = arith.index_cast %j : index to i32\n"
    "    %m = arith.sitofp %k : i32 to f32\n    %r = arith.addf %m, %acc : f32",
    "quotient": "%m = arith.divf %v, %w : f32\n    %r = arith.maximumf %m, %acc : f32",
}


@settings(max_examples=150 * FACTOR)
@given(st.data())
def test_padding_does_not_show(data):
    name = data.draw(st.sampled_from(list(BODIES)))
    sizes = [data.draw(st.integers(0, LIMIT)) for _ in range(2)]
    bounded = [data.draw(st.booleans()) for _ in range(2)]
    unknown = data.draw(st.integers(0, 9)) == 0
    padding = [data.draw(st.sampled_from([0, 1, 2, 4, 7, -3])) for _ in range(2)]
    # The second operand may lack the loop that is reduced: zeros times infinity would be NaN.
    second = data.draw(st.sampled_from(["d0, d1", "d1, d0", "d1", "d0"]))
    w_dims = [int(d[1]) for d in second.split(", ")]

    def text_of(dims):
        return "".join("?x" if bounded[d] else f"{sizes[d]}x" for d in dims)

    def part(result, source, dims):
        size = ", ".join(f"%s{d}" if bounded[d] else str(sizes[d]) for d in dims)
        whole = "x".join([str(LIMIT)] * len(dims))
        zeros, ones = (", ".join([n] * len(dims)) for n in "01")
        return (
            f"  {result} = tensor.extract_slice {source}[{zeros}] [{size}] [{ones}] : "
            f"tensor<{whole}xf32> to tensor<{text_of(dims)}f32>\n"
        )

    limit = "" if unknown else f"<umin = 0, umax = {LIMIT}>"
    assumed = "".join(
        f"  %s{d} = util.assume.int %n{d}{limit} : index\n"
        if limit
        else f"  %s{d} = arith.addi %n{d}, %zero : index\n"
        for d in (0, 1)
    )
    whole_w = "x".join([str(LIMIT)] * len(w_dims))
    x, w, o = (f"tensor<{text_of(d)}f32>" for d in ([0, 1], w_dims, [0]))
    text = f"""
#config = #iree_codegen.lowering_config<{{padding = {padding}}}>
func.func @main(%x: tensor<{LIMIT}x{LIMIT}xf32>, %w: tensor<{whole_w}xf32>, %o: tensor<{LIMIT}xf32>,
                %n0: index, %n1: index) -> {o} {{
  %zero = arith.constant 0 : index
{assumed}{part("%a", "%x", [0, 1])}{part("%b", "%w", w_dims)}{part("%c", "%o", [0])}
  %result = linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>,
      affine_map<(d0, d1) -> ({second})>, affine_map<(d0, d1) -> (d0)>],
      iterator_types = ["parallel", "reduction"]}} ins(%a, %b : {x}, {w}) outs(%c : {o})
      attrs = {{lowering_config = #config}} {{
  ^bb0(%v: f32, %w_: f32, %acc: f32):
    {BODIES[name].replace("%w", "%w_")}
    linalg.yield %r : f32
  }} -> {o}
  return %result : {o}
}}
"""
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    arrays = [random.integers(-3, 4, (LIMIT,) * n).astype(np.float32) for n in (2, len(w_dims), 1)]
    for array in arrays:
        special = st.sampled_from([np.inf, -np.inf, np.nan, -0.0])
        for number in data.draw(st.lists(special, max_size=1)):
            array.flat[data.draw(st.integers(0, array.size - 1))] = number
    inputs = [*arrays, np.int64(sizes[0]), np.int64(sizes[1])]
    with collect() as remarks:
        _, wrong = passes_agree(
            text,
            [load_pass("irees-pad-operands")()],
            *inputs,
            tolerances=(reassociated(LIMIT + 9),),
        )
    assert wrong == []
    (said,) = [r for r in remarks if r.pass_name == "irees-pad-operands"]
    wanted = [p > 1 and (bounded[d] or sizes[d] % p) for d, p in enumerate(padding)]
    impossible = unknown and any(bounded[d] and p > 1 for d, p in enumerate(padding))
    assert said.kind == ("passed" if any(wanted) and not impossible else "missed")
    event(f"{said.kind}, {name}")
