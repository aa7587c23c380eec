"""The generated pages are those of the passes as they are; links lead somewhere; examples run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from irees.runtime.services import num_threads, set_num_threads

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Generated pages link to themselves by the names of passes: `test_pages_are_fresh` covers them.
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md"), *(DOCS / "design").glob("*.md")])
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def test_pages_are_fresh(tmp_path):
    """`python docs/generate.py` brings them up to date."""
    subprocess.run([sys.executable, str(DOCS / "generate.py"), str(tmp_path)], check=True)
    made = {p.relative_to(tmp_path): p.read_text() for p in tmp_path.rglob("*.md")}
    kept = {
        p.relative_to(DOCS): p.read_text()
        for p in [
            DOCS / "passes.md",
            DOCS / "limits.md",
            DOCS / "options.md",
            *(DOCS / "passes").glob("*.md"),
        ]
    }
    assert made == kept


def test_tour_is_fresh(tmp_path):
    """`python docs/tour.py` brings it up to date."""
    subprocess.run([sys.executable, str(DOCS / "tour.py"), str(tmp_path)], check=True)
    assert (tmp_path / "tour.md").read_text() == (DOCS / "tour.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = FENCED.sub("", page.read_text())
    links = re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", text)
    here = [link for link in links if "://" not in link and not link.startswith("mailto:")]
    assert not [link for link in here if not (page.parent / link).exists()]


@pytest.fixture
def among_examples(tmp_path, monkeypatch):
    """A folder with `examples/` and the kernel of the page."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    kernel = re.search(r"```mlir\n(.*?)```", HOWTO, re.DOTALL)
    assert kernel is not None
    (tmp_path / "kernel.mlir").write_text(kernel[1])
    monkeypatch.chdir(tmp_path)
    threads = num_threads()
    yield
    set_num_threads(threads)


HOWTO = (DOCS / "howto.md").read_text()


def test_recipes_of_the_command_line_work(among_examples, capsys):
    from irees.tools.main import main

    lines = [line for block in re.findall(r"```sh\n(.*?)```", HOWTO, re.DOTALL)
             for line in block.splitlines()]  # fmt: skip
    assert len(lines) > 15
    for line in lines:
        command, _, otherwise = line.partition(" || test $? = ")
        words = shlex.split(command)
        assert words[0] == "irees"
        assert main(words[1:]) == int(otherwise or 0), (line, capsys.readouterr().err)
    exact, right = np.load("strict.npy"), np.load("right.npy")
    assert exact.tobytes() == right.tobytes()


def test_recipes_in_python_work(among_examples):
    for block in re.findall(r"```python\n(.*?)```", HOWTO, re.DOTALL):
        exec(block, {})
    assert Path("report.html").stat().st_size > 10_000


def test_the_glossary_is_sorted_and_short():
    entries = re.findall(r"^\*\*(.+?)\*\* (.+?)\n\n", (DOCS / "glossary.md").read_text() + "\n",
                         re.DOTALL | re.MULTILINE)  # fmt: skip
    names = [name for name, _ in entries]
    assert len(names) > 50
    assert names == sorted(names)
    assert not [name for name, text in entries if len(re.findall(r"[.?](?:\s|$)", text)) > 3]


def test_the_front_page_is_one_screen():
    """A newcomer reads it in three minutes; the map has one paragraph per folder."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= 90
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) <= 200


def examples(of: str) -> list[str]:
    """The Python blocks of the front page that do (`torch`) or do not (`numpy`) need PyTorch."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return [block for block in blocks if f"import {of}" in block]


def run(block: str, folder: Path) -> None:
    """Runs a block in `folder`, beside the repository's examples."""
    (folder / "examples").symlink_to(ROOT / "examples")
    subprocess.run([sys.executable, "-c", block], cwd=folder, check=True)


def test_the_example_of_mlir_runs(tmp_path):
    (block,) = examples("numpy")
    run(block, tmp_path)


def test_the_example_of_pytorch_runs(tmp_path):
    pytest.importorskip("torch", reason="needs torch: pip install torch==2.13.0")
    (block,) = examples("torch")
    run(block, tmp_path)
