"""`ConfigOption` and the builder of options."""

from ekorn.config.option import ConfigOption, ConfigOptions

__all__ = ["ConfigOption", "ConfigOptions"]
