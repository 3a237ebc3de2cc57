"""Lists every option that is declared in this package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ekorn.config.option import ConfigOption
from ekorn.config.options import (
    checkpoints,
    deployment,
    elasticity,
    epochs,
    memory,
    metrics,
    pipeline,
    queryable_state,
    recovery,
    service,
    web,
)

MODULES = (pipeline, epochs, checkpoints, recovery, memory, deployment, elasticity, queryable_state, web, metrics)

SERVICE_MODULES = (service,)


def service_keys() -> frozenset[str]:
    """Return the keys of the standing service, current and old."""
    return frozenset(
        key
        for module in SERVICE_MODULES
        for value in vars(module).values()
        if isinstance(value, ConfigOption)
        for key in (value.key, *value.old_keys)
    )


def all_options() -> Iterator[ConfigOption[Any]]:
    """Return every option, in the order of declaration. RocksDB's options are in `ekorn.config.options.rocksdb`."""
    return (value for module in MODULES for value in vars(module).values() if isinstance(value, ConfigOption))
