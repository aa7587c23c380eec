"""Functions that take a count as a C++ int, for counts that are sizes of a dynamic dim."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

import sympy  # noqa: E402

import irees  # noqa: E402
from irees.errors import UnsupportedError  # noqa: E402
from irees.frontends.torch.symbols import _Printer  # noqa: E402

F, Dim = torch.nn.functional, torch.export.Dim
ROW = torch.linspace(0.2, 1.7, 5)
THETA = torch.linspace(-1, 1, 6).reshape(1, 2, 3)

VECTORS = {
    "linspace": lambda x: torch.linspace(0, 1, x.shape[0]),
    "linspace_of_halves": lambda x: torch.linspace(-2, 3, x.shape[0], dtype=torch.float16),
    "linspace_of_sizes": lambda x: torch.linspace(1 - x.shape[0], x.shape[0] / 2, x.shape[0]),
    "logspace": lambda x: torch.logspace(0, 1, x.shape[0], 2.0),
    "hann": lambda x: torch.hann_window(x.shape[0]),
    "hann_symmetric": lambda x: torch.hann_window(x.shape[0], periodic=False),
    "hann_by_name": lambda x: torch.hann_window(window_length=x.shape[0], periodic=True),
    "hamming": lambda x: torch.hamming_window(x.shape[0]),
    "blackman": lambda x: torch.blackman_window(x.shape[0]),
    "bartlett": lambda x: torch.bartlett_window(x.shape[0]),
    "bartlett_symmetric": lambda x: torch.bartlett_window(x.shape[0], False),
    "kaiser": lambda x: torch.kaiser_window(x.shape[0]),
    "nuttall": lambda x: torch.signal.windows.nuttall(x.shape[0]),
    "gaussian": lambda x: torch.signal.windows.gaussian(x.shape[0]),
    "tril_indices": lambda x: torch.tril_indices(x.shape[0], x.shape[0] + 1, -1),
    "triu_indices": lambda x: torch.triu_indices(x.shape[0], 3, 1, dtype=torch.int32),
    "kron": lambda x: torch.kron(x, torch.tensor([[1.0, 2.0], [3.0, 4.0]])),
    "vander": lambda x: torch.vander(x),
    "vander_increasing": lambda x: torch.vander(x, 3, increasing=True),
    "fftfreq": lambda x: torch.fft.fftfreq(x.shape[0], 0.5),
    "rfftfreq": lambda x: torch.fft.rfftfreq(x.shape[0]),
    "affine_grid": lambda x: F.affine_grid(THETA, (1, 1, x.shape[0], 3), align_corners=False),
    "affine_grid_of_corners": lambda x: F.affine_grid(THETA, (1, 1, 2, x.shape[0]), True),
    "combinations": lambda x: torch.combinations(x),
    "combinations_with_replacement": lambda x: torch.combinations(x, 3, True),
    "one_hot": lambda x: F.one_hot(torch.tensor([1, 2]), x.shape[0]),
    "root": lambda x: x / math.sqrt(x.shape[0]),
    "meshgrid": lambda x: torch.meshgrid(x, x[1:], indexing="xy"),
    "float": lambda x: x * float(x.shape[0]) + float(len(x)),
    "int": lambda x: x[: int(x.shape[0] * 0.6)] * int(x.shape[0] / 2),
    "divmod": lambda x: x[: divmod(x.shape[0], 3)[1]],
    "log": lambda x: x * math.log(x.shape[0]) + math.log(x.shape[0], 3) + math.log10(x.shape[0]),
    "exp": lambda x: x * math.exp(-x.shape[0]) + math.cos(x.shape[0]),
    "isqrt": lambda x: x[: math.isqrt(x.shape[0])],
    "bits": lambda x: x * (x.shape[0] & 6) + (x.shape[0] | 1),
    "distance": lambda x: x * abs(6 - x.shape[0]),
    "power": lambda x: x * x.shape[0] ** 0.3 + 2.0 ** x.shape[0],
    "new_tensor": lambda x: x.new_tensor([x.shape[0], 0.5]) + x.new_tensor(x.shape[0]),
    "as_tensor": lambda x: torch.as_tensor([x.shape[0], 2]),
    "histogram": lambda x: torch.histc(x, x.shape[0], -1, 1),
    "histogram_of_all": lambda x: x.histc(x.shape[0]),
    "diagonal": lambda x: torch.outer(x, x).diagonal(x.shape[0] - 3),
    "diagonal_below": lambda x: torch.outer(x, x)[None].diagonal(2 - x.shape[0], 1, 2),
    "diag": lambda x: torch.diag(x[:3], x.shape[0] // 2) + 1,
    "diag_embed": lambda x: x[:3].expand(2, 3).diag_embed(-(x.shape[0] // 2)),
    "take_along_dim": lambda x: torch.take_along_dim(x[None], x.argsort()[:, None], 1),
    "multi_dot": lambda x: torch.linalg.multi_dot([torch.outer(x, x), x[:, None], x[None]]),
    "einsum": lambda x: torch.einsum("i,jk,k->ij", x, torch.outer(x, x), x),
    "shifts": lambda x: torch.fft.fftshift(torch.outer(x, x)) + torch.fft.ifftshift(x, 0),
    "isin": lambda x: torch.isin(x, x[:2]),
    "spectrum": lambda x: torch.stft(
        x.repeat(8), x.shape[0], window=torch.ones(x.shape[0]), return_complex=True
    ),
    "real_spectrum": lambda x: torch.view_as_real(
        torch.stft(x.repeat(8), 8, x.shape[0] // 2, 6, torch.ones(6), False, return_complex=True)
    ),
    "groups": lambda x: F.group_norm(ROW.repeat(16).reshape(1, 40, 2), x.shape[0]),
}
IMAGES = {
    "average": lambda x: F.avg_pool1d(x, x.shape[-1]),
    "averages": lambda x: F.avg_pool1d(x, x.shape[-1] // 2, 2),
    "average_of_images": lambda x: F.avg_pool2d(x[None], x.shape[-2:]),
    "maximum": lambda x: F.max_pool1d(x, x.shape[-1]),
    "maximum_of_images": lambda x: F.max_pool2d(x[None], x.shape[-2:]),
    "adaptive": lambda x: F.adaptive_avg_pool1d(x, x.shape[-1] // 2),
    "unfold": lambda x: x.unfold(2, x.shape[-1] // 2, x.shape[-1] // 3),
    "padded_average": lambda x: F.avg_pool1d(x, x.shape[-1] // 2, padding=1),
    "average_of_elements": lambda x: F.avg_pool1d(
        x, x.shape[-1] // 2, 1, padding=1, count_include_pad=False
    ),
    "divided_sums": lambda x: F.avg_pool2d(
        x[None], (1, x.shape[-1] // 2), stride=1, divisor_override=3
    ),
    "averages_by_place": lambda x: F.avg_pool1d(x, x.shape[-1] // 2, 2, 1, False, False),
    "padded_maximum": lambda x: F.max_pool1d(x, x.shape[-1] // 2, 2, 1),
    "maximum_of_a_length": lambda x: F.max_pool1d(x, 3, 2, padding=1, ceil_mode=True),
    "places_of_maxima": lambda x: F.max_pool1d(x, 2, return_indices=True),
    "layer": lambda x: torch.nn.MaxPool1d(2)(x),
    "norms": lambda x: F.lp_pool1d(x, 2.0, x.shape[-1] // 2),
    "norms_of_images": lambda x: F.lp_pool2d(x[None], 2.0, (2, x.shape[-1] // 2), 1),
    "adaptive_maximum": lambda x: F.adaptive_max_pool1d(x, x.shape[-1] // 3),
    "adaptive_maxima": lambda x: F.adaptive_max_pool2d(x[None], (2, x.shape[-1] // 3)),
    "adaptive_rows": lambda x: F.adaptive_max_pool2d(x[None], (2, None)),
    "columns": lambda x: F.unfold(x[None], (2, x.shape[-1] // 3), padding=1, stride=2),
    "normalized": lambda x: F.group_norm(x, 3, torch.tensor([1.0, 2.0, 3.0])),
}


def checked(function, example, other, shapes):
    program = irees.compile(function, (example,), dynamic_shapes=shapes, target="reference")
    for x in (example, other):
        torch.testing.assert_close(program(x), function(x))


@pytest.mark.parametrize("name", VECTORS)
def test_a_count_of_a_vector(name):
    checked(VECTORS[name], ROW, torch.linspace(-0.4, 2.0, 8), ({0: Dim.DYNAMIC},))


@pytest.mark.parametrize("name", IMAGES)
def test_a_count_of_an_image(name):
    x = torch.linspace(-1, 1, 48).sin().reshape(2, 3, 8)
    checked(IMAGES[name], x, torch.cos(torch.arange(60.0)).reshape(2, 3, 10), ({2: Dim.DYNAMIC},))


def test_a_builtin_takes_a_dim_for_each_argument():
    x = torch.eye(5) + 1
    checked(torch.linalg.det, x.expand(2, 5, 5), x.expand(3, 5, 5), ({0: Dim.DYNAMIC},))


def test_a_dynamic_stride_is_refused():
    def strided(x):
        return F.conv1d(x, torch.ones(1, 3, 2), stride=x.shape[-1] // 2)

    with pytest.raises(UnsupportedError, match="a stride or dilation that depends on"):
        irees.compile(strided, (torch.ones(2, 3, 8),), dynamic_shapes=({2: Dim.DYNAMIC},))


def test_a_condition_without_a_suggestion_has_a_way_out():
    def strided(x):
        return F.conv1d(x, torch.ones(1, 3, 2), stride=x.shape[-1] // 4)

    rows = Dim("rows", min=8, max=64)
    with pytest.raises(UnsupportedError, match=r"with Dim\.AUTO in dynamic_shapes"):
        irees.compile(strided, (torch.ones(2, 3, 9),), dynamic_shapes=({2: rows},))


def test_a_size_that_a_program_cannot_leave_open_has_its_line():
    def repeated(x):
        return x * math.gcd(x.shape[0], 4)

    line = repeated.__code__.co_firstlineno + 1
    with pytest.raises(UnsupportedError, match="specialized it to be a constant") as info:
        irees.compile(repeated, (ROW,), dynamic_shapes=({0: Dim.DYNAMIC},))
    assert str(info.value.location).endswith(f"{__file__.rpartition('/')[2]}:{line}")


def test_a_program_may_use_the_classes_of_numbers():
    names = {int: 1, float: 2}

    def typed(x):
        n = x.shape[0]
        return x * float(n) * names[int] + isinstance(n, int) + issubclass(bool, int)

    def called(x):
        return x[: int(x.shape[0] / 2)] * int("2") + float("1.5") + int(2.7) + int("11", base=2)

    for function in (typed, called):
        checked(function, ROW, ROW[:4], ({0: Dim.DYNAMIC},))


def test_sizes_are_printed_as_one_writes_them():
    n, m = (sympy.Symbol(name, integer=True, positive=True) for name in ("x.shape[0]", "n"))
    for expr, text in (
        (6 - n, "6 - x.shape[0]"), (-n, "-x.shape[0]"), (n - 6, "x.shape[0] - 6"),
        (2 * n - m + 3, "2*x.shape[0] + 3 - n"), ((6 - n) * m, "n*(6 - x.shape[0])"),
        (0.5 * n, "0.5*x.shape[0]"),
    ):  # fmt: skip
        assert _Printer().doprint(expr) == text
