"""The messages on the page of troubleshooting are messages of the code."""

from __future__ import annotations

import ast
import re

from tests.manual.blocks import DOCS, ROOT

PAGE = DOCS / "guides" / "troubleshooting.md"


def texts_of_the_code() -> str:
    """Return every text of the code, with a mark in place of each value in it."""
    found: list[str] = []
    for path in sorted((ROOT / "src" / "ekorn").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values]
                found.append("".join(parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)


def test_every_message_exists():
    page = PAGE.read_text(encoding="utf-8").split("## No error, but no results")[0]
    messages = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert len(messages) > 20
    texts = texts_of_the_code()
    parts = {part.strip(" :;,") for message in messages for part in message.split("...")}
    assert not [part for part in sorted(parts) if part and part not in texts]
