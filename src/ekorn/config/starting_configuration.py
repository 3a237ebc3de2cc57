"""The configuration that a new environment starts from: the configuration file, overridden by the command line."""

from __future__ import annotations

from pathlib import Path

from ekorn.config import environment_variables
from ekorn.config.configuration import Configuration
from ekorn.config.options.listing import all_options
from ekorn.config.unread_keys import without_unread_keys
from ekorn.errors import ConfigurationError

__all__ = [
    "file_configuration",
    "from_command_line",
    "load_configuration",
    "set_command_line",
    "starting_configuration",
    "with_current_keys",
]

_FILE_NAMES = ("config.yaml", "flink-conf.yaml")  # the first one found is read

_command_line: Configuration | None = None


def set_command_line(configuration: Configuration | None) -> None:
    """Set the configuration of the command line, which overrides the file for every environment made from now on."""
    global _command_line  # noqa: PLW0603 - a program runs once per process and takes no arguments from `ekorn run`
    _command_line = configuration


def from_command_line(key: str) -> str | None:
    """Return a setting that the command line gave to the program; None if it gave none."""
    return None if _command_line is None else with_current_keys(_command_line).get_string(key)


def starting_configuration() -> Configuration:
    """Return the settings of the configuration file, overridden by those of the command line."""
    found = _file_configuration()
    if _command_line is not None:
        found.add_all(with_current_keys(_command_line))
    return found


def with_current_keys(given: Configuration) -> Configuration:
    """Return a copy in which old keys are renamed to current ones.

    Sources of settings are merged after the renaming, so a stronger source with an old key overrides a weaker source
    with the current key.
    """
    renamed = Configuration(given)
    declared = list(all_options())
    current = {option.key for option in declared}
    for option in declared:
        for old in option.old_keys:
            if given.contains_key(old) and not renamed.contains_key(option.key):
                renamed.set_string(option.key, given.get_string(old))
    for option in declared:
        for old in option.old_keys:
            if old not in current:
                renamed.remove_config(old)
    return renamed


def file_configuration() -> Configuration:
    """Return the whole configuration file: the settings of jobs, and those of the standing service."""
    path = _file()
    return Configuration() if path is None else with_current_keys(load_configuration(path))


def _file_configuration() -> Configuration:
    path = _file()
    if path is None:
        return Configuration()
    return without_unread_keys(with_current_keys(load_configuration(path)), str(path))


def _file() -> Path | None:
    folder = environment_variables.variable(environment_variables.CONF_DIR)
    if folder is None:
        return None
    for name in _FILE_NAMES:
        path = Path(folder) / name
        if path.is_file():
            return path
    raise ConfigurationError(
        f"{environment_variables.CONF_DIR} is {folder!r}, but this folder has no config.yaml; "
        "unset the variable, or add the file"
    )


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
