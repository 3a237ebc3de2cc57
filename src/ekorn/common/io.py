"""Input formats: input that `env.create_input` reads to its end."""

from ekorn.connectors.files.stream_formats import InputFormat

__all__ = ["InputFormat"]
