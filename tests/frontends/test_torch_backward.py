"""Backward operators of PyTorch against eager, on random tensors."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import irees  # noqa: E402

aten = torch.ops.aten


def arguments():
    """Name => (operator, its arguments)."""
    torch.manual_seed(0)
    r = torch.randn
    all_ = [True, True, True]
    x, w = r(2, 4, 7, 8), r(6, 2, 3, 2)
    y = torch.nn.functional.conv2d(x, w, None, (2, 1), (1, 1), (1, 2), 2)
    wt = r(4, 3, 3, 3)
    yt = torch.nn.functional.conv_transpose2d(x, wt, None, 2, 1, (1, 0), 2, 1)
    pooled, places = aten.max_pool2d_with_indices(x, [3, 2], [2, 2], [1, 1])
    norm = aten.native_layer_norm(r(3, 5, 6), [5, 6], None, None, 1e-5)
    group = aten.native_group_norm(x, None, None, 2, 4, 56, 2, 1e-5)
    batch = aten.native_batch_norm(x, r(4), r(4), None, None, True, 0.1, 1e-5)
    q, k, v = r(2, 3, 5, 8), r(2, 3, 7, 8), r(2, 3, 7, 8)
    out, sums = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)
    mask = r(5, 7)
    masked, masked_sums = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, attn_mask=mask)
    heads, shared = r(2, 6, 5, 8), [r(2, 3, 7, 8), r(2, 3, 7, 8)]
    grouped, grouped_sums = aten._scaled_dot_product_flash_attention_for_cpu(heads, *shared)
    return {
        "convolution": (
            aten.convolution_backward,
            (r(*y.shape), x, w, [6], [2, 1], [1, 1], [1, 2], False, [0, 0], 2, all_),
        ),
        "transposed": (
            aten.convolution_backward,
            (r(*yt.shape), x, wt, [6], [2, 2], [1, 1], [1, 1], True, [1, 0], 2, all_),
        ),
        "avg_pool": (
            aten.avg_pool2d_backward,
            (r(2, 4, 4, 5), x, [3, 2], [2, 2], [1, 1], False, False, None),
        ),
        "avg_pool padded": (
            aten.avg_pool2d_backward,
            (r(2, 4, 4, 5), x, [3, 2], [2, 2], [1, 1], False, True, None),
        ),
        "max_pool": (
            aten.max_pool2d_with_indices_backward,
            (r(*pooled.shape), x, [3, 2], [2, 2], [1, 1], [1, 1], False, places),
        ),
        "adaptive": (aten._adaptive_avg_pool2d_backward, (r(2, 4, 3, 5), x)),
        "col2im": (aten.col2im, (r(2, 24, 28), [7, 8], [3, 2], [1, 1], [1, 0], [2, 1])),
        "layer_norm": (
            aten.native_layer_norm_backward,
            (r(3, 5, 6), r(3, 5, 6), [5, 6], *norm[1:], r(5, 6), r(5, 6), all_),
        ),
        "group_norm": (
            aten.native_group_norm_backward,
            (r(2, 4, 7, 8), x, *group[1:], r(4), 2, 4, 56, 2, all_),
        ),
        "batch_norm": (
            aten.native_batch_norm_backward,
            (r(*x.shape), x, r(4), None, None, *batch[1:], True, 1e-5, all_),
        ),
        "batch_norm eval": (
            aten.native_batch_norm_backward,
            (r(*x.shape), x, r(4), r(4), r(4).abs(), None, None, False, 1e-5, all_),
        ),
        "embedding": (
            aten.embedding_dense_backward,
            (r(3, 5, 6), torch.randint(0, 9, (3, 5)), 9, 2, False),
        ),
        "embedding by frequency": (
            aten.embedding_dense_backward,
            (r(3, 5, 6), torch.randint(0, 9, (3, 5)), 9, -1, True),
        ),
        "attention": (
            aten._scaled_dot_product_flash_attention_for_cpu_backward,
            (r(2, 3, 5, 8), q, k, v, out, sums, 0.0, False),
        ),
        "attention masked": (
            lambda *a: aten._scaled_dot_product_flash_attention_for_cpu_backward(
                *a[:-1], attn_mask=a[-1]
            ),
            (r(2, 3, 5, 8), q, k, v, masked, masked_sums, 0.0, False, mask),
        ),
        "attention grouped": (
            aten._scaled_dot_product_flash_attention_for_cpu_backward,
            (r(2, 6, 5, 8), heads, *shared, grouped, grouped_sums, 0.0, False),
        ),
        "bilinear": (
            aten.upsample_bilinear2d_backward, (r(2, 4, 9, 5), [9, 5], [2, 4, 7, 8], False),
        ),
        "bicubic": (
            aten.upsample_bicubic2d_backward, (r(2, 4, 9, 5), [9, 5], [2, 4, 7, 8], True),
        ),
        "nearest": (
            aten.upsample_nearest2d_backward, (r(2, 4, 9, 5), [9, 5], [2, 4, 7, 8]),
        ),
        "replicated 1d": (aten.replication_pad1d_backward, (r(2, 4, 13), r(2, 4, 8), [2, 3])),
        "replicated 2d": (aten.replication_pad2d_backward, (r(2, 4, 9, 9), x, [1, 0, 0, 2])),
        "replicated 3d": (
            aten.replication_pad3d_backward, (r(1, 2, 4, 6, 6), r(1, 2, 3, 4, 5), [3, -2, 1, 1, 0, 1]),
        ),
    }  # fmt: skip


CASES = arguments()


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("name", CASES)
def test_backward(name, target):
    """Gradients agree with eager's."""
    op, given = CASES[name]
    tensors = [a for a in given if isinstance(a, torch.Tensor)]

    def program(*tensors):
        rest = iter(tensors)
        return op(*(next(rest) if isinstance(a, torch.Tensor) else a for a in given))

    want = program(*tensors)
    got = irees.compile(program, tuple(tensors), target=target)(*tensors)
    want, got = ([v] if not isinstance(v, list | tuple) else list(v) for v in (want, got))
    for g, w in zip([g for g in got if g is not None], [w for w in want if w is not None]):
        np.testing.assert_allclose(np.asarray(g), w.numpy(), rtol=2e-4, atol=2e-5)
