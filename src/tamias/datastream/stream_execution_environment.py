"""`StreamExecutionEnvironment`: where a program starts, sets what it runs with, and runs."""

from tamias.program.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["StreamExecutionEnvironment"]
