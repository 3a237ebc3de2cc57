"""Resident tables: data of an iteration that stays in the slots between its supersteps."""
