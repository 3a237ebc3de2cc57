"""Queues of RabbitMQ: a source whose messages are acknowledged when a checkpoint is complete, and a sink."""
