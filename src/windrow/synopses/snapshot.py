"""Snapshots: named arrays and a JSON-able dict in one Arrow IPC stream; never pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

META = b"windrow"


def pack(meta: Mapping[str, Any], arrays: Mapping[str, Any]) -> bytes:
    """One IPC stream: a record batch of one row, a list column per array, the dict in the schema's metadata."""
    columns = []
    for array in arrays.values():
        values = array if isinstance(array, pa.Array) else pa.array(np.ascontiguousarray(array).reshape(-1))
        offsets = pa.array([0, len(values)], pa.int64())
        columns.append(pa.LargeListArray.from_arrays(offsets, values))
    batch = pa.record_batch(columns, names=list(arrays))
    schema = batch.schema.with_metadata({META: json.dumps(dict(meta)).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        if columns:
            writer.write_batch(batch.replace_schema_metadata(schema.metadata))
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, pa.Array]]:
    """The dict and the arrays of `pack`, as Arrow arrays."""
    with pa.ipc.open_stream(data) as reader:
        meta = json.loads(reader.schema.metadata[META])
        table = reader.read_all()
    arrays = {name: table.column(name).chunk(0).flatten() for name in table.column_names}
    return meta, arrays


def within(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays whose name starts with `prefix.`, without it."""
    start = prefix + "."
    return {name[len(start) :]: array for name, array in arrays.items() if name.startswith(start)}


def prefixed(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `within`."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def numpy_of(array: Any) -> Any:
    """A writable NumPy copy."""
    return np.array(array.to_numpy(zero_copy_only=False)) if isinstance(array, pa.Array) else np.array(array)
