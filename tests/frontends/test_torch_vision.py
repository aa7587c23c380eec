"""torchvision's operators on boxes, by their schemas: torchvision itself need not be installed."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'irees[torch]'")

import irees  # noqa: E402

SCHEMAS = {
    "nms": "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align": "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
    "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
    "roi_pool": "roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
    "SymInt pooled_width) -> (Tensor, Tensor)",
    "deform_conv2d": "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, "
    "Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, "
    "SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor",
}


def nms(boxes, scores, threshold):
    """Greedy suppression, box by box."""
    left, kept = scores.sort(descending=True, stable=True).indices.tolist(), []
    sizes = boxes[:, 2:] - boxes[:, :2]
    while left:
        first, *left = left
        kept.append(first)
        for other in list(left):
            low = torch.maximum(boxes[first, :2], boxes[other, :2])
            high = torch.minimum(boxes[first, 2:], boxes[other, 2:])
            shared = (high - low).clamp(min=0).prod()
            whole = sizes[first].prod() + sizes[other].prod() - shared
            if shared / whole > threshold:
                left.remove(other)
    return torch.tensor(kept, dtype=torch.int64)


def sample(plane, y, x):
    """A bilinear sample of a list of rows."""
    rows, columns = plane.shape
    if not (-1 <= y <= rows and -1 <= x <= columns):
        return 0.0
    y, x = min(max(y, 0.0), rows - 1), min(max(x, 0.0), columns - 1)
    top, left = int(y), int(x)
    below, right = min(top + 1, rows - 1), min(left + 1, columns - 1)
    dy, dx = y - top, x - left
    upper = plane[top, left] * (1 - dx) + plane[top, right] * dx
    return upper * (1 - dy) + (plane[below, left] * (1 - dx) + plane[below, right] * dx) * dy


def roi_align(image, boxes, scale, rows, columns, samples, aligned):
    """The mean of the samples of each bin, in f64."""
    planes, out = image.double().numpy(), []
    for batch, *corners in boxes.double().tolist():
        x1, y1, x2, y2 = (corner * scale - (0.5 if aligned else 0) for corner in corners)
        sizes = (y2 - y1, x2 - x1) if aligned else (max(y2 - y1, 1), max(x2 - x1, 1))
        bins = (sizes[0] / rows, sizes[1] / columns)
        counts = [samples if samples > 0 else int(np.ceil(size)) for size in bins]
        for plane in planes[int(batch)]:
            for i, j in np.ndindex(rows, columns):
                found = [
                    sample(
                        plane,
                        y1 + (i + (a + 0.5) / counts[0]) * bins[0],
                        x1 + (j + (c + 0.5) / counts[1]) * bins[1],
                    )
                    for a, c in np.ndindex(*counts)
                ]
                out.append(sum(found) / max(len(found), 1))
    return torch.tensor(out, dtype=image.dtype).reshape(-1, image.shape[1], rows, columns)


def roi_pool(image, boxes, scale, rows, columns):
    """The largest element of each bin and its index, bin by bin."""
    height, width = image.shape[2:]
    out = image.new_zeros(len(boxes), image.shape[1], rows, columns)
    places = torch.full(out.shape, -1, dtype=torch.int32)
    for k, (batch, *corners) in enumerate(boxes.tolist()):
        x1, y1, x2, y2 = (int(np.floor(corner * scale + 0.5)) for corner in corners)
        for c, i, j in np.ndindex(*out.shape[1:]):
            bins = []
            for at, low, high, count, size in (
                (i, y1, y2, rows, height),
                (j, x1, x2, columns, width),
            ):
                step = np.float32(max(high - low + 1, 1)) / np.float32(count)
                ends = int(np.floor(at * step)) + low, int(np.ceil((at + 1) * step)) + low
                bins.append([min(max(end, 0), size) for end in ends])
            (top, below), (left, right) = bins
            if below > top and right > left:
                found = image[int(batch), c, top:below, left:right]
                row, column = divmod(int(found.argmax()), right - left)
                out[k, c, i, j] = found.max()
                places[k, c, i, j] = (top + row) * width + left + column
    return out, places


def deform_conv2d(image, weight, offset, mask, bias, *settings):
    """A convolution of samples, element by element."""
    down, across, top, left, row_step, column_step, groups, parts, has_mask = settings
    batch, channels, rows, columns = image.shape
    height, width = weight.shape[2:]
    padded = torch.nn.functional.pad(image, (1, 1, 1, 1))
    found = image.new_zeros(batch, channels, height, width, *offset.shape[2:])
    for n, c, i, j, y, x in np.ndindex(*found.shape):
        tap = c * parts // channels * height * width + i * width + j
        shift = offset[n, 2 * tap : 2 * tap + 2, y, x].tolist()
        at = (
            y * down - top + i * row_step + shift[0],
            x * across - left + j * column_step + shift[1],
        )
        if -1 < at[0] < rows and -1 < at[1] < columns:
            value = sample(padded[n, c].numpy(), at[0] + 1, at[1] + 1)
            found[n, c, i, j, y, x] = float(value) * (mask[n, tap, y, x] if has_mask else 1)
    found = found.reshape(batch, groups, channels // groups, height, width, *offset.shape[2:])
    kernel = weight.reshape(groups, -1, *weight.shape[1:])
    result = torch.einsum("ngcijyx,gocij->ngoyx", found, kernel).flatten(1, 2)
    return result + bias[:, None, None]


@pytest.fixture(scope="module", autouse=True)
def operators():
    """Defines what torchvision has not defined."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    if not hasattr(torch.ops.torchvision, "nms"):
        library.define(SCHEMAS["nms"])
        library.impl("nms", lambda b, s, t: nms(b, s, t), "CPU")
        torch.library.register_fake(
            "torchvision::nms",
            lambda b, s, t: b.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64),
        )  # fmt: skip
    if not hasattr(torch.ops.torchvision, "roi_align"):
        library.define(SCHEMAS["roi_align"])
        torch.library.register_fake(
            "torchvision::roi_align",
            lambda x, b, scale, h, w, n, aligned: x.new_empty(b.shape[0], x.shape[1], h, w),
        )
    if not hasattr(torch.ops.torchvision, "roi_pool"):
        library.define(SCHEMAS["roi_pool"])
        torch.library.register_fake(
            "torchvision::roi_pool",
            lambda x, b, scale, h, w: (
                x.new_empty(b.shape[0], x.shape[1], h, w),
                x.new_empty(b.shape[0], x.shape[1], h, w, dtype=torch.int32),
            ),
        )
    if not hasattr(torch.ops.torchvision, "deform_conv2d"):
        library.define(SCHEMAS["deform_conv2d"])
        torch.library.register_fake(
            "torchvision::deform_conv2d",
            lambda x, w, offset, *rest: x.new_empty(x.shape[0], w.shape[0], *offset.shape[2:]),
        )
    yield
    library._destroy()


def boxes_of(count):
    torch.manual_seed(count)
    corners = torch.rand(count, 2) * 12
    return torch.cat([corners, corners + torch.rand(count, 2) * 8 + 1], 1)


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("threshold", [0.1, 0.5])
def test_nms(threshold, target):
    boxes, scores = boxes_of(24), torch.rand(24)
    scores[3] = scores[17]
    options = {"target": target, "dynamic_shapes": ({0: torch.export.Dim.DYNAMIC},) * 2}

    def program(boxes, scores):
        return torch.ops.torchvision.nms(boxes, scores, threshold)

    run = irees.compile(program, (boxes, scores), **options)
    for n in (24, 9, 2):
        found = torch.as_tensor(run(boxes[:n].contiguous(), scores[:n].contiguous()))
        assert torch.equal(found, nms(boxes[:n], scores[:n], threshold))


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize(
    "arguments", [(1.0, 3, 2, -1, False), (0.7, 2, 2, 2, True), (1.3, 2, 4, 0, True)]
)
def test_roi_align(arguments, target):
    image = torch.randn(2, 3, 14, 17)
    boxes = torch.cat([torch.arange(6)[:, None] % 2, boxes_of(6) - 2], 1)
    run = irees.compile(
        lambda x, b: torch.ops.torchvision.roi_align(x, b, *arguments),
        (image, boxes),
        target=target,
    )
    want = roi_align(image, boxes, *arguments)
    torch.testing.assert_close(torch.as_tensor(run(image, boxes)), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("arguments", [(1.0, 3, 2), (0.5, 2, 2), (1.3, 4, 5)])
def test_roi_pool(arguments, target):
    """Corners may be outside of the image, and bins empty."""
    image = torch.randn(2, 3, 14, 17)
    boxes = torch.cat([torch.arange(7)[:, None] % 2, boxes_of(7) - 2], 1)
    boxes[5, 1:], boxes[6, 1:] = torch.tensor([2.5, 0.5, 6.5, 4.5]), boxes[6, 1:] + 30
    run = irees.compile(
        lambda x, b: torch.ops.torchvision.roi_pool(x, b, *arguments),
        (image, boxes),
        target=target,
        dynamic_shapes=({}, {0: torch.export.Dim.DYNAMIC}),
    )
    for given in (boxes, boxes[:3].contiguous()):
        torch.testing.assert_close(tuple(run(image, given)), roi_pool(image, given, *arguments))


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize(
    "settings", [(1, 1, 1, 1, 1, 1, 1, 1, True), (2, 1, 0, 1, 1, 2, 2, 2, False)]
)
def test_deform_conv2d(settings, target):
    """Offsets lead out of the image; groups of weights and of offsets; with a mask and without."""
    torch.manual_seed(1)
    down, across, top, left, row_step, column_step, groups, parts, _ = settings
    image, weight = torch.randn(2, 4, 6, 5), torch.randn(6, 4 // groups, 3, 2)
    rows = (6 + 2 * top - 2 * row_step - 1) // down + 1
    columns = (5 + 2 * left - column_step - 1) // across + 1
    offset = torch.randn(2, 12 * parts, rows, columns) * 2
    mask = torch.rand(2, 6 * parts, rows, columns)
    given = image, weight, offset, mask, torch.randn(6)
    run = irees.compile(
        lambda *given: torch.ops.torchvision.deform_conv2d(*given, *settings), given, target=target
    )
    want = deform_conv2d(*given, *settings)
    torch.testing.assert_close(torch.as_tensor(run(*given)), want, rtol=1e-4, atol=1e-4)
