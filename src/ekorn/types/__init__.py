"""Types: how records and state are declared, checked, written as text and serialized. Every process uses this room.

| module | |
|---|---|
| `factory` | `Types`, by which programs declare types |
| `type_information` | the base class: what a type does |
| `basic_types`, `composite_types`, `pojo`, `avro_schema` | the types |
| `avro_parser` | the parser of Avro schemas |
| `row`, `time`, `time_bounds` | values that programs handle: rows, lengths of time, points in time |
| `record_text`, `java_text` | records, numbers and times as lines of text |
| `serializer` | serializers that programs bring for their own classes |
| `record_classes` | the fields of dataclasses and named tuples |
| `by_value`, `published` | copies that isolate state from the user's objects; public paths for pickles |
"""
