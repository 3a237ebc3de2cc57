"""Flink's stateful stream processing, in Python, on Apache Spark."""

import sys as _sys

from ekorn.missing_names import MissingNames as _MissingNames

__version__ = "0.1.0"

_sys.meta_path.append(_MissingNames())
