"""Streams of columns: batches of rows in Arrow's layout, and what operators compute on whole batches.

`pyarrow` and `numpy` are loaded by the modules that compute. A program without columns loads neither of them.
"""
