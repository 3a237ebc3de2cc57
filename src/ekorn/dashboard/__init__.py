"""The page in the browser: files that hold no data and ask the REST API for it."""
