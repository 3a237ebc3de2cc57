"""Runs the subtasks of a slot continuously: the mailbox, its scheduler and the connections that carry blobs."""
