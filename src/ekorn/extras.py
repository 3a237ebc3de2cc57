"""Packages that are not installed together with Ekorn: which extra brings each, and the one error for a missing one.

A call of the program that needs a package checks for it with `need`, in the driver and before anything runs. Code that
uses a package gets it from `load`, in whatever process it runs. Both raise the same error, with the same command.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import NamedTuple

from ekorn.errors import ConfigurationError

__all__ = ["EXTRAS", "Extra", "install_command", "is_installed", "load", "missing", "need", "set_host_of_slot"]


class Extra(NamedTuple):
    """An extra of the distribution, by the package that most of its users lack."""

    module: str  # the name that is imported
    package: str  # the name that is installed
    in_slots: bool = True  # whether slots need the package too


EXTRAS = {
    "avro": Extra("fastavro", "fastavro"),
    "columns": Extra("pyarrow", "pyarrow"),
    "delta": Extra("deltalake", "deltalake"),
    "fsspec": Extra("fsspec", "fsspec"),
    "iceberg": Extra("pyiceberg", "pyiceberg"),
    "jdbc": Extra("psycopg", "psycopg"),
    "kafka": Extra("confluent_kafka", "confluent-kafka"),
    "orc": Extra("pyarrow", "pyarrow"),
    "pandas": Extra("pandas", "pandas", in_slots=False),
    "parquet": Extra("pyarrow", "pyarrow"),
    "polars": Extra("polars", "polars"),
    "pyarrow": Extra("pyarrow", "pyarrow"),
    "rabbitmq": Extra("pika", "pika"),
    "rocksdb": Extra("rocksdict", "rocksdict"),
    "s3": Extra("boto3", "boto3"),
    "spark": Extra("pyspark", "pyspark", in_slots=False),
    "tls": Extra("cryptography", "cryptography", in_slots=False),
    "zstd": Extra("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd", "backports.zstd"),
}

_INSTALL = "pip install"
_host_of_slot: str | None = None


def set_host_of_slot(host: str | None) -> None:
    """Set the host that errors name, in the process of a slot: packages may be missing on it alone. None: no slot."""
    global _host_of_slot  # noqa: PLW0603 - a fact of the process, which its entry point states
    _host_of_slot = host


def install_command(extra: str) -> str:
    """Return the command that installs an extra, quoted for POSIX shells, PowerShell and cmd.exe alike."""
    assert extra in EXTRAS, extra
    return f'{_INSTALL} "ekorn[{extra}]"'


def need(extra: str, what: str) -> None:
    """Check that the package of an extra is installed, without importing it.

    Args:
        extra: The extra.
        what: What needs the package: the subject of the message.

    Raises:
        ConfigurationError: It is not.
    """
    if not is_installed(extra):
        raise missing(extra, what)


def is_installed(extra: str) -> bool:
    """Return whether the package of an extra is installed."""
    try:
        return importlib.util.find_spec(EXTRAS[extra].module) is not None
    except ModuleNotFoundError:  # the package that would hold the module
        return False


def load(extra: str, what: str, module: str | None = None) -> ModuleType:
    """Return the module of an extra's package, or another module that comes with the extra.

    Args:
        extra: The extra.
        what: What needs the package: the subject of the message.
        module: The module; by default that of the extra.

    Raises:
        ConfigurationError: It cannot be imported.
    """
    try:
        return importlib.import_module(module or EXTRAS[extra].module)
    except ImportError as error:
        raise missing(extra, what, error) from None


def missing(extra: str, what: str, error: ImportError | None = None) -> ConfigurationError:
    """Return the error for a package that is missing, or that cannot be imported.

    Args:
        extra: The extra that has the package.
        what: What needs the package: the subject of the message.
        error: The error of the import.
    """
    wanted = EXTRAS[extra]
    package, why = wanted.package, "is not installed"
    if error is not None and error.name is not None:
        root = error.name.partition(".")[0]
        package = root if root != wanted.module.partition(".")[0] else package
    if error is not None and not isinstance(error, ModuleNotFoundError):
        why = f"cannot be imported ({error})"
    if _host_of_slot is not None:
        where = f" on {_host_of_slot}, where a slot runs with {sys.executable}"
        return ConfigurationError(
            f"{what} needs the package {package}, which {why}{where}: run {install_command(extra)} there"
        )
    also = ", also on the machines where slots run" if wanted.in_slots else ""
    return ConfigurationError(f"{what} needs the package {package}, which {why}: {install_command(extra)}{also}")
