"""Counter samples from the text the controller writes to a column file."""

from pathlib import Path


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

    from analysis.rundirectory import read_lines

    directory = Path(run_directory)
    rows = read_lines(directory / "samples.jsonl")
    if not rows:
        return None
    table = pandas.DataFrame.from_records(rows)
    for column in ("queue_id", "tx_bytes", "tx_packets", "tx_errors", "rx_bytes", "rx_packets"):
        if column in table:
            # Nullable integers: a port's line has no queue.
            table[column] = pandas.to_numeric(table[column], errors="coerce").astype("Int64")
    target = directory / "samples.parquet"
    table.to_parquet(target, index=False)
    return target
