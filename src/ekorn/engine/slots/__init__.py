"""The driver's side of slot processes: starts them, sends requests, notices when one is gone."""
