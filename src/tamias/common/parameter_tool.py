"""`ParameterTool`: the parameters of a program, from the command line, a file or a dict."""

from tamias.config.parameter_tool import ParameterTool

__all__ = ["ParameterTool"]
