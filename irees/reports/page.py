"""Writes the data of a report into one HTML file, which needs no server and no network."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

TEMPLATE = Path(__file__).parent / "page.html"


def page(data: dict[str, Any]) -> str:
    """Returns the HTML of a report; the data is embedded, compressed."""
    packed = base64.b64encode(zlib.compress(json.dumps(data).encode(), 9)).decode()
    return TEMPLATE.read_text().replace("DATA_OF_THE_REPORT", packed)


def data_of(text: str) -> dict[str, Any]:
    """Returns the data of a page."""
    packed = text.split('id="data">', 1)[1].split("<", 1)[0]
    return json.loads(zlib.decompress(base64.b64decode(packed)))
