"""The benchmark: its arithmetic, its page and plot, and one run of it."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def report(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import report

    yield report
    del sys.modules["report"]


def results(report):
    return [
        report.Result(
            "product", 1, {"irees": [2.0], "PyTorch": [4.0], "IREE": [1.0]}, {"Inductor": "E: none"},
            flops=10**9, bytes=10**6, gflops=[1000.0], gigabytes=[20.0],
        ),
        report.Result(
            "sum", 1, {"irees": [10.0], "PyTorch": [10.0]}, {},
            flops=10**7, bytes=10**8, gflops=[1000.0], gigabytes=[20.0],
        ),
        report.Result(
            "small", 1, {"irees": [1.0]}, {}, flops=10, bytes=100, gflops=[1.0], gigabytes=[2.0]
        ),
    ]  # fmt: skip


def test_rows_and_means(report):
    lines = report.table(results(report), ["irees", "PyTorch", "Inductor", "IREE"], 1 << 20)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[2] == [
        "product", "1", "2", "4", "–", "**1**", "0.50", "2.00", "500 (50%)", "",
    ]  # fmt: skip
    assert cells[3][-2:] == ["", "10.0 (50%)"]
    assert cells[4] == ["small", "1", "**1**", "–", "–", "–", "–", "–", "", ""]
    assert cells[5][2:] == ["", "0.71", "–", "2.00", "0.71", "1.41", "", ""]


def test_what_is_compared_was_measured_side_by_side(report):
    """A machine that is half as fast for the last three of five repetitions."""
    found = report.Result(
        "product", 1, {"irees": [2, 2, 4, 4, 4], "PyTorch": [3, 3, 6, 6, 6], "IREE": [4, 4]}, {},
        flops=10**9, bytes=10**6, gflops=[1000, 1000, 500, 500, 500], gigabytes=[20] * 5,
    )  # fmt: skip
    assert found.times == {"irees": 4, "PyTorch": 6, "IREE": 4}
    assert found.to("PyTorch") == found.to_best_peer == pytest.approx(2 / 3)
    assert found.to("IREE") == 0.5
    assert found.rates(1 << 20) == ("250 (50%)", "")
    late = report.Result("late", 1, {"irees": [2, 2, 4, 4], "PyTorch": [3, 3, 3, 3]}, {})
    assert late.to("PyTorch") == 1.0


def test_page_names_what_is_missing(report):
    page = report.page(results(report), ["irees", "PyTorch", "Inductor"], 1 << 20, "Made now.")
    assert "- product, Inductor: E: none" in page
    assert "1 thread: 1000 GFLOP/s, 20.0 GB/s" in page


def test_plot_is_svg_with_a_bar_for_each_ratio(report):
    picture = xml.fromstring(report.plot(results(report)))
    texts = [node.text for node in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"product", "sum", "small", "2.00", "1.00"} <= set(texts)


def test_one_run(tmp_path):
    pytest.importorskip("torch")
    page = tmp_path / "page.md"
    command = [sys.executable, str(BENCHMARKS / "bench.py"), "--only", "softmax_4096x1024"]
    command += ["--skip", "Inductor", "ONNX Runtime", "IREE", "--threads", "1", "--repeat", "2"]
    command += ["--visits", "2", "--write", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # One line per visit, and the page.
    assert done.stdout.count("| softmax_4096x1024 | 1 |") == 3
    row = next(line for line in page.read_text().splitlines() if line.startswith("| softmax"))
    assert row.count("|") == 9
    assert "%" in row
    assert page.with_suffix(".svg").exists()
    assert "(page.svg)" in page.read_text()


def test_what_is_slow_is_timed_twice_in_all_visits(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    pytest.importorskip("torch")
    import bench

    assert bench.timed_enough([1500.0, 1200.0])
    assert not bench.timed_enough([1500.0])
    # One slow call among fast ones is the machine's.
    assert not bench.timed_enough([3.0, 1500.0])
    row = bench.Row("product", [1], bench.SUITE)
    row.ready["irees"] = lambda threads: lambda: None
    row.results[0].samples["irees"] = [1500.0, 1200.0]
    assert row.visit(row.results[0], 5.0) == []
    row.results[0].samples["irees"] = [3.0]
    (entry,) = row.visit(row.results[0], 5.0)
    entry.repeat()
    assert len(row.results[0].samples["irees"]) == 2


def test_every_program_has_a_name_and_unknown_ones_are_refused():
    listed = [sys.executable, str(BENCHMARKS / "bench.py"), "--list"]
    names = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()
    assert len(names) == len(set(names)) == 31
    wrong = [sys.executable, str(BENCHMARKS / "bench.py"), "--only", "nothing"]
    done = subprocess.run(wrong, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no program nothing" in done.stderr


def test_the_cost_of_a_dispatch():
    command = [sys.executable, str(BENCHMARKS / "dispatch.py"), "--count", "2000", "--repeat", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [
        [float(cell) for cell in line.strip("| ").split("|")]
        for line in done.stdout.splitlines()[2:]
    ]
    assert [row[:3] for row in rows] == [
        [threads, groups, gap]
        for threads, groups in ((1, 1), (2, 1), (2, 2))
        for gap in (0, 20, 200)
    ]
    # One workgroup needs no other thread, and no barrier: a call.
    assert rows[0][3] < 1
    assert rows[3][3] < 1


def test_the_benchmark_of_a_gpu_without_one(tmp_path):
    """Kernels are compiled and what they take is told; then the error, typed, and no page."""
    pytest.importorskip("torch", reason="its programs are torch modules too: `make test-models`")
    from irees.backends.cuda.toolchain import find_nvrtc
    from irees.errors import DeviceError, ToolchainError
    from irees.target import device_arch

    try:
        find_nvrtc()
    except ToolchainError as error:
        pytest.skip(f"{error}; extra `test` has it")
    try:
        device_arch()
        pytest.skip("there is a GPU: `make bench-gpu` runs it")
    except DeviceError:
        pass
    page = tmp_path / "page.md"
    command = [sys.executable, str(BENCHMARKS / "bench_gpu.py"), "--write", str(page)]
    answer = subprocess.run(
        [*command, "--only", "add_2e24", "matmul_f16_4096"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 2, answer.stderr
    assert "DeviceError: " in answer.stderr
    assert "compiled for sm_90 by NVRTC" in answer.stdout
    assert "| matmul_f16_4096 | 139 | 1" in answer.stdout
    row = next(line for line in answer.stdout.splitlines() if line.startswith("| matmul_f16_4096"))
    assert row.split("|")[-5].strip() == "1"
    assert row.split("|")[-2].strip() == "0"
    assert not page.exists()


def test_the_worst_row_comes_first(report):
    heading = report.Heading("Breadth", worst_first=True)
    page = report.page(results(report), ["irees", "PyTorch", "IREE"], 1 << 20, "Made now.", heading)
    rows = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")]
    assert rows[1:4] == ["product", "sum", "small"]
    assert page.startswith("# Breadth\n")
    reversed_rows = heading.ordered(results(report)[::-1])
    assert [row.name for row in reversed_rows] == ["product", "sum", "small"]
