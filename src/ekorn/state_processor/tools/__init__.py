"""Whole operations on savepoints for the command line: inspect, compare, export, edit."""
