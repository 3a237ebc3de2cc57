"""The REST API of the service: its own answers, and requests that it forwards to drivers."""
