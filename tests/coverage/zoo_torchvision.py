"""
torchvision's classification, segmentation, detection, video and optical flow: the smallest of each family.

torchvision's operators are in C++, and its wheels fit one build of PyTorch: that of PyPI needs
CUDA's libraries, also on a CPU. Without a torchvision that can be imported, there are no models.
"""

from __future__ import annotations

from typing import Any

import torch

CLASSIFICATION: dict[str, dict[str, Any]] = {
    "alexnet": {}, "vgg11": {}, "resnet18": {}, "resnext50_32x4d": {}, "squeezenet1_1": {},
    "densenet121": {}, "googlenet": {"aux_logits": False, "init_weights": False},
    "inception_v3": {"aux_logits": False, "init_weights": False}, "mobilenet_v2": {},
    "mobilenet_v3_small": {}, "mnasnet0_5": {}, "shufflenet_v2_x0_5": {}, "efficientnet_b0": {},
    "regnet_y_400mf": {}, "convnext_tiny": {}, "swin_t": {}, "swin_v2_t": {},
    "vit_b_32": {"image_size": 64}, "maxvit_t": {"input_size": (224, 224)},
}  # fmt: skip
"""Model => arguments of `torchvision.models.get_model`."""

SIDES = {"inception_v3": 96, "maxvit_t": 224}
"""Side of an image where it is not 64."""

SEGMENTATION = (
    "fcn_resnet50", "deeplabv3_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large",
)  # fmt: skip

DETECTION = (
    "fasterrcnn_mobilenet_v3_large_320_fpn", "fasterrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn",
    "keypointrcnn_resnet50_fpn", "retinanet_resnet50_fpn", "fcos_resnet50_fpn", "ssd300_vgg16",
    "ssdlite320_mobilenet_v3_large",
)  # fmt: skip

VIDEO = ("r3d_18", "mc3_18", "r2plus1d_18", "s3d", "swin3d_t")
FLOW = ("raft_small",)


def names() -> list[str]:
    """The architectures, as `torchvision/resnet18`; none without torchvision."""
    try:
        import torchvision  # noqa: F401
    except (ImportError, RuntimeError):
        return []
    kinds = (*CLASSIFICATION, *SEGMENTATION, *DETECTION, *VIDEO, *FLOW)
    return [f"torchvision/{name}" for name in kinds]


def spread(model: torch.nn.Module) -> None:
    """
    Gives norms the statistics of an image, and heads other weights: by those that torchvision draws,
    all boxes have the same score, and their order is free.
    """
    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0
    with torch.no_grad():
        model.backbone.train()(torch.rand(2, 3, 320, 320))
        for name, weights in model.named_parameters():
            if "head" in name or "rpn" in name or "roi_heads" in name:
                weights.normal_(std=0.3 * weights[0].numel() ** -0.5)


def detector(kind: str) -> tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]:
    """A detector of few proposals, with two images."""
    from torchvision import models

    options: dict[str, Any] = {"weights": None, "weights_backbone": None, "num_classes": 5}
    if not kind.startswith("ssd"):
        options |= {"min_size": 96, "max_size": 128}
    if "rcnn" in kind:
        options |= {"rpn_pre_nms_top_n_test": 30, "rpn_post_nms_top_n_test": 12}
        options |= {"box_detections_per_img": 20}
    else:
        options |= {"score_thresh": 1e-3, "topk_candidates": 30, "detections_per_img": 20}
    model = models.get_model(kind, **options)
    if "rcnn" not in kind:
        spread(model)
    return model, ([torch.rand(3, 96, 96), torch.rand(3, 80, 110)],), {}


def build(name: str) -> tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]:
    """A model in evaluation mode with the arguments of one call."""
    from torchvision import models

    kind = name.partition("/")[2]
    torch.manual_seed(0)
    if kind in DETECTION:
        model, args, kwargs = detector(kind)
    elif kind in FLOW:
        model, kwargs = models.get_model(kind, weights=None), {"num_flow_updates": 2}
        args = (torch.rand(1, 3, 128, 128), torch.rand(1, 3, 128, 128))
    elif kind in VIDEO:
        size = (16, 224) if kind == "s3d" else (4, 32)
        model, kwargs = models.get_model(kind, weights=None, num_classes=10), {}
        args = (torch.rand(1, 3, size[0], size[1], size[1]),)
    elif kind in SEGMENTATION:
        model = models.get_model(kind, weights=None, weights_backbone=None, num_classes=5)
        args, kwargs = (torch.randn(1, 3, 64, 64),), {}
    else:
        options = {"weights": None, "num_classes": 10, **CLASSIFICATION[kind]}
        model, side = models.get_model(kind, **options), SIDES.get(kind, 64)
        args, kwargs = (torch.randn(1, 3, side, side),), {}
    return model.eval(), args, kwargs
