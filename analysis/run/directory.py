"""The files of a run directory, read as far as they are there and intact."""

import errno
import json
import os
import stat
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

JsonObject = dict[str, Any]

# No file of a run nests its data this deep or counts this far; what does is damaged.
_DEEPEST = 30
_LARGEST_INTEGER = 2**63


class RunDirectoryError(Exception):
    """The path is no run directory; the message says what is missing."""


@dataclass(frozen=True)
class Event:
    """One line of events.jsonl."""

    t_s: float
    kind: str
    node: str
    data: JsonObject


@dataclass(frozen=True)
class RunDirectory:
    """What a run left behind.

    Attributes
    ----------
    run : dict
        Table `run` of run.toml.
    parameters : dict
        Table `scenario` of run.toml, flattened ("satcom.delay_s").
    plan : dict
        plan.json: host, users, captures.
    events : list of Event
        In order of the file.
    events_known : bool
        events.jsonl was there and could be read.
    samples : list of dict
        Counters of ports and queues.
    environment : dict
    host : list of dict
        Load of the worker's machine, once a second; with run time, where that is known.
    counters : dict
        Counters of the kernel before and after the traffic; empty in runs that have none.
    traffic : dict
        iperf3's JSON, by file stem ("ship1-client").
    remarks : list of str
        Files that are missing or damaged.
    """

    path: Path
    run: JsonObject
    parameters: JsonObject
    plan: JsonObject
    events: list[Event]
    events_known: bool
    samples: list[JsonObject]
    environment: JsonObject
    host: list[JsonObject]
    traffic: dict[str, JsonObject]
    remarks: list[str] = field(default_factory=list)
    counters: JsonObject = field(default_factory=dict)

    def of_kind(self, *kinds: str) -> list[Event]:
        """Events of these kinds, in order."""
        return [event for event in self.events if event.kind in kinds]


def read_run(path: Path) -> RunDirectory:
    """Read a run directory.

    Parameters
    ----------
    path : Path
        A directory with at least run.toml or events.jsonl.

    Returns
    -------
    RunDirectory

    Raises
    ------
    RunDirectoryError
        If the path is no directory, or holds neither of the two files.
    """
    if not os.path.isdir(path):  # noqa: PTH112 - Path.is_dir fails on a name that is too long
        raise RunDirectoryError(f"{path}: expected a run directory, but there is none")
    if not (path / "run.toml").exists() and not (path / "events.jsonl").exists():
        raise RunDirectoryError(
            f"{path}: expected a run directory with run.toml or events.jsonl, found neither"
        )
    remarks: list[str] = []
    described: JsonObject = {}
    try:
        described = _plain(tomllib.loads(_text(path / "run.toml", errors="strict")))
    except FileNotFoundError:
        remarks.append("run.toml is missing")
    except OSError as error:
        remarks.append(f"run.toml cannot be read: {error.strerror}")
    except (ValueError, RecursionError) as error:
        remarks.append(f"run.toml cannot be read: {error}")
    lines = _lines(path / "events.jsonl", remarks)
    events_known = bool(lines) or _is_empty(path / "events.jsonl")
    samples = _samples(path, remarks)
    zero_s = _zero(lines)
    events = [_event(line, zero_s) for line in lines]
    samples = [{**row, "t_s": _run_time(row, zero_s)} for row in samples]
    simulated = mapping(described.get("run")).get("backend") == "sim"
    loads = _lines(path / "host.jsonl", remarks, optional=simulated)  # no machine could be too slow
    host = [{**row, "t_s": _run_time(row, zero_s)} for row in loads]
    traffic = {
        file.stem: _object(file, remarks) for file in sorted((path / "traffic").glob("*.json"))
    }
    return RunDirectory(
        path=path,
        run=mapping(described.get("run")),
        parameters=_flat(mapping(described.get("scenario"))),
        plan=_object(path / "plan.json", remarks),
        events=events,
        events_known=events_known,
        samples=samples,
        environment=_object(path / "environment.json", remarks),
        host=host,
        traffic=traffic,
        remarks=remarks,
        counters=_object(path / "counters.json", remarks, optional=True),
    )


def _flat(table: JsonObject, prefix: str = "") -> JsonObject:
    """Nested tables as one, with dotted keys; values that JSON has no type for become text."""
    found: JsonObject = {}
    for key, value in table.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            plain = isinstance(value, bool | int | float | str)
            found[f"{prefix}{key}"] = value if plain else str(value)
    return found


def check_regular(file: Path) -> None:
    """Refuse what is no regular file: a named pipe would be waited for, a device never ends.

    Raises
    ------
    OSError
        It is another kind of file, or there is none.
    """
    if not stat.S_ISREG(file.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(file))


def _text(file: Path, errors: str = "replace") -> str:
    check_regular(file)
    return file.read_text(encoding="utf-8", errors=errors)


def _plain(value: Any, depth: int = 0) -> Any:
    """A parsed value without what could not be written again, or would exhaust the stack."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="replace").decode()
    if isinstance(value, int):
        return value if abs(value) < _LARGEST_INTEGER else None
    if isinstance(value, dict | list) and depth > _DEEPEST:
        return None
    if isinstance(value, dict):
        return {_plain(key): _plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, depth + 1) for each in value]
    return value


def _is_empty(file: Path) -> bool:
    return file.is_file() and file.stat().st_size == 0


def _object(file: Path, remarks: list[str], *, optional: bool = False) -> JsonObject:
    try:
        found = _plain(json.loads(_text(file)))
    except FileNotFoundError:
        if not optional:
            remarks.append(f"{file.name} is missing")
        return {}
    except OSError as error:
        remarks.append(f"{file.name} cannot be read: {error.strerror}")
        return {}
    except (ValueError, RecursionError) as error:
        remarks.append(f"{file.name} is no JSON: {error}")
        return {}
    if not isinstance(found, dict):
        remarks.append(f"{file.name}: expected a JSON object, found {type(found).__name__}")
        return {}
    return found


def _lines(file: Path, remarks: list[str], *, optional: bool = False) -> list[JsonObject]:
    """Objects of a JSON-lines file; a last line that was cut off is normal after a crash."""
    try:
        text = _text(file)
    except FileNotFoundError:
        if not optional:
            remarks.append(f"{file.name} is missing")
        return []
    except OSError as error:
        remarks.append(f"{file.name} cannot be read: {error.strerror}")
        return []
    found: list[JsonObject] = []
    bad = 0
    for line in text.splitlines():
        if not line.strip():
            continue
        try:
            value = _plain(json.loads(line))
        except (ValueError, RecursionError):
            bad += 1
            continue
        if isinstance(value, dict):
            found.append(value)
        else:
            bad += 1
    if bad:
        remarks.append(f"{file.name}: {bad} lines are no JSON objects and were left out")
    return found


def read_lines(file: Path) -> list[JsonObject]:
    """Objects of a JSON-lines file; nothing if it is missing."""
    return _lines(file, [], optional=True)


def number(value: Any) -> float | None:
    """A JSON value as a number, if it is a finite one of sane size."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Far beyond any rate in bit/s, byte count or time in seconds; NaN fails the comparison.
    return float(value) if -1e18 < value < 1e18 else None


def count(value: Any) -> int | None:
    """A JSON value as a whole number, if it is one."""
    found = number(value)
    return int(found) if found is not None and found == int(found) else None


def mapping(value: Any) -> JsonObject:
    """A JSON value as an object; an empty one if it is something else."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """A JSON value as a list; an empty one if it is something else."""
    return value if isinstance(value, list) else []


def _zero(lines: list[JsonObject]) -> float | None:
    """The monotonic clock at run time 0, from the last event that carries both."""
    for line in reversed(lines):
        t_s, t_mono_s = number(line.get("t_s")), number(line.get("t_mono_s"))
        if t_s is not None and t_mono_s is not None:
            return t_mono_s - t_s
    return None


def _run_time(line: JsonObject, zero_s: float | None) -> float | None:
    """Run time of an event or sample; the set-up's have only the monotonic clock."""
    t_s, t_mono_s = number(line.get("t_s")), number(line.get("t_mono_s"))
    if t_s is None and t_mono_s is not None and zero_s is not None:
        return t_mono_s - zero_s
    return t_s


def _event(line: JsonObject, zero_s: float | None) -> Event:
    t_s = _run_time(line, zero_s)
    # A run that failed in its set-up has no run time.
    return Event(
        t_s if t_s is not None else 0.0,
        str(line.get("kind", "")),
        str(line.get("node") or ""),
        mapping(line.get("data")),
    )


def _samples(path: Path, remarks: list[str]) -> list[JsonObject]:
    """The controller's counters: as it wrote them, else as columns."""
    text, columns = path / "samples.jsonl", path / "samples.parquet"
    rows = _lines(text, remarks, optional=True)
    if not rows and columns.exists():
        return _parquet(columns, remarks)
    if not text.exists():
        remarks.append("samples.jsonl is missing: no rates of the switch queues")
    elif _is_empty(text):
        remarks.append("samples.jsonl is empty: no rates of the switch queues")
    return rows


def _parquet(file: Path, remarks: list[str]) -> list[JsonObject]:
    import pandas

    try:
        check_regular(file)
        with file.open("rb") as stream:
            table = pandas.read_parquet(stream)
    except Exception as error:  # noqa: BLE001 - damage has many names there
        remarks.append(f"{file.name} cannot be read: {error}")
        return []
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]
