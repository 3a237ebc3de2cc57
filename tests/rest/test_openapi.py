"""The abbreviated schemas of answers, as schemas of OpenAPI."""

import pytest

from ekorn.rest.openapi import _PLAIN, _schema


@pytest.mark.parametrize(
    ("written", "schema"),
    [
        ("a|b|", {"type": "string", "enum": ["a", "b"]}),
        ("|b|a", {"type": "string", "enum": ["a", "b"]}),
        (["whole"], {"type": "array", "items": {"type": "whole"}}),
        ({"*": "whole"}, {"type": "object", "additionalProperties": {"type": "whole"}}),
        ({"|": ["whole", ["whole"]]}, {"anyOf": [{"type": "whole"}, {"type": "array", "items": {"type": "whole"}}]}),
        ("whole?", {"type": "whole", "nullable": True}),
        ({"?": {"*": "whole"}}, {"type": "object", "additionalProperties": {"type": "whole"}, "nullable": True}),
        ("part", {"type": "object", "properties": {"b": {"type": "whole"}}, "required": ["b"]}),
        ({}, {"type": "object", "properties": {}}),
        ({"a?": "whole"}, {"type": "object", "properties": {"a": {"type": "whole"}}}),
        (
            {"c a d?": "whole", "b": "whole?"},
            {
                "type": "object",
                "properties": {
                    "c": {"type": "whole"},
                    "a": {"type": "whole"},
                    "d": {"type": "whole"},
                    "b": {"type": "whole", "nullable": True},
                },
                "required": ["a", "b", "c"],
            },
        ),
        (
            {"&": "part other", "a": "whole"},
            {
                "type": "object",
                "properties": {"b": {"type": "whole"}, "e": {"type": "whole"}, "a": {"type": "whole"}},
                "required": ["a", "b", "e"],
            },
        ),
    ],
)
def test_an_abbreviated_schema_is_written_out(monkeypatch, written, schema):
    monkeypatch.setattr("ekorn.rest.openapi._PLAIN", {"whole": {"type": "whole"}})
    parts = {"part": {"b": "whole"}, "other": {"e": "whole"}}
    assert _schema(written, parts) == schema


def test_a_plain_schema_is_handed_out_as_a_copy():
    name = next(iter(_PLAIN))
    found = _schema(name, {})
    found["nullable"] = True
    assert "nullable" not in _schema(name, {})
