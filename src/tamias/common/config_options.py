"""`ConfigOption`: one key with its type, default and meaning, and the builder that makes one."""

from tamias.config.option import ConfigOption, ConfigOptions

__all__ = ["ConfigOption", "ConfigOptions"]
