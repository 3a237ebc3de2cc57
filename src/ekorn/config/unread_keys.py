"""Keys that no part of ekorn reads: misspelt ones, and options of Flink that have no meaning here.

A misspelt key in a program or on the command line is refused, because an ignored setting looks like a working one.
`flink_options` says what is done with options of Flink. A configuration file may be that of a Flink cluster, so its
unread keys are left out, and the log names them. Keys outside of Flink's and Ekorn's name spaces belong to the program.
"""

from __future__ import annotations

import difflib
import logging
from functools import cache

from ekorn.config.configuration import Configuration
from ekorn.config.flink_options import rule_for
from ekorn.config.options import rocksdb as rocksdb_options
from ekorn.config.options.listing import all_options, service_keys
from ekorn.config.settings.metric_settings import PREFIX as REPORTERS
from ekorn.errors import ConfigurationError

__all__ = ["refuse_unread_keys", "without_unread_keys"]

_log = logging.getLogger(__name__)

_NAME_SPACES = (
    "execution.", "heartbeat.", "metrics.", "parallelism.", "pipeline.", "python.", "restart-strategy", "state.",
    "task.", "ekorn.",
)  # fmt: skip


def refuse_unread_keys(configuration: Configuration) -> None:
    """Check the keys of a job's configuration; one line of the log names the options of Flink without a meaning here.

    Raises:
        ConfigurationError: A key is misspelt, or is an option of Flink that would change the job if it were read.
    """
    without_effect = []
    for key in sorted(configuration.to_dict()):
        if (why := _refusal(key)) is not None:
            raise ConfigurationError(f"the option {key!r} is refused, because nothing reads it: {why}")
        if not _is_read(key) and rule_for(key) is not None:
            without_effect.append(key)
    if without_effect:
        _log.warning(
            "options of Flink that have no effect here: %s; docs/options.md says what takes their place",
            ", ".join(without_effect),
        )


def without_unread_keys(configuration: Configuration, where: str) -> Configuration:
    """Return the settings of a file without the keys that nothing reads; the log names these."""
    configuration = _without_service_keys(configuration)
    unread = [key for key in sorted(configuration.to_dict()) if not _is_read(key) and (rule_for(key) or _refusal(key))]
    if not unread:
        return configuration
    _log.warning("options in %s that nothing reads: %s", where, ", ".join(unread))
    kept = Configuration(configuration)
    for key in unread:
        kept.remove_config(key)
    return kept


def _without_service_keys(configuration: Configuration) -> Configuration:
    """Return the settings without those of the standing service, which reads the same file."""
    kept = Configuration(configuration)
    for key in service_keys():
        kept.remove_config(key)
    return kept


def _is_read(key: str) -> bool:
    return key in _known_keys() or key.startswith(("spark.", "$internal.", rocksdb_options.PREFIX, REPORTERS))


def _refusal(key: str) -> str | None:
    """Return why a key is refused; None if it is read, accepted without effect, or the program's own."""
    if _is_read(key):
        return None
    rule = rule_for(key)
    if rule is None or rule.is_family:
        family = rule.name if rule is not None else ""
        known = [each for each in _known_keys() if each.startswith(family)]
        near = difflib.get_close_matches(key, known, 1, 0.8 if key.startswith(_NAME_SPACES) else 0.9)
        if near:
            return f"did you mean {near[0]!r}?"
    if rule is not None:
        return None if rule.accepted else rule.why
    return "docs/options.md lists the options" if key.startswith(_NAME_SPACES) else None


@cache
def _known_keys() -> dict[str, None]:
    """Return every key that is read, sorted, so that of two keys as near as each other the same one is suggested."""
    general = {key for option in all_options() for key in (option.key, *option.old_keys)}
    return dict.fromkeys(sorted(general | {option.key for option in rocksdb_options.rocksdb_options()}))
