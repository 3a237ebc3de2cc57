"""The REST API of the service: its own answers, and what it passes on to drivers."""
