"""Functions: what users implement, and what their functions are handed. Every process uses this room.

| modules | |
|---|---|
| `record_functions`, `process_functions`, `async_functions`, `rolling_aggregates` | over records |
| `data_sets/` | over partitions, groups and pairs of a data set |
| `windows/` | windows: assigners, triggers, evictors, functions |
| `watermark_strategy`, `timer_service` | time |
| `state/` | state: descriptors, handles, time to live, checkpointed functions |
| `source_contract`, `sink_contract` | sources and sinks |
| `runtime_context`, `output_tag`, `dead_letters`, `record_fields`, `latest_values` | what functions use as they run |
| `results/` | accumulators, and what a program learns of its job |
"""
