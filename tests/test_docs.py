"""The generated pages are those of the passes as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def test_pages_are_fresh(tmp_path):
    """`python docs/generate.py` brings them up to date."""
    subprocess.run([sys.executable, str(DOCS / "generate.py"), str(tmp_path)], check=True)
    made = {p.relative_to(tmp_path): p.read_text() for p in tmp_path.rglob("*.md")}
    kept = {
        p.relative_to(DOCS): p.read_text()
        for p in [DOCS / "passes.md", DOCS / "limits.md", *(DOCS / "passes").glob("*.md")]
    }
    assert made == kept
