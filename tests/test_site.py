"""The site builds without warnings, has all pages, and loads nothing from a network."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = ("mkdocs", "material", "mkdocstrings")
# What a browser would load by itself, unlike the target of a link.
LOADED = re.compile(
    r"""<(?:script|img|iframe)[^>]*\ssrc="?(https?:)?//[^>]*|<link[^>]*rel="?(?:stylesheet|preconnect)"?[^>]*href="?https?:[^>]*"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if missing := [name for name in PARTS if find_spec(name) is None]:
        pytest.skip(f"no {missing[0]}: pip install 'irees[docs]', or run make docs")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    out = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(out), strict=True)
    build(config)  # raises Abort for a warning
    return out


def test_it_has_a_page_per_pass_and_all_public_names(site):
    import irees

    passes = {path.stem for path in (ROOT / "docs/passes").glob("*.md")}
    assert passes == {path.name for path in (site / "passes").iterdir() if path.is_dir()}
    listed = (site / "passes/index.html").read_text()
    assert [name for name in passes if f"{name}/" not in listed] == []
    api = (site / "api/index.html").read_text()
    missing = [n for n in irees.__all__ if not re.search(rf'id="irees\.[\w.]*\b{n}"', api)]
    assert missing == []


def test_it_loads_nothing_from_a_network(site):
    pages = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(pages) > 100
    for path in pages:
        text = path.read_text()
        assert LOADED.search(text) is None, path
        assert "url(http" not in text, path
