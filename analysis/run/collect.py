"""Counter samples from the text the controller writes to a column file."""

import json
from pathlib import Path
from typing import Any

from analysis.replacing import replacing
from analysis.run.directory import count, number, read_lines

_COUNTS = ("queue_id", "tx_bytes", "tx_packets", "tx_errors", "rx_bytes", "rx_packets")
_TIMES = ("t_s", "t_mono_s")


def collect(run_directory: str | Path) -> Path | None:
    """Convert samples.jsonl of a run directory to samples.parquet.

    Parameters
    ----------
    run_directory : str or Path
        The text file stays, so that a second call gives the same.

    Returns
    -------
    Path or None
        The written file; ``None`` if there are no samples.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    import pandas

    directory = Path(run_directory)
    rows = read_lines(directory / "samples.jsonl")
    if not rows:
        return None
    table = pandas.DataFrame(
        {
            name: pandas.Series(values, dtype=kind)
            for name in dict.fromkeys(key for row in rows for key in row)
            for values, kind in [_column(name, [row.get(name) for row in rows])]
        }
    )
    target = directory / "samples.parquet"
    # As streams: a path may be no UTF-8, which Arrow cannot open.
    with replacing(target) as fresh, fresh.open("wb") as stream:
        table.to_parquet(stream, index=False)
    return target


def _column(name: str, values: list[Any]) -> tuple[list[Any], str]:
    """Values of one type, and the type; in damaged files a column has values of several."""
    if name in _COUNTS:
        # Nullable integers: a port's line has no queue.
        return [count(value) for value in values], "Int64"
    present = [value for value in values if value is not None]
    if name in _TIMES or all(number(value) is not None for value in present):
        return [number(value) for value in values], "Float64"
    return [
        value if value is None or isinstance(value, str) else json.dumps(value) for value in values
    ], "object"
