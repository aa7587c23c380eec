"""
Table of linalg's named ops: contractions, convolutions, poolings, elementwise ops.

See `structured.py` for the notation. Ops that xDSL defines (matmul, some convolutions, add, ...)
keep xDSL's class and are not listed. Ops that MLIR has removed stay, because existing IR uses them:
`matmul_transpose_a`, `elemwise`-like ops of torch-mlir, and so on.
"""

from __future__ import annotations

from .structured import MappedOperation, TableOperation, elementwise_op, named


def _contraction(name: str, loops: str, maps: str, doc: str = "A contraction"):
    return named(name, loops, maps, "contraction", doc, base=MappedOperation)


CONTRACTIONS = [
    _contraction("batch_matmul", "bmnk", "bmk,bkn->bmn", "A matrix product per batch"),
    _contraction(
        "batch_reduce_matmul", "bmnk", "bmk,bkn->mn", "The sum over a batch of matrix products"
    ),
    _contraction("matvec", "mn", "mn,n->m", "Matrix times vector"),
    _contraction("vecmat", "nm", "m,mn->n", "Vector times matrix"),
    _contraction("batch_matvec", "bmk", "bmk,bk->bm", "Matrix times vector per batch"),
    _contraction("batch_vecmat", "bnk", "bk,bkn->bn", "Vector times matrix per batch"),
    _contraction("dot", "m", "m,m->", "The dot product of two vectors"),
    _contraction(
        "mmt4d",
        "mnkabc",
        "mkac,nkbc->mnab",
        "A product of tiled matrices, the right one transposed",
    ),
    _contraction("batch_mmt4d", "bmnkace", "bmkae,bnkce->bmnac", "mmt4d per batch"),
    _contraction(
        "matmul_transpose_a", "mnk", "km,kn->mn", "A matrix product, the left operand transposed"
    ),
    _contraction(
        "matmul_transpose_b", "mnk", "mk,nk->mn", "A matrix product, the right operand transposed"
    ),
    _contraction(
        "batch_matmul_transpose_a",
        "bmnk",
        "bkm,bkn->bmn",
        "batch_matmul, the left operand transposed",
    ),
    _contraction(
        "batch_matmul_transpose_b",
        "bmnk",
        "bmk,bnk->bmn",
        "batch_matmul, the right operand transposed",
    ),
    named(
        "quantized_batch_matmul",
        "bmnk",
        "bmk,bkn,,->bmn",
        "quantized",
        "batch_matmul of integers with zero points",
    ),
]

_CONV = "A convolution"
_DEPTHWISE = "A convolution of each channel alone"
CONVOLUTIONS = [
    named("conv_1d", "xw", "X,w->x", doc=_CONV, base=TableOperation),
    named("conv_2d", "yxhw", "YX,hw->yx", doc=_CONV, base=TableOperation),
    named("conv_3d", "zyxdhw", "ZYX,dhw->zyx", doc=_CONV, base=TableOperation),
    named("conv_1d_nwc_wcf", "nxfwc", "nXc,wcf->nxf", doc=_CONV),
    named("conv_1d_ncw_fcw", "nfxcw", "ncX,fcw->nfx", doc=_CONV),
    named("conv_2d_nhwc_hwcf_q", "nyxfhwc", "nYXc,hwcf,,->nyxf", "quantized", _CONV),
    named("conv_2d_nhwc_fhwc_q", "nyxfhwc", "nYXc,fhwc,,->nyxf", "quantized", _CONV),
    named("conv_2d_nchw_fchw_q", "nfyxchw", "ncYX,fchw,,->nfyx", "quantized", _CONV),
    named("conv_2d_nhwgc_gfhwc_q", "nyxgfhwc", "nYXgc,gfhwc,,->nyxgf", "quantized", _CONV),
    named("conv_2d_ngchw_gfchw_q", "ngfyxchw", "ngcYX,gfchw,,->ngfyx", "quantized", _CONV),
    named("conv_3d_ndhwc_dhwcf", "nzyxfdhwc", "nZYXc,dhwcf->nzyxf", doc=_CONV),
    named("conv_3d_ndhwc_dhwcf_q", "nzyxfdhwc", "nZYXc,dhwcf,,->nzyxf", "quantized", _CONV),
    named("conv_3d_ncdhw_fcdhw", "nfzyxcdhw", "ncZYX,fcdhw->nfzyx", doc=_CONV),
    named("depthwise_conv_1d_nwc_wc", "nxcw", "nXc,wc->nxc", doc=_DEPTHWISE),
    named("depthwise_conv_1d_ncw_cw", "nxcw", "ncX,cw->ncx", doc=_DEPTHWISE),
    named("depthwise_conv_1d_nwc_wcm", "nxcmw", "nXc,wcm->nxcm", doc=_DEPTHWISE),
    named("depthwise_conv_2d_nhwc_hwc", "nyxchw", "nYXc,hwc->nyxc", doc=_DEPTHWISE),
    named("depthwise_conv_2d_nchw_chw", "nyxchw", "ncYX,chw->ncyx", doc=_DEPTHWISE),
    named("depthwise_conv_2d_nhwc_hwc_q", "nyxchw", "nYXc,hwc,,->nyxc", "quantized", _DEPTHWISE),
    named("depthwise_conv_2d_nhwc_hwcm", "nyxcmhw", "nYXc,hwcm->nyxcm", doc=_DEPTHWISE),
    named(
        "depthwise_conv_2d_nhwc_hwcm_q", "nyxcmhw", "nYXc,hwcm,,->nyxcm", "quantized", _DEPTHWISE
    ),
    named("depthwise_conv_3d_ndhwc_dhwc", "nzyxdhwc", "nZYXc,dhwc->nzyxc", doc=_DEPTHWISE),
    named("depthwise_conv_3d_ncdhw_cdhw", "nzyxdhwc", "ncZYX,cdhw->nczyx", doc=_DEPTHWISE),
    named("depthwise_conv_3d_ndhwc_dhwcm", "nzyxmdhwc", "nZYXc,dhwcm->nzyxcm", doc=_DEPTHWISE),
]

_POOL = "A pooling; the second operand only gives the shape of the window"
_LAYOUTS = {
    "nhwc": ("nyxchw", "nYXc,hw->nyxc"),
    "nchw": ("ncyxhw", "ncYX,hw->ncyx"),
    "nwc": ("nxcw", "nXc,w->nxc"),
    "ncw": ("ncxw", "ncX,w->ncx"),
    "ndhwc": ("nzyxcdhw", "nZYXc,dhw->nzyxc"),
    "ncdhw": ("nczyxdhw", "ncZYX,dhw->nczyx"),
}
_KINDS = ("sum", "max", "max_unsigned", "min", "min_unsigned")
POOLINGS = [
    named(f"pooling_{layout}_{kind}", *notation, kind, _POOL)
    for layout, notation in _LAYOUTS.items()
    for kind in _KINDS
    if (layout, kind) != ("nchw", "max")
]

ELEMENTWISE = [
    elementwise_op(name, f"{name} of every element")
    for name in (
        "abs", "ceil", "div", "div_unsigned", "erf", "floor", "negf", "powf", "reciprocal", "round",
        "rsqrt", "square", "tanh",
    )
]  # fmt: skip

RANDOM = [
    named(
        "fill_rng_2d",
        "mn",
        ",,->mn",
        "fill_rng_2d",
        "Pseudo random numbers from indices and a seed",
    )
]

OPS = [*CONTRACTIONS, *CONVOLUTIONS, *POOLINGS, *ELEMENTWISE, *RANDOM]
