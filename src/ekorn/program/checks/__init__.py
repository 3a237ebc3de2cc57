"""Checks of a program at its calls: arguments, misspelt names, likely mistakes, pickling."""
