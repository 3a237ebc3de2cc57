"""Functions of the DataSet API alone: aggregates, field annotations, iterations."""
