"""
The models of `../shared/models/export.py` as modules: through irees' own importer they give what
PyTorch gives, for every stored size, as their MLIR text does (test_models.py).
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

EXPORT = Path(__file__).parents[3] / "shared" / "models" / "export.py"
NAMES = (
    "topk_both", "topk_values", "topk_indices", "argsort_dynamic", "scatter_onehot_static",
    "scatter_onehot_mixed", "softmax_eltwise", "group_norm_silu", "two_matmul", "llama_decode",
    "deepseek_moe", "mobilenet_v2", "resnet50", "bert_base", "gpt2",
)  # fmt: skip

torch = pytest.importorskip("torch", reason="needs torch: `make test-models` installs it")
pytest.importorskip("transformers", reason="needs transformers: `make test-models` installs it")

import irees  # noqa: E402


@pytest.fixture(scope="module")
def catalogue():
    if not EXPORT.exists():
        pytest.skip("no ../shared/models/export.py, which has the models")
    sys.path.insert(0, str(EXPORT.parent))
    try:
        import export
    finally:
        sys.path.remove(str(EXPORT.parent))
    return export.catalogue()


@pytest.mark.parametrize("name", NAMES)
def test_modules_agree_with_pytorch(name, catalogue):
    torch.manual_seed(0)
    module, inputs, dynamic_shapes, others = catalogue[name]()
    module = module.eval()
    program = irees.compile(module, inputs, dynamic_shapes=dynamic_shapes)
    for given in (inputs, *others):
        with torch.no_grad():
            wanted = module(*given)
        found = program(*given)
        pairs = zip(found, wanted) if isinstance(wanted, tuple) else [(found, wanted)]
        for mine, theirs in pairs:
            assert mine.dtype == theirs.dtype
            scale = theirs.abs().max().item() if theirs.numel() else 0
            tolerance = {"rtol": 0, "atol": 2e-5 * scale} if theirs.is_floating_point() else {}
            torch.testing.assert_close(mine, theirs, **tolerance)
