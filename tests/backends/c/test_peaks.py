"""The peaks that everything else is measured by: no multiply-add may be folded away."""

from __future__ import annotations

import statistics

import pytest

from irees.backends.c.peaks import CHAINS, PeakMeter, measure_peaks


@pytest.mark.parametrize("chains", [1, CHAINS])
def test_every_chain_is_computed(chains):
    """With x = x + 1, chain i ends at i + steps in every lane."""
    meter, steps = PeakMeter(chains=chains), 1000
    assert meter.sum_after(steps, 1.0, 1.0) == meter.lanes * sum(i + steps for i in range(chains))
    assert meter.sum_after(3, 2.0, 1.0) == meter.lanes * sum(8 * i + 7 for i in range(chains))


def test_the_rate_does_not_depend_on_the_number_of_chains():
    """One chain in twelve that the compiler drops would be 9 %; a busy machine may be noisy."""
    meters = [PeakMeter(chains=chains) for chains in (10, 11, 12)]
    for _ in range(4):
        rates = [[m.gflops(1, 100_000) for m in meters] for _ in range(15)]
        ten, eleven, twelve = (statistics.median(column) for column in zip(*rates, strict=True))
        if max(ten, eleven, twelve) < 1.06 * min(ten, eleven, twelve):
            return
    pytest.fail(f"GFLOP/s of 10, 11 and 12 chains: {ten:.1f}, {eleven:.1f}, {twelve:.1f}")


def test_both_peaks_are_rates():
    peaks = measure_peaks(2, samples=1)
    assert peaks.gflops > 0.1
    assert 0.1 < peaks.gigabytes < 10_000
