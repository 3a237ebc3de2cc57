"""Retry predicates of asynchronous requests."""

from __future__ import annotations

from ekorn.functions.async_functions import empty_result_predicate, exception_type_predicate, has_exception_predicate

__all__ = ["empty_result_predicate", "exception_type_predicate", "has_exception_predicate"]
