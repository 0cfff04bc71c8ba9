"""Writes the Parquet files of this folder and, beside each, its rows as pyarrow reads them: python golden.py.

A member of a struct that is null is left out of its JSON, as the package says; all else is the value that pyarrow gives.
"""
import datetime as dt
import decimal
import json
import math
import re
import struct

import pyarrow as pa
import pyarrow.parquet as pq

message = pa.struct([("role", pa.string()), ("content", pa.string()), ("tool_calls", pa.list_(pa.struct([
    ("id", pa.string()), ("arguments", pa.struct([("city", pa.string()), ("days", pa.int64())]))])))])

rows = [
    {"id": 1, "messages": [{"role": "user", "content": "q\n\"1\" \\ \x01 é 你"}, {"role": "assistant", "content": "a"}], "tags": ["x", None, "y"], "grid": [[1, 2], [], None, [None, 3]], "score": 0.1},
    {"id": 2, "messages": [{"role": "assistant", "content": None, "tool_calls": [{"id": "c", "arguments": {"city": "Bern"}}, {"id": None, "arguments": None}]}], "tags": [], "grid": [], "score": -1e300},
    {"id": None, "messages": None, "tags": None, "grid": None, "score": None},
    {"id": 4, "messages": [], "tags": [None], "grid": [[]], "score": math.nan},
    {"id": 5, "messages": [None, {"role": "user", "content": ""}], "tags": ["x", "x"], "grid": [[1], [2, None, 4]], "score": 5.0},
]
nested = pa.schema([("id", pa.int64()), ("messages", pa.list_(message)), ("tags", pa.list_(pa.string())), ("grid", pa.list_(pa.list_(pa.int32()))), ("score", pa.float64())])

utc = dt.timezone.utc
scalars = pa.table({
    "flag": pa.array([True, None, False]),
    "i8": pa.array([-128, None, 127], pa.int8()), "u8": pa.array([255, 0, None], pa.uint8()), "u32": pa.array([2**32 - 1, 0, None], pa.uint32()),
    "u64": pa.array([2**64 - 1, 0, None], pa.uint64()), "i64": pa.array([-2**63, 2**63 - 1, None], pa.int64()),
    "f32": pa.array([0.1, math.inf, None], pa.float32()),
    "money": pa.array([decimal.Decimal("-0.05"), decimal.Decimal("12345678901234567.89"), None], pa.decimal128(20, 2)),
    "small": pa.array([decimal.Decimal("1.5"), decimal.Decimal("-99.9"), None], pa.decimal128(3, 1)),
    "day": pa.array([dt.date(1969, 12, 31), dt.date(2026, 2, 28), None]),
    "ms": pa.array([dt.datetime(2026, 1, 2, 3, 4, 5, 678000, utc), None, dt.datetime(1960, 1, 1, tzinfo=utc)], pa.timestamp("ms", "UTC")),
    "local": pa.array([dt.datetime(2026, 1, 2, 3, 4, 5, 678901), None, dt.datetime(1960, 1, 1)], pa.timestamp("us")),
    "hour": pa.array([dt.time(3, 4, 5, 6), None, dt.time(0, 0)], pa.time64("us")),
    "large": pa.array(["a", None, ""], pa.large_string()), "word": pa.array(["b", "b", None]).dictionary_encode(),
    "bytes": pa.array([b"\x00\xff", None, b"abc"], pa.binary()), "fixed": pa.array([b"ab", b"cd", None], pa.binary(2)),
    "map": pa.array([[("k", 1), ("l", None)], [], None], pa.map_(pa.string(), pa.int32())),
    "numbered": pa.array([[(1, "one")], [], None], pa.map_(pa.int32(), pa.string())),
    "empty": pa.array([None, None, None], pa.null()),
    "box": pa.array([{"a": {"b": [1]}, "c": None}, {"a": None, "c": "x"}, None], pa.struct([("a", pa.struct([("b", pa.list_(pa.int8()))])), ("c", pa.string())])),
})


def shortest(v):
    """The fewest digits that give the float of 32 bits back."""
    return next(float(f"{v:.{n}g}") for n in range(1, 18) if struct.pack("f", float(f"{v:.{n}g}")) == struct.pack("f", v))


def plain(v, kind):
    if v is None:
        return None
    if pa.types.is_struct(kind):
        return {kind.field(i).name: plain(v[kind.field(i).name], kind.field(i).type) for i in range(kind.num_fields) if v[kind.field(i).name] is not None}
    if pa.types.is_map(kind):
        return {str(k): plain(x, kind.item_type) for k, x in v}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [plain(x, kind.value_type) for x in v]
    if pa.types.is_dictionary(kind):
        return plain(v, kind.value_type)
    if isinstance(v, bytes):
        return {"binary": len(v)}
    if isinstance(v, decimal.Decimal):
        return {"$decimal": str(v)}
    if isinstance(v, float) and not math.isfinite(v):
        return {"nan": "NaN", "inf": "+Inf"}[str(v)]
    if pa.types.is_float32(kind):
        return shortest(v)
    if isinstance(v, dt.datetime):
        return v.isoformat().replace("+00:00", "Z").replace("678000", "678")
    if isinstance(v, (dt.date, dt.time)):
        return v.isoformat()
    return v


def write(name, table, **how):
    pq.write_table(table, name + ".parquet", **how)
    back = pq.read_table(name + ".parquet")
    with open(name + ".jsonl", "w") as f:
        for row in back.to_pylist():
            text = json.dumps({field.name: plain(row[field.name], field.type) for field in back.schema}, ensure_ascii=False)
            f.write(re.sub(r'{"\$decimal": "(.*?)"}', r"\1", text) + "\n")


if __name__ == "__main__":
    table = pa.Table.from_pylist(rows, nested)
    write("plain", table, compression="none", use_dictionary=False)
    write("snappy", table, compression="snappy", row_group_size=2)
    write("zstd-v2", pa.concat_tables([table] * 20), compression="zstd", data_page_version="2.0", row_group_size=7, data_page_size=64)
    write("gzip", table, compression="gzip", version="1.0")
    write("brotli", table, compression="brotli")
    write("checksums", table, write_page_checksum=True)
    write("old-lists", table, use_compliant_nested_type=False, use_deprecated_int96_timestamps=True)
    write("scalars", scalars)
    write("int96", scalars.select(["local"]), use_deprecated_int96_timestamps=True)
    write("delta", pa.table({"n": list(range(0, 3000, 7)), "s": [f"prefix-{i}" for i in range(0, 3000, 7)]}), use_dictionary=False,
          column_encoding={"n": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY"})
    write("none", table.slice(0, 0))
    pq.write_table(pa.table({"n": [1, 2, 3]}), "refused/lz4.parquet", compression="lz4")
