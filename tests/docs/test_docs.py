"""The reference is generated from the code, and says what the code says now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_reference_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, DOCS / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_page_is_reachable_from_the_index() -> None:
    index = (DOCS / "index.md").read_text()
    missing = [
        page.name
        for page in DOCS.rglob("*.md")
        if page != DOCS / "index.md" and str(page.relative_to(DOCS)) not in index
    ]
    assert not missing
