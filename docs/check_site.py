"""Checks the built site: python docs/check_site.py build/site. It needs no server, neither its own nor another.

A link that a reader may follow leads wherever it likes. What the browser fetches by itself (scripts, style sheets,
pictures, fonts) has to be part of the site. Pages that are opened as files can load the index of the search as a script
only, and run the search by a script of the site.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|audio|video)\b[^>]*\bsrc=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preload|preconnect|icon))[^>]*\bhref=["']?((?:https?:)?//[^"'\s>]+)"""
)
FETCHED_BY_STYLE = re.compile(r"""(?:url\(|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")


def main(folder: str) -> int:
    """Print what is fetched from elsewhere; return the exit code."""
    pages = sorted(Path(folder).rglob("*.html"))
    found = [(page, "".join(address)) for page in pages for address in FETCHED.findall(page.read_text("utf-8"))]
    styles = sorted(Path(folder).rglob("*.css"))
    found += [(page, address) for page in styles for address in FETCHED_BY_STYLE.findall(page.read_text("utf-8"))]
    for page, address in found:
        print(f"{page} loads {address}")
    without_search = [page for page in pages if "iframe-worker.js" not in page.read_text("utf-8")]
    if not (Path(folder) / "search" / "search_index.js").exists():
        without_search = pages
    print(f"{len(pages)} pages, {len(found)} of their parts on other servers, {len(without_search)} without a search")
    return 1 if found or without_search or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
