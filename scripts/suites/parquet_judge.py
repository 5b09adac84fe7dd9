"""Compares a job over Parquet files with its input: schema, key-values, codecs, every value, bounds, and what two other readers say."""

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from job import REMOVAL
from text_judge import files_of, partition_lost


def flat(array):
    """Yields nulls, lengths and leaves of a column; numbers with a point as their bits, so that NaN equals itself."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        yield from flat(array.storage)
    elif pa.types.is_dictionary(array.type):
        yield from flat(array.dictionary_decode())
    elif pa.types.is_struct(array.type):
        yield array.is_valid()
        for child in array.flatten():
            yield from flat(child)
    elif pa.types.is_map(array.type):
        yield from flat(array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field]))))
    elif pa.types.is_nested(array.type):
        yield pc.list_value_length(array)
        yield from flat(array.flatten())
    elif pa.types.is_floating(array.type):
        yield array.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[array.type.bit_width])
    else:
        yield array


def different_column(expected, found):
    """The name of the first column that differs, if one does."""
    for name, one, other in zip(expected.column_names, expected.columns, found.columns):
        if one.type != other.type:
            return f"column {name!r} is of {other.type} and was of {one.type}"
        left, right = list(flat(one)), list(flat(other))
        if len(left) != len(right) or not all(a.equals(b) for a, b in zip(left, right)):
            return f"values of column {name!r}"
    return None


def different_footer(before, after, further):
    """Says what of the schema, the key-values or the codecs is not as it was; `further` columns are new."""
    if before.metadata.metadata != after.metadata.metadata and (before.metadata.metadata or after.metadata.metadata):
        old, new = before.metadata.metadata or {}, dict(after.metadata.metadata or {})
        if further:  # The schema that Arrow keeps for itself has the new columns too.
            old, new = ({key: value for key, value in pairs.items() if key != b"ARROW:schema"} for pairs in (old, new))
        if old != new:
            return f"key-values {sorted(set(old) ^ set(new)) or 'of the same names'}"
    leaves = len(before.schema)
    if len(after.schema) != leaves + further:
        return f"{len(after.schema)} leaves of {leaves}"
    for leaf in range(leaves):
        one, other = before.schema.column(leaf), after.schema.column(leaf)
        if not one.equals(other) or one.path != other.path:
            return f"leaf {one} is now {other}"
    if not before.schema_arrow.equals(after.schema_arrow, check_metadata=True) and not further:
        return "the Arrow schema"
    if before.metadata.num_row_groups and after.metadata.num_row_groups:
        old, new = (file.metadata.row_group(0) for file in (before, after))
        for leaf in range(leaves):
            if old.column(leaf).compression != new.column(leaf).compression:
                return f"codec of {before.schema.column(leaf).path}: {new.column(leaf).compression}"
    return None


def wrong_bounds(path):
    """The first column whose statistics exclude a value that is there, as pyarrow's own filter sees it."""
    file = pq.ParquetFile(path)
    for name, kind in zip(file.schema_arrow.names[:100], file.schema_arrow.types):
        if pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_dictionary(kind) or "." in name:
            continue
        try:
            column = file.read([name]).column(0)
            for value in column.drop_null().unique()[:2]:
                rows = len(pq.read_table(path, columns=[name], filters=pc.field(name) == value, partitioning=None))
                if rows != (pc.sum(pc.equal(column, value)).as_py() or 0):
                    return f"bounds of {name!r} exclude {value}"
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
            continue  # Such a column has no filter.
    return None


def duck_rows(paths, leave_out=""):
    """The rows of the files as DuckDB reads them, or nothing if it does not read them."""
    names = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    try:
        relation = f"select * {leave_out} from read_parquet([{names}], hive_partitioning=false)"
        described = duckdb.sql(f"describe {relation}").fetchall()
        texts = ", ".join(f"{quoted(row[0])}::varchar" for row in described)
        return [row[:2] for row in described], duckdb.sql(f"select {texts or 1} from ({relation})").fetchall()
    except duckdb.Error:
        return None


def quoted(name):
    """The name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def judge(case, run):
    """Returns what differs between the input and the output, or nothing."""
    try:
        inputs = [pq.ParquetFile(path) for path in files_of(case.path)]
        before = pa.concat_tables([file.read() for file in inputs])
    except (pa.ArrowException, OSError):
        return judge_by_duckdb(case, run)
    for kind, rows in decisions(case, run, before.column(case.text).to_pylist()).items():
        further = 0 if kind == "kept" else len(REMOVAL)
        parts = [pq.ParquetFile(path) for path in run.parts(kind)]
        if not parts:
            if rows or kind == "kept":
                return f"{kind} has no part"
            continue
        after = pa.concat_tables([part.read() for part in parts])
        added = after.column_names[len(after.column_names) - further :]
        after = after.select(range(len(after.column_names) - further))
        names = after.column_names
        if [name.removesuffix("_dedup") for name in added] != REMOVAL[:further]:
            return f"{kind} has the further columns {added}"
        if names != before.column_names or len(after) != len(rows):
            return f"{kind} has {len(after)} rows of {len(rows)}, columns {names}"
        fault = different_footer(inputs[0], parts[0], further)
        fault = fault or different_column(chosen(before, rows), after)
        fault = fault or wrong_bounds(run.parts(kind)[0])
        fault = fault or differs_in_duckdb(case, run, kind, rows, added)
        if fault:
            return f"{kind}: {fault}"
    return partition_lost(case, run)


def decisions(case, run, texts):
    """The rows that must be kept, the first of each text and all without text, and the rows that must be removed."""
    rejected = rejected_rows(case, run)
    first, rows = set(), {"kept": [], "removed": []}
    for row, text in enumerate(texts):
        if row not in rejected:
            rows["removed" if text in first else "kept"].append(row)
            if text.strip():
                first.add(text)
    return rows


def judge_by_duckdb(case, run):
    """As `judge`, where pyarrow cannot read the input: DuckDB alone compares."""
    source = duck_rows(files_of(case.path))
    if source is None:
        return "neither pyarrow nor DuckDB reads the input"
    place = [name for name, _ in source[0]].index(case.text)
    for kind, rows in decisions(case, run, [row[place] for row in source[1]]).items():
        fault = differs_in_duckdb(case, run, kind, rows, REMOVAL if kind == "removed" else [])
        if fault:
            return f"{kind}: {fault}"
    return None


def chosen(table, rows):
    """The rows of the table; `take` does not know views of strings."""
    return pa.concat_tables([table.slice(row, 1) for row in rows]) if rows else table.slice(0, 0)


def rejected_rows(case, run):
    """The rows of the input that were rejected, counted over all of its files."""
    rows, start = set(), 0
    for path in files_of(case.path):
        rows |= {start + reject["offset"] for reject in run.rejects if reject["uri"].endswith(path)}
        start += pq.ParquetFile(path).metadata.num_rows
    return rows


def differs_in_duckdb(case, run, kind, rows, added):
    """Says whether DuckDB reads other rows in the output than in the input."""
    source = duck_rows(files_of(case.path))
    if source is None:
        return None
    result = duck_rows(run.parts(kind), f"exclude ({', '.join(added)})" if added else "")
    if result is None:
        return "DuckDB reads the input and not the output"
    if source[0] != result[0]:
        return "DuckDB sees other types"
    if [source[1][row] for row in rows] != result[1]:
        return "DuckDB sees other values"
    return None
