"""`ConfigOption` and the builder of options."""

from tamias.config.option import ConfigOption, ConfigOptions

__all__ = ["ConfigOption", "ConfigOptions"]
