"""DataSet programs as jobs: their graph, what is seen of them while they run, and what is asked of them."""
