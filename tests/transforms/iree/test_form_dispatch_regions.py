"""
Each legality rule of form-dispatch-regions, accepted and refused.

A case is the body of a function and the kernels that are formed of it: the names of the values
that each makes. What is in none stays outside.
"""

from __future__ import annotations

import pytest
from xdsl.parser import Parser

from irees.dialects import get_context
from irees.dialects.flow import DispatchRegionOp
from irees.remarks import collect
from irees.transforms.dispatch_creation.form_tile_regions import FormTileRegionsPass
from irees.transforms.iree.form_dispatch_regions import FormDispatchRegionsPass

PRELUDE = """
!m = tensor<64x64xf32>
!v = tensor<64xf32>
!d = tensor<?x?xf32>
!q = tensor<?xf32>
#id = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0) -> (d0)>
#tr = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
#enc = #iree_encoding.testing<>
func.func @f(%a: !m, %b: !m, %c: !m, %v: !v, %u: !v, %x: !d, %y: !d, %z: !d, %w: !q, %i: index) {
  %zero = arith.constant 0.0 : f32
  BODY
  return
}
"""
MATMUL = "linalg.matmul ins(%a, %b : !m, !m) outs(%c : !m) -> !m"
ROWS = """linalg.reduce ins(%a : !m) outs(%v : !v) dimensions = [1]
    (%in: f32, %out: f32) { %o = arith.addf %in, %out : f32 linalg.yield %o : f32 }"""
DYNAMIC_ROWS = """linalg.reduce ins(%x : !d) outs(%w : !q) dimensions = [1]
    (%in: f32, %out: f32) { %o = arith.addf %in, %out : f32 linalg.yield %o : f32 }"""


def generic(maps: str, ins: str, outs: str, kinds: str = "pp", body: str = "%p") -> str:
    """A generic whose first argument is %p; `ins` and `outs` are `value : type`."""
    names = {"p": '"parallel"', "r": '"reduction"'}
    values = [each.split(" : ") for each in f"{ins}, {outs}".split(", ") if each]
    count = len([each for each in ins.split(", ") if each])
    groups = []
    for group in (values[:count], values[count:]):
        listed, types = ", ".join(v for v, _ in group), ", ".join(t for _, t in group)
        groups.append(f"({listed} : {types})" if group else "")
    args = ", ".join(f"{'%p' if i == 0 else f'%p{i}'}: f32" for i in range(len(values)))
    yielded, made = body, ""
    if " = " in body:
        yielded, made = body.split(" = ")[0], body
    results = ", ".join(t for _, t in values[count:])
    return (
        f"linalg.generic {{indexing_maps = [{maps}], "
        f"iterator_types = [{', '.join(names[k] for k in kinds)}]}} "
        f"{'ins' + groups[0] if groups[0] else ''} outs{groups[1]} {{\n"
        f"^bb0({args}):\n {made}\n linalg.yield {yielded} : f32 }} -> {results}"
    )


def mapped(source: str, dest: str = "%c", type: str = "!m") -> str:
    """One generic that reads and writes element by element; a named op would be a root."""
    rank = 1 if type in ("!v", "!q") else 2
    maps, kinds = ("#one, #one", "p") if rank == 1 else ("#id, #id", "pp")
    return generic(maps, f"{source} : {type}", f"{dest} : {type}", kinds)


def use(*names: str, type: str = "!m") -> str:
    return "".join(f"util.optimization_barrier %{name} : {type}\n" for name in names)


def kernels(body: str, **options: bool) -> list[str]:
    """What the kernels make, in order, and with which remarks."""
    text = PRELUDE.replace("BODY", body)
    module = Parser(get_context(), text, "case").parse_module()
    module.verify()
    FormDispatchRegionsPass(**options).apply(get_context(), module)
    module.verify()
    regions = [op for op in module.walk() if isinstance(op, DispatchRegionOp)]
    return [
        " ".join(op.results[0].name_hint.split("_")[0] for op in r.body.block.ops if op.results)
        for r in regions
    ]


MAPPED_M = mapped("%m")
TWICE = f"%m = {MATMUL}\n%e = {MAPPED_M}\n%f = {mapped('%m', '%b', '!m')}\n"
NARROW = """%n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%INPUT : !m) outs(%h : tensor<64x64xf16>) { ^bb0(%p: f32, %o: f16):
      %t = arith.truncf %p : f32 to f16  linalg.yield %t : f16 } -> tensor<64x64xf16>
%s = iree_linalg_ext.scatter dimension_map = [0] unique_indices(true)
    ins(%n, %k : tensor<64x64xf16>, tensor<64x1xi32>) outs(%h : tensor<64x64xf16>) {
    ^bb0(%p: f16, %o: f16): iree_linalg_ext.yield %p : f16 } -> tensor<64x64xf16>
util.optimization_barrier %s : tensor<64x64xf16>
"""
HALVES = """%h = util.unfoldable_constant dense<0.0> : tensor<64x64xf16>
%k = util.unfoldable_constant dense<0> : tensor<64x1xi32>
"""
CONV = """%g = util.unfoldable_constant dense<0.0> : tensor<1x9x9x4xf32>
%h = util.unfoldable_constant dense<0.0> : tensor<2x2x4x8xf32>
%o = util.unfoldable_constant dense<0.0> : tensor<1x8x8x8xf32>
%m = linalg.conv_2d_nhwc_hwcf ins(%g, %h : tensor<1x9x9x4xf32>, tensor<2x2x4x8xf32>)
    outs(%o : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
%e = linalg.generic {indexing_maps = [MAP, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%m : tensor<1x8x8x8xf32>) outs(%o : tensor<1x8x8x8xf32>) {
    ^bb0(%p: f32, %q: f32): %t = arith.addf %p, SECOND : f32 linalg.yield %t : f32 } -> tensor<1x8x8x8xf32>
util.optimization_barrier %e : tensor<1x8x8x8xf32>
"""
IDENTITY4 = "affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>"
SWAPPED4 = "affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>"
UNPACK = """%t = util.unfoldable_constant dense<0.0> : tensor<64x8x8xf32>
%m = linalg.unpack %t inner_dims_pos = [1] inner_tiles = [8] into %c : tensor<64x8x8xf32> -> !m
"""
PACK = """%t = util.unfoldable_constant dense<0.0> : tensor<8x64x8xf32>
%e = linalg.pack %m inner_dims_pos = [0] inner_tiles = [8] into %t : !m -> tensor<8x64x8xf32>
util.optimization_barrier %e : tensor<8x64x8xf32>
"""
ATTENTION = (
    f"%m = {mapped('%a')}"
    + """
%one = arith.constant 1.0 : f32
%e = iree_linalg_ext.attention {indexing_maps = [
    affine_map<(d0, d1, d2, d3) -> (d0, d2)>, affine_map<(d0, d1, d2, d3) -> (d3, d2)>,
    affine_map<(d0, d1, d2, d3) -> (d3, d1)>, affine_map<(d0, d1, d2, d3) -> ()>,
    MASK affine_map<(d0, d1, d2, d3) -> (d0, d1)>]}
    ins(INS) outs(%c : !m) { ^bb0(%s: f32): iree_linalg_ext.yield %s : f32 } -> !m
util.optimization_barrier %e : !m
"""
)
QUERY = ATTENTION.replace("MASK", "").replace("INS", "%m, %b, %b, %one : !m, !m, !m, f32")
MASK = ATTENTION.replace("MASK", "affine_map<(d0, d1, d2, d3) -> (d0, d3)>,").replace(
    "INS", "%a, %b, %b, %one, %m : !m, !m, !m, f32, !m"
)
MANY = "\n".join(f"%t{i} = util.unfoldable_constant dense<0.0> : !m" for i in range(16))


def many(count: int) -> str:
    ins = "%m : !m, " + ", ".join(f"%t{i} : !m" for i in range(count))
    return generic(", ".join(["#id"] * (count + 2)), ins, "%c : !m")


# id, body, kernels by default, kernels with aggressive-fusion (None: the same)
CASES = [
    ("a consumer joins its root", f"%m = {MATMUL}\n%e = {MAPPED_M}\n{use('e')}", ["m e"], None),
    (
        "consumers of consumers join",
        f"%m = {MATMUL}\n%e = {MAPPED_M}\n%f = {mapped('%e')}\n{use('f')}",
        ["m e f"],
        None,
    ),
    ("aggressive: several consumers", TWICE + use("e", "f"), ["m", "e", "f"], ["m e f"]),
    (
        "a size is no consumer",
        f"%m = linalg.matmul ins(%x, %y : !d, !d) outs(%z : !d) -> !d\n%n = tensor.dim %m, %i : !d\n"
        f"%e = {mapped('%m', '%z', '!d')}\n{use('e', type='!d')}"
        f"{use('n', type='index')}",
        ["m e"],
        None,
    ),
    (
        "a consumer that transposes joins",
        f"%m = {MATMUL}\n%e = {generic('#tr, #id', '%m : !m', '%c : !m')}\n{use('e')}",
        ["m e"],
        None,
    ),
    (
        "a value that is read in two orders keeps its consumer out",
        f"%m = {MATMUL}\n%e = {generic('#id, #tr, #id', '%m : !m, %m : !m', '%c : !m')}\n{use('e')}",
        ["m", "e"],
        None,
    ),
    (
        "a consumer that reads along no parallel loop of the root stays out",
        f"%m = {ROWS}\n%e = {generic('affine_map<(d0, d1) -> (0)>, #id', '%m : !v', '%c : !m')}\n{use('e')}",
        ["m", "e"],
        None,
    ),
    (
        "a consumer that uses a result of the group in its body stays out",
        f"%m = {MATMUL}\n%e = "
        + generic("#id, #id", "%m : !m", "%c : !m", body="%g = tensor.extract %m[%i, %i] : !m")
        + f"\n{use('e')}",
        ["m", "e"],
        None,
    ),
    (
        "a reduction is no consumer",
        f"%m = {MATMUL}\n%e = {generic('#id, #row', '%m : !m', '%v : !v', 'pr')}\n{use('e', type='!v')}",
        ["m", "e"],
        None,
    ),
    (
        "aggressive: a consumer with as many loops as the root, but more than its producer",
        f"%m = {ROWS}\n%n = {mapped('%m', '%u', '!v')}\n"
        f"%e = {generic('#row, #id', '%n : !v', '%c : !m')}\n{use('e')}",
        ["m n", "e"],
        ["m n e"],
    ),
    (
        "a consumer that is larger than the root stays out",
        f"%t = util.unfoldable_constant dense<0.0> : tensor<4x64x64xf32>\n%m = {ROWS}\n%e = "
        + generic(
            "affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>",
            "%m : !v",
            "%t : tensor<4x64x64xf32>",
            "ppp",
        )
        + f"\n{use('e', type='tensor<4x64x64xf32>')}",
        ["m", "e"],
        None,
    ),
    (
        "a consumer writes where the convolution wrote",
        CONV.replace("MAP", IDENTITY4).replace("SECOND", "%p"),
        ["m e"],
        None,
    ),
    (
        "aggressive: a consumer that reads what it writes over",
        CONV.replace("MAP", IDENTITY4).replace("SECOND", "%q"),
        ["m", "e"],
        ["m e"],
    ),
    (
        "aggressive: a consumer that reads elsewhere than it writes",
        CONV.replace("MAP", SWAPPED4).replace("SECOND", "%p"),
        ["m", "e"],
        ["m e"],
    ),
    ("sixteen operands", f"{MANY}\n%m = {MATMUL}\n%e = {many(15)}\n{use('e')}", ["m e"], None),
    ("seventeen operands", f"{MANY}\n%m = {MATMUL}\n%e = {many(16)}\n{use('e')}", ["m", "e"], None),
    (
        "a multiplication of tiles has no consumer",
        "%t = util.unfoldable_constant dense<0.0> : tensor<4x4x8x8xf32>\n"
        "%m = linalg.mmt4d ins(%t, %t : tensor<4x4x8x8xf32>, tensor<4x4x8x8xf32>) "
        "outs(%t : tensor<4x4x8x8xf32>) -> tensor<4x4x8x8xf32>\n"
        "%e = "
        + generic(
            f"{IDENTITY4}, {IDENTITY4}",
            "%m : tensor<4x4x8x8xf32>",
            "%t : tensor<4x4x8x8xf32>",
            "pppp",
        )
        + f"\n{use('e', type='tensor<4x4x8x8xf32>')}",
        ["m", "e"],
        None,
    ),
    (
        "a pack takes what is written in order",
        f"%m = {mapped('%a')}\n{PACK}",
        ["m e"],
        None,
    ),
    ("a pack does not take a contraction", f"%m = {MATMUL}\n{PACK}", ["m", "e"], None),
    (
        "a pack does not take what is written transposed",
        f"%m = {generic('#id, #tr', '%a : !m', '%c : !m')}\n{PACK}",
        ["m", "e"],
        None,
    ),
    (
        "an encoding is set by the kernel before",
        f"%m = {mapped('%a')}\n%e = iree_encoding.set_encoding %m : !m -> tensor<64x64xf32, #enc>\n"
        f"{use('e', type='tensor<64x64xf32, #enc>')}",
        ["m e"],
        None,
    ),
    (
        "setting an encoding is no kernel",
        f"%e = iree_encoding.set_encoding %a : !m -> tensor<64x64xf32, #enc>\n"
        f"{use('e', type='tensor<64x64xf32, #enc>')}",
        [],
        None,
    ),
    (
        "an unpack and what is elementwise",
        f"{UNPACK}%e = {MAPPED_M}\n{use('e')}",
        ["m e"],
        None,
    ),
    (
        "an unpack and a reduction of a dim that was whole",
        f"{UNPACK}%e = {generic('#tr, #row', '%m : !m', '%v : !v', 'pr')}\n{use('e', type='!v')}",
        ["m e"],
        None,
    ),
    (
        "an unpack and a reduction of the dim in tiles",
        f"{UNPACK}%e = {generic('#id, #row', '%m : !m', '%v : !v', 'pr')}\n{use('e', type='!v')}",
        ["m", "e"],
        None,
    ),
    (
        "a slice is inserted into a fill",
        f"%e0 = linalg.fill ins(%zero : f32) outs(%b : !m) -> !m\n%m = {ROWS}\n"
        f"%e = tensor.insert_slice %m into %e0[0, 0] [64, 1] [1, 1] : !v into !m\n{use('e')}",
        ["m e"],
        None,
    ),
    (
        "a slice is not inserted into anything else",
        f"%m = {ROWS}\n%e = tensor.insert_slice %m into %b[0, 0] [64, 1] [1, 1] : !v into !m\n{use('e')}",
        ["m"],
        None,
    ),
    (
        "what makes the destination joins",
        f"%e = {mapped('%a')}\n"
        f"%m = linalg.matmul ins(%a, %b : !m, !m) outs(%e : !m) -> !m\n{use('m')}",
        ["e m"],
        None,
    ),
    (
        "aggressive: what makes an input joins",
        f"%e = {mapped('%a')}\n"
        f"%m = {generic('#id, #row', '%e : !m', '%v : !v', 'pr')}\n{use('m', type='!v')}",
        ["e", "m"],
        ["e m"],
    ),
    (
        "a producer for all loops of the root, not for some",
        f"%e = {mapped('%u', '%v', '!v')}\n"
        f"%m = {generic('#id, #row, #id', '%a : !m, %e : !v', '%c : !m')}\n{use('m')}",
        ["e", "m"],
        ["e", "m"],
    ),
    (
        "a contraction is no producer of another",
        f"%m = {MATMUL}\n%n = linalg.matmul ins(%m, %b : !m, !m) outs(%c : !m) -> !m\n{use('n')}",
        ["m", "n"],
        None,
    ),
    (
        "a reduction over the same rows is a producer",
        f"%m = {ROWS}\n%e = {generic('#id, #row, #row', '%a : !m, %m : !v', '%u : !v', 'pr')}\n"
        f"{use('e', type='!v')}",
        ["m", "e"],
        ["m e"],
    ),
    (
        "a dynamic reduction over the same rows too",
        f"%m = {DYNAMIC_ROWS}\n%e = {generic('#id, #row, #row', '%x : !d, %m : !q', '%w : !q', 'pr')}\n"
        f"{use('e', type='!q')}",
        ["m", "e"],
        ["m e"],
    ),
    ("attention does not fuse producers", QUERY, ["m", "e"], None),
    ("aggressive: masks are computed again", MASK, ["m", "e"], ["e"]),
    (
        "narrow elements end the kernel before",
        f"{HALVES}%m = {MATMUL}\n{NARROW.replace('INPUT', 'm')}",
        ["m n", "s"],
        ["m n", "s"],
    ),
    (
        "narrow elements without a kernel before start the next",
        HALVES + NARROW.replace("INPUT", "a"),
        ["n", "s"],
        ["n s"],
    ),
    (
        "widening is outside, for all who read it",
        "%h = util.unfoldable_constant dense<0.0> : tensor<64x64xf16>\n"
        '%e = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}'
        " ins(%h : tensor<64x64xf16>) outs(%c : !m) { ^bb0(%p: f16, %o: f32): "
        "%t = arith.extf %p : f16 to f32 linalg.yield %t : f32 } -> !m\n"
        f"%m = linalg.matmul ins(%e, %b : !m, !m) outs(%c : !m) -> !m\n{use('m')}",
        ["m"],
        None,
    ),
    (
        "fills are outside",
        "%e = linalg.fill ins(%zero : f32) outs(%c : !m) -> !m\n"
        f"%m = linalg.matmul ins(%a, %b : !m, !m) outs(%e : !m) -> !m\n{use('m')}",
        ["m"],
        None,
    ),
    (
        "what no root takes is a root",
        f"%e = {mapped('%a')}\n{use('e')}",
        ["e"],
        None,
    ),
    (
        "a group does not wait for itself",
        f"%m = {MATMUL}\n%n = util.optimization_barrier %m : !m\n"
        f"%e = {generic('#id, #id, #id', '%m : !m, %n : !m', '%c : !m')}\n{use('e')}",
        ["m", "e"],
        None,
    ),
    ("results that nobody uses need no kernel", f"%m = {MATMUL}", [], None),
]


@pytest.mark.parametrize(
    ("body", "default", "aggressive"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_kernels(body, default, aggressive):
    assert kernels(body) == default
    assert kernels(body, aggressive_fusion=True) == (default if aggressive is None else aggressive)


PAD = """%t = tensor.pad %a low[0, 0] high[1, 1] { ^bb0(%j: index, %k: index): tensor.yield %zero : f32 }
    : !m to tensor<65x65xf32>
"""
PADDED = f"%m = {MATMUL}\n{PAD.replace('%a', '%m')}{use('t', type='tensor<65x65xf32>')}"


def test_pads_start_kernels_unless_told_otherwise():
    assert kernels(PADDED) == ["m", "t"]
    assert kernels(PADDED, fuse_pad_with_producers=True) == ["m t"]


def test_pads_join_convolutions_on_request():
    body = (
        "%g = util.unfoldable_constant dense<0.0> : tensor<1x8x8x4xf32>\n"
        "%h = util.unfoldable_constant dense<0.0> : tensor<3x3x4x8xf32>\n"
        "%o = util.unfoldable_constant dense<0.0> : tensor<1x8x8x8xf32>\n"
        "%t = tensor.pad %g low[0, 1, 1, 0] high[0, 1, 1, 0] { ^bb0(%j: index, %k: index, "
        "%l: index, %n: index): tensor.yield %zero : f32 } "
        ": tensor<1x8x8x4xf32> to tensor<1x10x10x4xf32>\n"
        "%m = linalg.conv_2d_nhwc_hwcf ins(%t, %h : tensor<1x10x10x4xf32>, tensor<3x3x4x8xf32>) "
        f"outs(%o : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>\n{use('m', type='tensor<1x8x8x8xf32>')}"
    )
    assert kernels(body) == ["t", "m"]
    assert kernels(body, fuse_pad_with_consumers=True) == ["t m"]


SHARED = (
    f"%e = {mapped('%a')}\n"
    f"%m = {generic('#id, #row', '%e : !m', '%v : !v', 'pr')}\n{use('m', type='!v')}\n{use('e')}"
)


def test_producers_with_other_uses():
    assert kernels(SHARED, aggressive_fusion=True) == ["e m"]
    options = {"aggressive_fusion": True, "fuse_multi_use_producers": False}
    assert kernels(SHARED, **options) == ["e", "m"]


def test_a_kernel_before_keeps_its_producer_out():
    region = "%r = flow.dispatch.region -> (!m) { flow.return %e : !m }\n"
    body = SHARED.replace("\n%m", f"\n{region}%m", 1) + use("r")
    assert kernels(body, aggressive_fusion=True) == ["e", "", "m"]


def test_blocks_of_scf_have_kernels_of_their_own():
    body = (
        f"%m = {MATMUL}\n%t = arith.constant true\n%r = scf.if %t -> (!m) {{\n%e = {MAPPED_M}\n"
        f"scf.yield %e : !m }} else {{ scf.yield %m : !m }}\n{use('r')}"
    )
    assert kernels(body, aggressive_fusion=True) == ["m", "e"]


def test_effects_keep_their_order():
    body = (
        f"%m = {MATMUL}\nutil.global.store %m, @g : !m\n%l = util.global.load @g : !m\n"
        f"%e = {generic('#id, #id, #id', '%m : !m, %l : !m', '%c : !m')}\n{use('e')}"
    )
    global_ = "util.global private mutable @g : tensor<64x64xf32>\nfunc.func @f"
    module = Parser(
        get_context(), PRELUDE.replace("BODY", body).replace("func.func @f", global_), "case"
    ).parse_module()
    for each in (FormDispatchRegionsPass(True), FormTileRegionsPass()):
        clone = module.clone()
        each.apply(get_context(), clone)
        clone.verify()
        order = [op.name for op in clone.walk() if op.name.startswith("util.global.")]
        assert order == ["util.global.store", "util.global.load"]


def test_a_refusal_is_a_remark():
    two_orders = generic("#id, #tr, #id", "%m : !m, %m : !m", "%c : !m")
    with collect() as remarks:
        kernels(f"%m = {MATMUL}\n%e = {two_orders}\n{use('e')}")
    said = (
        "not fused with linalg.matmul: its loops do not map uniquely to those of the group's root"
    )
    assert said in [each.text for each in remarks]
