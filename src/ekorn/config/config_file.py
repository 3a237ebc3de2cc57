"""Reads `config.yaml` and `flink-conf.yaml`; `yaml_text.py` says what they may hold."""

from __future__ import annotations

from pathlib import Path

from ekorn.config.configuration import Configuration
from ekorn.errors import ConfigurationError

__all__ = ["load_configuration"]


def load_configuration(path: str | Path) -> Configuration:
    """Read the configuration in a file.

    Raises:
        ConfigurationError: There is no such file, or a line cannot be read.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the configuration file {str(path)!r}: {error}") from None
    from ekorn.config.yaml_text import parse_configuration  # here: executors read no file, and may lack PyYAML

    return parse_configuration(text, where=str(path))
