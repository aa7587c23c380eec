"""The peaks that everything else is measured by: no multiply-add may be folded away."""

from __future__ import annotations

import pytest

from irees.backends.c.peaks import CHAINS, PeakMeter, measure_peaks


@pytest.mark.parametrize("chains", [1, 10, 11, CHAINS])
def test_every_chain_is_computed(chains):
    """With x = x + 1, chain i ends at i + steps in every lane."""
    meter, steps = PeakMeter(chains=chains), 1000
    assert meter.sum_after(steps, 1.0, 1.0) == meter.lanes * sum(i + steps for i in range(chains))
    assert meter.sum_after(3, 2.0, 1.0) == meter.lanes * sum(8 * i + 7 for i in range(chains))


def test_chains_at_a_fixed_point_are_computed():
    """
    Chain 1 begins at 1 = 1 * 0.999 + 0.001, as all chains do sooner or later: a compiler that knew
    would drop it, and the rate would be of work that nobody did.
    """
    meter, steps = PeakMeter(chains=CHAINS), 1000
    expected = meter.lanes * sum(1 + (i - 1) * 0.999**steps for i in range(CHAINS))
    assert meter.sum_after(steps, 0.999, 0.001) == pytest.approx(expected, rel=1e-4)


def test_a_rate_counts_every_chain():
    """Twice a chain, and lane, and step, over the nanoseconds that all of them took."""
    meter = PeakMeter(chains=CHAINS)
    meter._nanoseconds = lambda threads, steps, a, b: 1000 * threads  # type: ignore[method-assign]
    assert meter.gflops(1, 500) == 2 * CHAINS * meter.lanes * 500 / 1000
    assert meter.gflops(2, 500) == meter.gflops(1, 500)


def test_both_peaks_are_rates():
    peaks = measure_peaks(2, samples=1)
    assert peaks.gflops > 0.1
    assert 0.1 < peaks.gigabytes < 10_000
