"""
`target="acme-npu"`: a toy accelerator with an 8x8 matrix unit.

It shares the memory of the CPU and has a scratchpad of blocks of 8x8 f32, which explicit copies
fill. Products of f32 run on it, with tiles that `Blocks` chooses; the CPU computes the rest of the
same kernel. `npu.h` simulates it. This file has names only, so that finding the package imports
nothing else.
"""

from irees.plugins import Plugin

PLUGIN = Plugin(
    name="acme-npu",
    version="1.0",
    dialects={"npu": "acme_npu.dialect:Npu"},
    interfaces={
        "npu.load": "acme_npu.instructions:Load",
        "npu.multiply": "acme_npu.instructions:Multiply",
        "npu.store": "acme_npu.instructions:Store",
    },
    passes={"acme-npu-lower": "acme_npu.lower:LowerPass"},
    strategies={"acme-npu": ("acme_npu.strategy:Blocks",)},
    targets={"acme-npu": "acme_npu.target:TARGET"},
)
