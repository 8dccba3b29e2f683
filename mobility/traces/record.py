"""What a trace consists of, and what is wrong with one that cannot be read."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path as FilePath
from typing import BinaryIO, NamedTuple

_SHOWN = 60


class Fix(NamedTuple):
    """Where a node is at a time, in a local frame: metres east, north and up."""

    node: str
    time_s: float
    east_m: float
    north_m: float
    up_m: float


class GeoFix(NamedTuple):
    """Where a node is at a time, on the earth: degrees of WGS 84, and metres above it."""

    node: str
    time_s: float
    latitude_deg: float
    longitude_deg: float
    altitude_m: float


class TraceError(ValueError):
    """A file that is no trace of its format; the text says where, and what was expected.

    Attributes
    ----------
    file : str
        Name of the file.
    line : int
        Number of the line, from 1; 0 where it is about the file as a whole.
    """

    def __init__(self, file: object, line: int, problem: str) -> None:
        self.file = str(file)
        self.line = line
        self.problem = problem
        where = f"{file}, line {line}" if line else f"{file}"
        super().__init__(f"{where}: {problem}")

    def __reduce__(self) -> tuple[type["TraceError"], tuple[str, int, str]]:
        return TraceError, (self.file, self.line, self.problem)


def expected(file: object, line: int, what: str, found: object) -> TraceError:
    """Return the error of something else than what was expected."""
    text = found if isinstance(found, str) else repr(found)
    shown = repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
    return TraceError(file, line, f"expected {what}, found {shown}")


def lines(file: FilePath) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file with their numbers, without what ends them."""
    with opened(file) as stream:
        for number, raw in enumerate(stream, start=1):
            try:
                yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError:
                raise expected(file, number, "text in UTF-8", repr(raw[:_SHOWN])) from None


def opened(file: FilePath) -> BinaryIO:
    """Open a file to read bytes, or raise TraceError."""
    try:
        if not file.is_file():
            raise TraceError(file, 0, "expected a file, found none")
        return file.open("rb")
    except OSError as error:
        raise TraceError(file, 0, f"cannot be read: {error.strerror}") from None


def number(file: object, line: int, what: str, text: str | None) -> float:
    """Return a finite number, or raise TraceError."""
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or "_" in (text or ""):
        raise expected(file, line, what, "nothing" if text is None else text)
    return value


def place(
    file: object, line: int, latitude: str | None, longitude: str | None
) -> tuple[float, float]:
    """Return a latitude and a longitude in degrees, or raise TraceError."""
    lat = number(file, line, "a latitude in degrees", latitude)
    lon = number(file, line, "a longitude in degrees", longitude)
    if not -90.0 <= lat <= 90.0:
        raise expected(file, line, "a latitude from -90 to 90 degrees", latitude)
    if not -180.0 <= lon <= 180.0:
        raise expected(file, line, "a longitude from -180 to 180 degrees", longitude)
    return lat, lon


def instant(file: object, line: int, text: str) -> float:
    """Return seconds since 1970 of a date and time of ISO 8601, UTC unless it says otherwise."""
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()
    except (ValueError, OverflowError):
        raise expected(file, line, "a time such as 2026-12-01T12:00:00Z", text) from None


def iso(time_s: float) -> str:
    """Return seconds since 1970 as ISO 8601 in UTC, to the microsecond."""
    return datetime.fromtimestamp(time_s, UTC).isoformat().replace("+00:00", "Z")
