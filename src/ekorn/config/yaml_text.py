"""The text of `config.yaml` and `flink-conf.yaml`, parsed by PyYAML.

Both are YAML. Flat ``key: value`` lines and nested maps may be mixed: ``execution:`` over ``checkpointing:`` over
``interval: 10 s`` is the key ``execution.checkpointing.interval``. A value keeps the text that the user wrote, as in
Flink: ``no``, ``007`` and ``2024-01-01`` stay text, and the option that is read decides what the text means. A key
without a value, or with the value ``~`` or ``null``, is not set.
"""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from ekorn.config.configuration import Configuration
from ekorn.config.value_text import value_text
from ekorn.errors import ConfigurationError

__all__ = ["parse_configuration"]

_YAML = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset(_YAML + kind for kind in ("str", "null", "bool", "int", "float", "timestamp", "value"))


def parse_configuration(text: str, *, where: str = "configuration") -> Configuration:
    """Read the configuration in a text; ``where`` names the text in errors.

    Raises:
        ConfigurationError: A line cannot be read, or sets a key that an earlier line sets.
    """
    try:
        root = yaml.compose(text, Loader=_Loader)
        return _configuration(root)
    except yaml.MarkedYAMLError as error:
        number, why = _explained(error, text)
        lines = text.splitlines()
        content = lines[number].strip() if number < len(lines) else "end of file"
        raise ConfigurationError(f"{where}, line {number + 1}: {why}: {content!r}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigurationError(f"{where}, line {line}: {error.reason}: {chr(error.character)!r}") from None


class _Loader(yaml.SafeLoader):
    """Composes nodes, and refuses aliases: a configuration file has no use for them, and they can be recursive."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise _Refused("aliases are not supported here; repeat the value", mark)
        return super().compose_node(parent, index)


class _Refused(yaml.MarkedYAMLError):
    """Valid YAML that is not a configuration."""

    def __init__(self, why: str, mark: yaml.Mark | None) -> None:
        super().__init__(problem=why, problem_mark=mark)


def _configuration(root: yaml.Node | None) -> Configuration:
    configuration = Configuration()
    line_of: dict[str, int] = {}
    if root is None or root.tag == _YAML + "null":
        return configuration
    if not isinstance(root, yaml.MappingNode):
        raise _Refused("expected 'key: value'", root.start_mark)
    for key, key_node, value in _settings("", root):
        if key in line_of:
            raise _Refused(f"{key!r} is already set, in line {line_of[key]}", key_node.start_mark)
        line_of[key] = key_node.start_mark.line + 1
        text = _text(value)
        if text is not None:
            configuration.set_string(key, text)
    return configuration


def _settings(prefix: str, mapping: yaml.MappingNode) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    """Yield each key below a map with its nested keys joined by dots, the node of the key and the node of the value."""
    for key_node, value in mapping.value:
        if not isinstance(key_node, yaml.ScalarNode) or key_node.tag not in _TEXT_TAGS or not key_node.value:
            raise _Refused("a key must be text", key_node.start_mark)
        key = f"{prefix}{key_node.value}"
        if isinstance(value, yaml.MappingNode):
            yield from _settings(f"{key}.", value)
        else:
            yield key, key_node, value


def _text(node: yaml.Node) -> str | None:
    """Return a value as configuration text, or None if it is null."""
    if isinstance(node, yaml.SequenceNode):
        return value_text([_item(item) for item in node.value])
    return None if node.tag == _YAML + "null" else _scalar(node)


def _item(node: yaml.Node) -> str:
    """Return an entry of a list as text. An entry that is a map becomes ``key:value,key:value``."""
    if isinstance(node, yaml.MappingNode):
        return value_text({_scalar(key): _scalar(value) for key, value in node.value})
    return _scalar(node)


def _scalar(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode) or node.tag not in _TEXT_TAGS:
        raise _Refused("expected text; this form of YAML is not supported here", node.start_mark)
    text: str = node.value
    return text


def _explained(error: yaml.MarkedYAMLError, text: str) -> tuple[int, str]:
    """Return the line of a YAML error, from 0 on, and the reason in the words of a configuration file."""
    mark = error.problem_mark or error.context_mark
    why = error.problem or "this is not YAML"
    assert mark is not None  # every error of the scanner, the parser and the composer has one
    if error.context == "while scanning a simple key" and error.context_mark is not None:
        return error.context_mark.line, "expected 'key: value'"
    if error.context == "while scanning a quoted scalar" and error.context_mark is not None:
        return error.context_mark.line, "a quote is not closed"
    if "'\\t'" in why:
        return mark.line, "indent with spaces, not tabs"
    if "cannot start any token" in why:
        return mark.line, f"{why}; put the value in quotes"
    if why == "mapping values are not allowed here":
        before = text.splitlines()[mark.line][: mark.column]
        if ": " in before:
            return mark.line, "a value that contains ': ' needs quotes"
        return mark.line, "indented below a key that already has a value"
    return mark.line, why
