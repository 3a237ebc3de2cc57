"""Authenticated connections between processes: links, listeners, encryption. They know nothing of slots or jobs."""
