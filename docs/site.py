"""
A hook of mkdocs: pages from the root of the repository, a page per pass in the navigation, and
drawings inside of their page, so that they have its colors.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""Files of the root => their pages."""
_DRAWING = re.compile(r"^!\[([^\]]*)\]\(([\w/]+\.svg)\)$", re.MULTILINE)
_OTHER = re.compile(r"\]\((?:\.\./)?((?:irees|examples|tests|benchmarks)/[^)]*|LICENSE|Makefile)\)")
"""Links to files that are no pages."""


def on_config(config: Any) -> Any:
    """Adds the passes to the navigation, by the headings of docs/passes.md."""
    groups: list[Any] = ["passes.md"]
    for line in (ROOT / "docs/passes.md").read_text().splitlines():
        if line.startswith("## "):
            groups.append({line[3:]: []})
        elif found := re.match(r"- \[(irees-[\w-]+)\]\(([^)]*)\)", line):
            ((_, pages),) = groups[-1].items()
            pages.append({found[1].removeprefix("irees-"): found[2]})
    groups = [each for each in groups if isinstance(each, str) or any(each.values())]
    next(each for each in config.nav if "Passes" in each)["Passes"] = groups
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages from the root."""
    for name, page in PAGES.items():
        text = (ROOT / name).read_text().replace("](docs/", "](")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(text: str, page: Any, **_: Any) -> str:
    """Redirects links to pages from the root, and puts drawings into the page."""
    up = "../" * page.file.src_uri.count("/")
    for name, target in PAGES.items():
        text = re.sub(rf"\]\((?:\.\./)*{name}(#[\w-]+)?\)", rf"]({up}{target}\1)", text)
    text = _OTHER.sub(r"](#\1)", text)
    return _DRAWING.sub(lambda found: _inline(page, found[1], found[2]), text)


def _inline(page: Any, title: str, path: str) -> str:
    source = (ROOT / "docs" / Path(page.file.src_uri).parent / path).read_text()
    if "currentColor" not in source:  # a plot, with colors of its own
        return f"![{title}]({path})"
    return f"<figure>{source[source.index('<svg') :]}<figcaption>{title}</figcaption></figure>"
