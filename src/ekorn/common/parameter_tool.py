"""`ParameterTool`: the parameters of a program, from the command line, a file or a dict."""

from ekorn.config.parameter_tool import ParameterTool

__all__ = ["ParameterTool"]
