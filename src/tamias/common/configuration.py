"""`Configuration`: keys and values as a program, a file or the command line gave them."""

from tamias.config.configuration import Configuration

__all__ = ["Configuration"]
