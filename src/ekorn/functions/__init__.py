"""Functions: what users implement, and what their functions are handed. Every process uses this room.

| modules | |
|---|---|
| `record_functions`, `process_functions`, `async_functions`, `rolling_aggregates`, `selection` | over records |
| `data_set_functions`, `data_set_aggregates` | over partitions, groups and pairs of a data set |
| `window_functions`, `windows`, `*_assigners`, `*_triggers`, `evictors` | windows |
| `watermark_strategy`, `timestamp_extractors`, `timer_service` | time |
| `state_descriptors`, `state_handles`, `state_stores`, `state_ttl`, `checkpointed` | state |
| `source_contract`, `sink_contract` | sources and sinks |
| `runtime_context`, `accumulators`, `output_tag`, `record_fields` | what functions use while they run |
| `job_status`, `job_execution_result` | what a program learns of its job |
"""
