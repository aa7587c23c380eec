"""
Vision models of timm, the smallest of each family, on small images.

timm imports torchvision for classes that it only looks for, and for images on disk. Where
torchvision cannot be imported (its wheels must match PyTorch's), empty modules of its names stand
in; no model here computes anything with them.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

import torch

NAMES: dict[str, dict[str, Any]] = {
    "test_resnet": {}, "test_vit": {}, "test_vit2": {},     "test_convnext": {}, "test_convnext2": {},     "test_efficientnet": {}, "test_efficientnet_ln": {}, "test_efficientnet_gn": {},
    "test_efficientnet_evos": {}, "test_byobnet": {}, "test_mambaout": {}, "test_nfnet": {},
    "resnet18": {}, "resnext26ts": {},         "vgg11": {}, "mobilenetv2_035": {}, "mobilenetv3_small_050": {},     "mnasnet_small": {}, "ghostnet_050": {},     "regnetx_002": {}, "regnety_002": {}, "darknet17": {},
        "lcnet_035": {}, "fasternet_t0": {}, "starnet_s050": {}, "repghostnet_050": {},
    "inception_next_atto": {}, "convnext_atto": {}, "convnextv2_atto": {},     "mobilevit_xxs": {}, "mobilevitv2_050": {},     "efficientvit_b0": {}, "efficientvit_m0": {},     "repvit_m0_9": {}, "tiny_vit_5m_224": {}, "levit_128s": {},
    "deit_tiny_patch16_224": {},     "swinv2_cr_tiny_224": {"depths": (1, 1, 1, 1)},
    "beit_base_patch16_224": {"depth": 1, "embed_dim": 48, "num_heads": 3},
    "cait_xxs24_224": {"depth": 2}, "xcit_nano_12_p16_224": {"depth": 2}, "pit_ti_224": {},
    "mixer_s32_224": {}, "gmlp_ti16_224": {},
    "resmlp_12_224": {}, "convit_tiny": {"depth": 11},
    "eva02_tiny_patch14_224":
    {"depth": 2},     "pvt_v2_b0": {},     "visformer_tiny": {},     "halonet26t": {},     "mambaout_femto": {}, "shvit_s1": {}, "swiftformer_xs": {},
    "vit_relpos_small_patch16_224": {"depth": 2}, "hgnetv2_b0": {}, "ese_vovnet19b_dw": {},
    }  # fmt: skip
"""Model => arguments of `timm.create_model`."""
SIZES = {"vgg11": 32, "volo_d1_224": 64, "beit_base_patch16_224": 64}
"""Side of an image where it is not 64 or the model's own."""


class _Named(type):
    def __getattr__(cls, name: str) -> str:
        if name.startswith("_"):
            raise AttributeError(name)
        return name


class _Absent(metaclass=_Named):
    """Stands for every class of torchvision."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Named(name, (_Absent,), {}) if name[:1].isupper() else _Module(name)

    def __call__(self, *_: Any, **__: Any) -> Any:
        return None


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds empty modules for torchvision and those below it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec of an empty module."""
        if name.partition(".")[0] != "torchvision":
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        """An empty module."""
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to execute."""


def import_timm() -> Any:
    """timm, over empty modules if torchvision cannot be imported."""
    try:
        import torchvision  # noqa: F401
    except (ImportError, RuntimeError):
        for name in [n for n in sys.modules if n.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        sys.meta_path.insert(0, _Finder())
    import timm

    return timm


def names() -> list[str]:
    """The architectures, as `timm/resnet18`."""
    return [f"timm/{name}" for name in NAMES]


def build(name: str) -> tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]:
    """A model in evaluation mode with the arguments of one call."""
    timm = import_timm()
    kind = name.partition("/")[2]
    options, size = NAMES[kind], SIZES.get(kind, 64)
    torch.manual_seed(0)
    try:
        model = timm.create_model(kind, img_size=size, num_classes=10, **options)
    except (TypeError, AssertionError, ValueError):
        model = timm.create_model(kind, num_classes=10, **options)
        if model.default_cfg.get("fixed_input_size"):
            size = model.default_cfg["input_size"][-1]
    torch.manual_seed(0)
    image = torch.randn(1, 3, size, size)
    try:
        with torch.no_grad():
            model.eval()(image)
    except Exception:
        image = torch.randn(1, *model.default_cfg["input_size"])
    return model.eval(), (image,), {}
