"""Reading `config.yaml` and `flink-conf.yaml`: the part of YAML that configuration files use.

Flat ``key: value`` lines, maps nested by indentation (``execution:`` over ``checkpointing:`` over ``interval: 10 s``
is the key ``execution.checkpointing.interval``), lists, quotes and comments. Anything else is refused with its line.
"""

from __future__ import annotations

import re
from pathlib import Path

from tamias.config.configuration import Configuration
from tamias.config.value_text import parse_list, value_text
from tamias.errors import ConfigurationError

__all__ = ["load_configuration", "parse_configuration"]

_QUOTED = re.compile(r"""(?P<quote>['"])(?P<text>.*?)(?P=quote)\s*(#.*)?$""")


def load_configuration(path: str | Path) -> Configuration:
    """The configuration a file holds.

    Raises:
        ConfigurationError: There is no such file, or a line cannot be read.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the configuration file {str(path)!r}: {error}") from None
    return parse_configuration(text, where=str(path))


def parse_configuration(text: str, *, where: str = "configuration") -> Configuration:
    """The configuration a text holds; ``where`` names it in errors."""
    configuration = Configuration()
    open_maps: list[tuple[int, str]] = []  # indentation and full key of each map above the current line
    items: dict[str, list[str]] = {}
    last_key: str | None = None  # the key of the line above, when it had no value: a map or a list begins below it
    last_indent = -1
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.strip()
        if not content or content.startswith("#") or content == "---":
            continue

        def refuse(why: str, number: int = number, content: str = content) -> ConfigurationError:
            return ConfigurationError(f"{where}, line {number}: {why}: {content!r}")

        if "\t" in line[: len(line) - len(line.lstrip())]:
            raise refuse("indentation must be made of blanks, not tabs")
        indent = len(line) - len(line.lstrip(" "))
        if content.startswith("- "):
            # YAML allows the items of a list at the indentation of their key, or deeper.
            key = last_key if last_key is not None and indent >= last_indent else None
            if key is None:
                raise refuse("a list item without a key above it")
            items.setdefault(key, []).append(_scalar(content[2:]))
            continue
        name, value = _key_and_value(content)
        if name is None:
            raise refuse("expected 'key: value'")
        if indent > last_indent and last_key is not None and last_key not in items:
            open_maps.append((last_indent, last_key))
        elif indent > last_indent >= 0:
            raise refuse("indented below a key that already has a value")
        while open_maps and indent <= open_maps[-1][0]:
            open_maps.pop()
        key = f"{open_maps[-1][1]}.{name}" if open_maps else name
        last_indent, last_key = indent, None
        if not value or value.startswith("#"):
            last_key = key
        elif value[0] in "&*|>{!":
            raise refuse("this form of YAML is not supported here; write one 'key: value' per line")
        else:
            parsed = _scalar(value)
            if parsed not in {"~", "null"}:
                configuration.set_string(key, value_text(parse_list(parsed)) if value[0] == "[" else parsed)
    for key, entries in items.items():
        configuration.set_string(key, value_text(entries))
    return configuration


def _key_and_value(content: str) -> tuple[str | None, str]:
    match = re.match(r"""(['"]?)([^\s'":#][^'":]*?)\1\s*:(?:\s+(.*))?$""", content)
    return (match[2], (match[3] or "").strip()) if match else (None, "")


def _scalar(text: str) -> str:
    quoted = _QUOTED.match(text.strip())
    if quoted:
        return quoted["text"]
    return re.sub(r"\s+#.*$", "", text).strip()
