"""`Configuration`: keys and values as set by a program, a file or the command line."""

from ekorn.config.configuration import Configuration

__all__ = ["Configuration"]
