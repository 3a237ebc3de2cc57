"""A DataSet program as values: operators, keys, partitionings. Every process uses this folder."""
