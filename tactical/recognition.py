"""What a file looks like that is not what a command expected, and which command takes it."""

from __future__ import annotations

import json
import stat
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

_MOST_BYTES = 4_000_000
_CAPTURES = (
    b"\xd4\xc3\xb2\xa1",  # pcap, microseconds
    b"\xa1\xb2\xc3\xd4",
    b"\x4d\x3c\xb2\xa1",  # pcap, nanoseconds
    b"\xa1\xb2\x3c\x4d",
    b"\x0a\x0d\x0d\x0a",  # pcapng
)
_COMPRESSIONS = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # gzip, zstd


class Kind(NamedTuple):
    """A kind of file, and what can be done with it."""

    name: str
    use: str = ""


RUN = Kind("the directory of a run", "`tactical report` takes it")
CAPTURE = Kind("a capture", "`tactical analyse` takes it")
COMPRESSED = Kind("a compressed file", "of a capture, `tactical analyse` takes it")
DESCRIBED = Kind("the network.json of a run", "`tactical controller` takes it")
INSTANCE = Kind("a network with demands in JSON", "`tactical solve` takes it")
BATCH = Kind("the description of a batch", "`tactical batch` takes it")
RUN_TOML = Kind("the run.toml of a run", "`tactical run SCENARIO --config` takes it")
PARAMETERS = Kind("parameters in TOML", "`tactical run SCENARIO --config` takes them")

_ITS_RUN = "`tactical report` takes its directory"

# JSON objects: the first whose fields are all there.
_OBJECTS = (
    ({"datapaths", "attachments", "server"}, DESCRIBED),
    ({"nodes", "links", "commodities"}, INSTANCE),
    (
        {"users", "format", "scenario"},
        Kind("the result.json of a run", _ITS_RUN),
    ),
    ({"users", "host"}, Kind("the plan.json of a run", _ITS_RUN)),
    ({"parameters", "coverage"}, Kind("an answer of `tactical check`")),
    ({"handovers", "in_range"}, Kind("an answer of `tactical preview`")),
    ({"moment", "packets"}, Kind("an answer of `tactical inspect`")),
    ({"connections", "frames"}, Kind("an answer of `tactical analyse`")),
    ({"start", "intervals", "end"}, Kind("what iperf3 says")),
    ({"error"}, Kind("an error as JSON")),
)


def looks_like(path: Path) -> Kind | None:
    """Say what is at `path`, as far as its beginning tells.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Kind or None
        ``None`` if nothing is recognised.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return RUN if (path / "run.toml").is_file() else None
        if not stat.S_ISREG(mode):  # a named pipe would be waited for
            return None
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES)
    except (OSError, ValueError):
        return None
    if data.startswith(_CAPTURES):
        return CAPTURE
    if data.startswith(_COMPRESSIONS):
        return COMPRESSED
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    if text[:15].lower() == "<!doctype html>":
        return Kind("a page for a browser")
    return _json(text) or _toml(text)


def mismatch(path: Path, *expected: Kind) -> str:
    """The end of a sentence about what is wrong with `path`: what else it looks like.

    Parameters
    ----------
    path : Path
    *expected : Kind
        What was to be read; the first is named.

    Returns
    -------
    str
        Empty if nothing is recognised, or what was expected.
    """
    found = looks_like(path)
    if found is None or found in expected:
        return ""
    use = f" ({found.use})" if found.use else ""
    return f"; it looks like {found.name}{use}, not like {expected[0].name}"


def _json(text: str) -> Kind | None:
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        return _lines(text)
    if not isinstance(document, dict):
        return None
    return next((kind for fields, kind in _OBJECTS if fields <= set(document)), None)


def _lines(text: str) -> Kind | None:
    try:
        first: Any = json.loads(text.partition("\n")[0])
    except (ValueError, RecursionError):
        return None
    if isinstance(first, dict) and {"kind", "t_s"} <= set(first):
        return Kind("records of a run, one a line", _ITS_RUN)
    return None


def _toml(text: str) -> Kind | None:
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
    if not document:
        return None
    if {"run", "scenario"} <= set(document):
        return RUN_TOML
    return BATCH if "scenarios" in document else PARAMETERS
