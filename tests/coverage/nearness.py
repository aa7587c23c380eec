"""When an answer is right although it misses a tolerance: it is as near to f64 as eager's."""

from __future__ import annotations

import torch


def as_near(got: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> bool:
    """
    Whether an answer is about as far from the one in f64 as eager's own is: at most twice in the
    mean of squares, and four times in any element. Where eager overflows, and f64 does not, it has
    to be within a few roundings.
    """
    if exact.shape != got.shape or not (got.is_floating_point() or got.is_complex()):
        return False
    if got.is_complex():
        got, eager, exact = (torch.view_as_real(t.resolve_conj()) for t in (got, eager, exact))
    rounded = exact.to(got.dtype)
    finite = rounded.isfinite()
    if not torch.equal(got[~finite].nan_to_num(), rounded[~finite].nan_to_num()):
        return False
    both = finite & eager.isfinite()
    mine, theirs = ((t.double() - exact).abs() for t in (got, eager))
    close = mine[finite & ~both] <= 8 * torch.finfo(got.dtype).eps * exact[finite & ~both].abs()
    if not bool(close.all()) or not both.any():
        return bool(close.all())
    worst = bool((mine[both] <= 4 * theirs[both].max()).all())
    return worst and bool((mine[both] ** 2).mean() <= 4 * (theirs[both] ** 2).mean())
