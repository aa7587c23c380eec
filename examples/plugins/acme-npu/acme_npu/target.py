"""The target `acme-npu`: the passes that differ from those of the CPU."""

from irees.accelerators import Accelerator

TARGET = Accelerator(
    inserts={"after:tiled": "acme-npu-lower"},
    # These change the layout of operands for the vectors of the CPU, or the products themselves.
    without=(
        "irees-propagate-blocked-layouts",
        "irees-pack-constant-operands",
        "irees-convert-conv2d-to-winograd",
    ),
)
