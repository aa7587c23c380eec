"""What the benchmark found, as a Markdown page and a plot."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median

CACHE_FACTOR = 0.5
"""Bandwidth is shown of programs that move more bytes than this share of the last-level cache."""

RIDGE = 8.0
"""Flops a byte from which a program is held to the peak of multiply-adds, not to bandwidth."""


@dataclass
class Result:
    """
    One program on a number of threads: milliseconds of each contender, repetition by repetition,
    and the peaks of these threads together, measured beside irees each time.

    What is compared was measured side by side: quotients are medians over the repetitions of the
    quotients of each. A machine that others share has slow minutes, which would fall on a part of
    the repetitions, and on one median and not on the other.
    """

    name: str
    threads: int
    samples: dict[str, list[float]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    flops: int | None = None
    bytes: int | None = None
    gflops: list[float] = field(default_factory=list)
    gigabytes: list[float] = field(default_factory=list)

    @property
    def times(self) -> dict[str, float]:
        """The median of each contender."""
        return {name: median(times) for name, times in self.samples.items() if times}

    def to(self, other: str) -> float | None:
        """The time of irees over that of another."""
        mine, theirs = self.samples.get("irees"), self.samples.get(other)
        # Slow ones are not repeated as often.
        return median(a / b for a, b in zip(mine, theirs)) if mine and theirs else None

    @property
    def to_best_peer(self) -> float | None:
        """The time of irees over that of the fastest of the others: the largest quotient."""
        found = [self.to(name) for name in self.samples if name != "irees"]
        return max((ratio for ratio in found if ratio is not None), default=None)

    def rates(self, cache_bytes: int) -> tuple[str, str]:
        """GFLOP/s or GB/s of irees, with its share of what the machine can do; one is empty."""
        flops, moved = self.flops or 0, self.bytes or 0
        if flops and (not moved or flops >= RIDGE * moved):
            return self._rate(flops, self.gflops, ".0f"), ""
        if moved > CACHE_FACTOR * cache_bytes:
            return "", self._rate(moved, self.gigabytes, ".1f")
        return "", ""

    def _rate(self, amount: int, peaks: list[float], digits: str) -> str:
        """Billions a second, and the share of a peak."""
        mine = self.samples.get("irees")
        if not mine:
            return ""
        shares = [amount / time / 1e6 / peak for time, peak in zip(mine, peaks)]
        share = f" ({median(shares):.0%})" if shares else ""
        return f"{amount / median(mine) / 1e6:{digits}}{share}"


@dataclass(frozen=True)
class Heading:
    """How a page begins, and in which order its rows are."""

    title: str = "Performance"
    introduction: str = ""
    worst_first: bool = False

    def ordered(self, results: list[Result]) -> list[Result]:
        """The rows as they are shown."""
        if not self.worst_first:
            return results
        return sorted(results, key=lambda result: result.to_best_peer or 0.0, reverse=True)


def milliseconds(value: float | None, best: float) -> str:
    """A time, bold where it is the best, a dash where there is none."""
    if value is None:
        return "–"
    text = f"{value:.3g}" if value < 100 else f"{value:.0f}"
    return f"**{text}**" if value <= best else text


def ratio(value: float | None) -> str:
    """A quotient of times."""
    return "–" if value is None else f"{value:.2f}"


def geometric_mean(values: list[float]) -> float | None:
    """The mean of ratios."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def table(results: list[Result], contenders: list[str], cache_bytes: int) -> list[str]:
    """The rows, and the geometric means per number of threads."""
    columns = ["program", "threads", *contenders, "irees / PyTorch", "irees / best peer"]
    columns += ["GFLOP/s (of peak)", "GB/s (of copy)"]
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for result in results:
        best = min(result.times.values(), default=0.0)
        cells = [result.name, str(result.threads)]
        cells += [milliseconds(result.times.get(name), best) for name in contenders]
        cells += [ratio(result.to("PyTorch")), ratio(result.to_best_peer)]
        cells += result.rates(cache_bytes)
        lines.append("| " + " | ".join(cells) + " |")
    for threads in sorted({result.threads for result in results}):
        rows = [result for result in results if result.threads == threads]
        means = [
            geometric_mean([r for row in rows if (r := row.to(name)) is not None])
            for name in contenders
        ]
        best = geometric_mean([r for row in rows if (r := row.to_best_peer) is not None])
        to_torch = means[contenders.index("PyTorch")] if "PyTorch" in contenders else None
        cells = ["geometric mean of irees / it", str(threads)]
        cells += [
            "" if name == "irees" else ratio(mean)
            for name, mean in zip(contenders, means, strict=True)
        ]
        cells += [ratio(to_torch), ratio(best), "", ""]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def page(
    results: list[Result],
    contenders: list[str],
    cache_bytes: int,
    how: str,
    heading: Heading = Heading(),
    plotted: str = "",
) -> str:
    """
    docs/performance.md. `how` says when, where and by which command; `plotted` is the plot's file.
    """
    results = heading.ordered(results)
    reasons = dict.fromkeys(
        f"- {result.name}, {name}: {why}"
        for result in results
        for name, why in result.reasons.items()
    )
    lines = [
        f"# {heading.title}",
        "",
        *([heading.introduction, ""] if heading.introduction else []),
        "Milliseconds, medians of interleaved repetitions in one run, which comes back to each row; "
        "the best is bold. " + how,
        "",
        "Below 1, irees is faster. Quotients and shares are medians over the repetitions of what was "
        "measured side by side in each, and need not be those of the medians beside them. GFLOP/s are shown of programs that do at least "
        f"{RIDGE:.0f} flops a byte, beside the peak of f32 multiply-adds; GB/s of those that move "
        "more than half of what the last-level cache holds, beside a copy of memory (bytes read and written). "
        "Both peaks are measured beside irees in each repetition. Flops and bytes are "
        "counted from the program (`irees/analysis/work.py`).",
        "",
        *([f"![irees over its best peer, per program]({plotted})", ""] if plotted else []),
        *table(results, contenders, cache_bytes),
        "",
        "Peaks (medians over the rows):",
        "",
        *peaks(results),
    ]
    return "\n".join([*lines, *(["", "Not measured:", "", *reasons] if reasons else [])]) + "\n"


def counted(number: int, noun: str) -> str:
    """1 thread, 2 threads."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def peaks(results: list[Result]) -> list[str]:
    """One line per number of threads."""
    lines: list[str] = []
    for threads in sorted({result.threads for result in results}):
        rows = [r for r in results if r.threads == threads and r.gflops]
        if not rows:
            continue
        flops = median(median(r.gflops) for r in rows)
        moved = median(median(r.gigabytes) for r in rows)
        lines.append(f"- {counted(threads, 'thread')}: {flops:.0f} GFLOP/s, {moved:.1f} GB/s")
    return lines


ROW, LEFT, WIDTH = 15, 210, 420
SPAN = math.log(8)
"""From 1/8 to 8."""

COLOURS = (("blue", "#4878a8"), ("orange", "#e08214"))


def plot(results: list[Result]) -> str:
    """An SVG: for each program a bar per number of threads, from 1 to irees / best peer."""
    names = list(dict.fromkeys(result.name for result in results))
    threads = sorted({result.threads for result in results})
    height = ROW * len(threads) * len(names) + 50
    middle = LEFT + WIDTH / 2

    def place(value: float) -> float:
        bounded = max(-SPAN, min(SPAN, math.log(value)))
        return middle + bounded / SPAN * WIDTH / 2

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 60}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{LEFT + WIDTH + 60}" height="{height}" fill="white"/>',
    ]
    for value in (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8):
        x = place(value)
        stroke = "#333" if value == 1 else "#ddd"
        out.append(
            f'<line x1="{x:.1f}" y1="24" x2="{x:.1f}" y2="{height - 24}" stroke="{stroke}"/>'
        )
        out.append(f'<text x="{x:.1f}" y="16" text-anchor="middle">{value:g}</text>')
    by_place = {(result.name, result.threads): result for result in results}
    for row, name in enumerate(names):
        top = 26 + row * ROW * len(threads)
        label = top + ROW * len(threads) / 2 + 4
        out.append(f'<text x="{LEFT - 8}" y="{label:.1f}" text-anchor="end">{name}</text>')
        for line, count in enumerate(threads):
            found = by_place.get((name, count))
            value = found.to_best_peer if found is not None else None
            if value is None:
                continue
            x, y = place(value), top + line * ROW + 2
            _, colour = COLOURS[line % len(COLOURS)]
            out.append(
                f'<rect x="{min(x, middle):.1f}" y="{y}" width="{abs(x - middle):.1f}" '
                f'height="{ROW - 4}" fill="{colour}"/>'
            )
            out.append(f'<text x="{LEFT + WIDTH + 8}" y="{y + 10}">{value:.2f}</text>')
    legend = ", ".join(
        f"{COLOURS[i % len(COLOURS)][0]}: {counted(n, 'thread')}" for i, n in enumerate(threads)
    )
    out.append(
        f'<text x="{middle:.1f}" y="{height - 8}" text-anchor="middle">'
        f"time of irees / best peer (left is faster); {legend}</text>"
    )
    return "\n".join([*out, "</svg>"]) + "\n"
