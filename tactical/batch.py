"""Batches: many runs described in one file, made one after the other, gathered in one table.

A batch is scenario × protocol × seed × parameters. What is done is told by the run directories
themselves, so a batch that was stopped goes on where it was, and a seed that is added later costs
one run. Runs of one scenario, seed and set of parameters share a *session*, for which a machine may
be booted once.
"""

from __future__ import annotations

import itertools
import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import scenarios
from scenarios import Experiment, ScenarioError

MOST_RUNS = 100_000
_KEYS = ("scenarios", "protocols", "seeds", "set", "vary")
_LARGEST_FILE_BYTES = 1 << 20


class BatchError(ValueError):
    """A batch file that cannot be used; the message names the file, the key and what is wrong."""


@dataclass(frozen=True)
class Session:
    """Runs that one machine makes in one go: a scenario and a seed, one run for each protocol.

    Attributes
    ----------
    experiment : Experiment
        With the parameters of the batch.
    varied : mapping
        The parameters in which the sessions of the batch differ, by dotted name.
    seed : int
    protocols : tuple of str
    """

    experiment: Experiment
    varied: Mapping[str, Any]
    seed: int
    protocols: tuple[str, ...]

    def __str__(self) -> str:
        settings = [f"{key}={value}" for key, value in self.varied.items()]
        return ", ".join([self.experiment.name, f"seed {self.seed}", *settings])


@dataclass(frozen=True)
class Batch:
    """All sessions of a batch, in the order in which they are made."""

    name: str
    sessions: tuple[Session, ...]

    @property
    def runs(self) -> int:
        """How many runs the batch has."""
        return sum(len(session.protocols) for session in self.sessions)


def load(path: Path) -> Batch:
    """Read a batch file.

    Parameters
    ----------
    path : Path
        TOML with ``scenarios`` (names), and optionally ``protocols`` (default: all), ``seeds``
        (numbers, or text such as ``"0-4"``; default 0), a table ``set`` of parameters for all runs,
        and a table ``vary`` of parameters to lists of values, of which every combination is run.

    Raises
    ------
    BatchError, ScenarioError
        If the file cannot be read or used.
    """
    try:
        if not path.is_file():
            raise BatchError(f"{path}: there is no such file, or it is no regular file")
        if path.stat().st_size > _LARGEST_FILE_BYTES:
            raise BatchError(f"{path}: is larger than {_LARGEST_FILE_BYTES} bytes")
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BatchError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BatchError(f"{path}: expected TOML in UTF-8") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BatchError(f"{path}: not TOML: {error}") from error
    for key in document:
        if key not in _KEYS:
            raise BatchError(f"{path}: unknown key {key!r}; expected {', '.join(_KEYS)}")
    names = _texts(path, document, "scenarios", None)
    protocols = _texts(path, document, "protocols", list(scenarios.PROTOCOLS))
    for protocol in protocols:
        if protocol not in scenarios.PROTOCOLS:
            raise BatchError(
                f"{path}: protocols: {protocol!r}; expected {', '.join(scenarios.PROTOCOLS)}"
            )
    seeds = _seeds(path, document.get("seeds", [0]))
    settings = _table(path, document, "set")
    varied = _varied(path, _table(path, document, "vary"))
    combinations = 1
    for values in varied.values():
        combinations *= len(values)
    if (count := len(names) * len(protocols) * len(seeds) * combinations) > MOST_RUNS:
        raise BatchError(f"{path}: asks for {count} runs; at most {MOST_RUNS} are possible")
    sessions = [
        Session(experiment, chosen, seed, tuple(protocols))
        for name in names
        for chosen in _combinations(varied)
        for experiment in [_experiment(path, name, settings, chosen)]
        for seed in seeds
    ]
    return Batch(path.stem, tuple(sessions))


def finished(runs_dir: Path, session: Session, protocol: str) -> Path | None:
    """The directory of a run of the session that was done; the newest of several."""
    print_ = scenarios.fingerprint(session.experiment)
    pattern = f"*-{protocol}-{session.seed}-{print_}*"
    for run_dir in sorted((runs_dir / session.experiment.name).glob(pattern), reverse=True):
        if last_state(run_dir) == "done":
            return run_dir
    return None


def missing(runs_dir: Path, session: Session) -> tuple[str, ...]:
    """The protocols of a session that have no run that was done."""
    return tuple(p for p in session.protocols if finished(runs_dir, session, p) is None)


def last_state(run_dir: Path) -> str | None:
    """The last state that a run recorded."""
    state = None
    try:
        with (run_dir / "events.jsonl").open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if '"kind": "state"' in line:
                    event = json.loads(line)
                    state = event["data"].get("state")
    except (OSError, ValueError, KeyError):
        return state
    return state


def rows(result: Mapping[str, Any], session: Session, directory: Path) -> list[dict[str, Any]]:
    """A run's figures, one row for each user; a run without users has one row.

    Parameters
    ----------
    result : mapping
        As `analysis.RunResult.to_json` gives it.
    session : Session
        What the run belongs to; its varied parameters become columns.
    directory : Path
        Where the run is.

    Returns
    -------
    list of dict
        Numbers, texts and truth values only. Where run and user have a figure of the same name
        (goodput), it is the user's.
    """
    run = _flat(result)
    identity = {
        **session.varied,
        **{key: run.get(key) for key in ("scenario", "protocol", "state", "reason")},
        "seed": session.seed,
        "directory": str(directory),
    }
    users: Mapping[str, Any] = result.get("users") or {"": {}}
    return [
        {**identity, "user": user or None, **run, **_flat(figures), **identity}
        for user, figures in users.items()
    ]


def write_table(table: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write rows as a Parquet file, replacing an earlier one as a whole.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    import pandas as pd

    frame = pd.DataFrame(list(table))
    for name, column in frame.items():
        kinds = {type(value) for value in column if value is not None}
        if str in kinds and len(kinds) > 1:  # a column has one type: 1 and "one" become texts
            frame[name] = [None if value is None else str(value) for value in column]
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        frame.to_parquet(fresh, index=False)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _flat(document: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in document.items() if v is None or isinstance(v, str | int | float)}


def _experiment(
    path: Path, name: str, settings: Mapping[str, Any], chosen: Mapping[str, Any]
) -> Experiment:
    try:
        return scenarios.load(name, _nested({**settings, **chosen}))
    except ScenarioError as error:
        raise error.at(str(path)) from None


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as tables."""
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        branch = tree
        *parents, leaf = key.split(".")
        for parent in parents:
            branch = branch.setdefault(parent, {})
            if not isinstance(branch, dict):
                raise ScenarioError(key, f"is set below {parent}, which is a value itself", value)
        branch[leaf] = value
    return tree


def _combinations(varied: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*varied.values()):
        yield dict(zip(varied, values, strict=True))


def _varied(path: Path, table: Mapping[str, Any]) -> dict[str, list[Any]]:
    for key, values in table.items():
        if not isinstance(values, list) or not values:
            raise BatchError(f"{path}: vary.{key} must be a list of values, not {values!r}")
        if any(values.count(value) > 1 for value in values):
            raise BatchError(f"{path}: vary.{key} names a value twice: {values!r}")
    return dict(table)


def _table(path: Path, document: Mapping[str, Any], key: str) -> dict[str, Any]:
    table = document.get(key, {})
    if not isinstance(table, dict):
        raise BatchError(f"{path}: {key} must be a table, not {table!r}")
    return _dotted(table)


def _dotted(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Tables as dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _dotted(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _texts(
    path: Path, document: Mapping[str, Any], key: str, default: list[str] | None
) -> list[str]:
    values = document.get(key, default)
    if not isinstance(values, list) or not values or not all(isinstance(v, str) for v in values):
        raise BatchError(f"{path}: {key} must be a list of names, not {values!r}")
    return list(dict.fromkeys(values))


def _seeds(path: Path, given: Any) -> list[int]:
    if isinstance(given, str):
        first, dash, last = given.partition("-")
        if dash and first.strip().isdecimal() and last.strip().isdecimal():
            low, high = int(first), int(last)
            if low <= high < 2**32 and high - low < MOST_RUNS:
                return list(range(low, high + 1))
    elif isinstance(given, list) and given and all(_is_seed(seed) for seed in given):
        return list(dict.fromkeys(given))
    raise BatchError(
        f'{path}: seeds must be a list of whole numbers from 0 to 2^32-1, or text like "0-4", '
        f"not {given!r}"
    )


def _is_seed(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**32
