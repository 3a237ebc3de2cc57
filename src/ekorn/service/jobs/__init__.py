"""The jobs of a service: submitted, stored, started in drivers, watched, changed."""
