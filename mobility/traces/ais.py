r"""AIS: position reports of ships as receivers log them, in NMEA 0183 (ITU-R M.1371).

    \s:2573135,c:1671533231*0B\!BSVDM,1,1,,A,13nN34?000QFpgRWnQLLSPpF00SO,0*06

A report itself holds only the second of a minute, so the log must tell when it was received: in
the tag block before the sentence (``c:``, seconds since 1970), as the Norwegian coastal
administration and AIS receivers write it, or in the last field after it, as the US Coast Guard
does. Other messages, and reports without a position, are passed over. A node is named by its MMSI.
"""

import re
from collections.abc import Iterable, Iterator
from functools import reduce
from operator import xor
from pathlib import Path as FilePath
from typing import TextIO

from pyais.encode import encode_dict
from pyais.exceptions import AISBaseException, UnknownMessageException
from pyais.messages import AISSentence, NMEASentenceFactory

from mobility.traces.record import GeoFix, TraceError, expected, lines

_LINE = re.compile(
    r"(?:\\(?P<tag>[^\\]*)\\)?"
    r"(?P<sentence>!(?P<body>[A-Z]{5},[^*!]*)\*(?P<sum>[0-9A-Fa-f]{2}))"
    r"(?:,(?P<after>.*))?"
)
_TAG_TIME = re.compile(r"(?:^|,)c:(?P<time>\d+)")
_AFTER_TIME = re.compile(r"(?:^|,)(?P<time>\d{9,11})$")
_MILLISECONDS = 100_000_000_000
_MOST_PARTS = 64
_POSITIONS = (1, 2, 3, 9, 18, 19, 27)
"""Types of message that say where a ship or a rescue aircraft is."""


def read(file: FilePath) -> Iterator[GeoFix]:
    """Yield the position reports in the order of the file, times in seconds since 1970."""
    waiting: dict[tuple[int | None, str], tuple[float | None, list[AISSentence]]] = {}
    for line, text in lines(file):
        stripped = text.strip()
        if not stripped or stripped.startswith(("#", "$")):
            continue
        match = _LINE.fullmatch(stripped)
        if match is None:
            raise expected(file, line, "a sentence such as !AIVDM,1,1,,A,...,0*5C", stripped)
        sums = reduce(xor, match["body"].encode("latin-1", "replace"), 0)
        if sums != int(match["sum"], 16):
            raise expected(file, line, f"the checksum {sums:02X}", match["sum"])
        if match["body"][2:5] not in ("VDM", "VDO"):
            continue
        time_s = _received(match["tag"], match["after"])
        try:
            sentence = NMEASentenceFactory.produce(match["sentence"].encode())
            if not isinstance(sentence, AISSentence):
                continue
            if not sentence.is_single:
                key = (sentence.seq_id, str(sentence.channel))
                known, parts = waiting.pop(key, (None, []))
                time_s = known if known is not None else time_s
                parts.append(sentence)
                if len(parts) < sentence.fragment_count:
                    if len(waiting) >= _MOST_PARTS:  # parts whose rest was never received
                        del waiting[next(iter(waiting))]
                    waiting[key] = (time_s, parts)
                    continue
                sentence = AISSentence.assemble_from_iterable(
                    sorted(parts, key=lambda part: part.frag_num)
                )
            report = sentence.decode()
        except UnknownMessageException:
            continue
        except (AISBaseException, ValueError, IndexError, KeyError, TypeError) as error:
            raise TraceError(
                file, line, f"expected an AIS message, found one that cannot be decoded: {error}"
            ) from None
        if report.msg_type not in _POSITIONS:
            continue
        latitude, longitude = getattr(report, "lat", None), getattr(report, "lon", None)
        if latitude is None or longitude is None:
            raise TraceError(file, line, "expected a whole position report, found one cut short")
        if not (-90.0 <= latitude <= 90.0 and -180.0 <= longitude <= 180.0):
            continue  # 91 and 181 degrees stand for "not available"
        if time_s is None:
            raise TraceError(
                file,
                line,
                "expected the time of reception, in a tag block (\\c:1671533231*hh\\) or after "
                "the sentence, found none",
            )
        high = float(getattr(report, "alt", 0.0)) if report.msg_type == 9 else 0.0
        yield GeoFix(f"{report.mmsi:09d}", float(time_s), latitude, longitude, high)


def _received(tag: str | None, after: str | None) -> float | None:
    if tag and (match := _TAG_TIME.search(tag)):
        time = int(match["time"])
        return time / 1000.0 if time > _MILLISECONDS else float(time)
    if after and (match := _AFTER_TIME.search(after.strip())):
        return float(match["time"])
    return None


def write(fixes: Iterable[GeoFix], stream: TextIO) -> None:
    """Write position reports of class A (message 1) with tag blocks, in order of time.

    AIS knows places to a ten-thousandth of a minute of arc and this log times to a second;
    altitudes are lost.

    Raises
    ------
    ValueError
        If a node's name is no MMSI, or a time is before 1970 or no whole second.
    """
    for fix in sorted(fixes, key=lambda each: each.time_s):
        if not re.fullmatch(r"\d{9}", fix.node):
            raise ValueError(f"AIS names nodes by an MMSI of nine digits, not {fix.node!r}")
        if fix.time_s < 0.0 or fix.time_s != int(fix.time_s):
            raise ValueError(f"AIS logs take whole seconds since 1970, not {fix.time_s!r}")
        tag = f"c:{int(fix.time_s)}"
        report = encode_dict(
            {
                "type": 1,
                "mmsi": int(fix.node),
                "lat": _settled(fix.latitude_deg),
                "lon": _settled(fix.longitude_deg),
                "speed": 102.3,  # not available, as the next two
                "course": 360.0,
                "heading": 511,
                "second": int(fix.time_s) % 60,
            },
            talker_id="AI",
        )
        stream.write(f"\\{tag}*{reduce(xor, tag.encode(), 0):02X}\\{report[0]}\n")


def _settled(degrees: float) -> float:
    """Return the nearest place that the format knows, safe from being cut to the one below."""
    units = round(degrees * 600_000.0)
    return (units + (0.25 if units > 0 else -0.25 if units < 0 else 0.0)) / 600_000.0
