"""`ParameterTool`: a program's parameters, from the command line, a file or a dict."""

from tamias.config.parameter_tool import ParameterTool

__all__ = ["ParameterTool"]
