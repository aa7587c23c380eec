"""
Makes resnet_tiny.mlir and resnet_tiny.npz: a small ResNet of the transformers library.

    pip install torch==2.13.0 torch-mlir transformers
    python examples/export_resnet_tiny.py [FOLDER]

The files go to FOLDER, or beside this script. The weights are random and fixed by the seed; the
.npz holds an input and PyTorch's answer.
"""

import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from torch_mlir import fx

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent


class Logits(torch.nn.Module):
    """A classifier as a function from pixels to logits."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixels):
        return self.model(pixels).logits


def main() -> None:
    """Exports the model and its answer to one input."""
    torch.manual_seed(0)
    config = transformers.ResNetConfig(
        embedding_size=16,
        hidden_sizes=[16, 32, 48, 64],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        num_labels=10,
    )
    model = Logits(transformers.ResNetForImageClassification(config)).eval()
    for module in model.modules():
        module._non_persistent_buffers_set.clear()
    pixels = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        answer = model(pixels)
        module = fx.export_and_import(
            model, pixels, output_type="linalg-on-tensors", func_name="main"
        )
    (FOLDER / "resnet_tiny.mlir").write_text(str(module))
    np.savez(FOLDER / "resnet_tiny.npz", in0=pixels.numpy(), out0=answer.numpy())


if __name__ == "__main__":
    main()
