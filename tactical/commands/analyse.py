"""`tactical analyse`: connections, subflows and data in any capture."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tactical.capture_files import read_capture
from tactical.faults import Refused
from tactical.progress import stages
from tactical.streams import print_json

if TYPE_CHECKING:
    from analysis.capture.result import CaptureAnalysis
    from captures import Capture

SUMMARY = "measure connections, subflows and data in capture files"
EXAMPLES = """\
FILE is a pcap or pcapng file, compressed by gzip or zstd or not, of whatever origin. Multipath TCP
of versions 0 and 1 and plain TCP are told apart; bytes are counted four ways:

  announced      covered by data sequence mappings, sent or not
  captured       carried by packets in the file, each byte once
  in order       complete from the start
  acknowledged   by the other side, at the data level

Files of one host (its interfaces, the pieces of a ring buffer) are read as one. Files of two hosts
that hold the same packets become a pair, in which one-way delays and losses are measured as well;
the offset of their clocks is estimated and told.

The table is printed, and the report written to report.html (report-2.html, … if that is there):
one page that opens without a network. Files that are cut off or damaged are read up to the damage,
which is told.

examples:
  tactical analyse capture.pcapng
  tactical analyse client.pcap.gz server.pcap.gz --report both.html
  tactical analyse capture.pcap --json > capture.json
  tactical analyse capture.pcap --figures figures     every figure as SVG and PDF, for a paper
  tactical analyse capture.pcap --export packets.parquet
"""

_CLOCKS = {"auto": None, "same": True, "estimate": False}

_MOST_TIMED_PACKETS = 4_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="a capture file")
    parser.add_argument(
        "--full",
        action="store_true",
        help=f"with --json, measure times also in captures of more than {_MOST_TIMED_PACKETS:,} "
        "packets, which takes some 300 bytes of memory a packet",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="where to write the report, also over an earlier one (default: a new report.html "
        "here; with --json none)",
    )
    parser.add_argument("--no-report", action="store_true", help="print only")
    parser.add_argument(
        "--figures",
        type=Path,
        metavar="DIR",
        help="also write each figure of the report as SVG and PDF, 7.16 inches wide (a page of two "
        "columns)",
    )
    parser.add_argument(
        "--export",
        type=Path,
        metavar="FILE",
        help="also write one row a TCP packet, as Parquet or CSV by the name's end; the columns "
        "are those of docs/analysis.md",
    )
    parser.add_argument(
        "--gap",
        type=float,
        default=0.5,
        metavar="SECONDS",
        help="list times without progress that are longer (default: 0.5)",
    )
    parser.add_argument(
        "--clock",
        choices=tuple(_CLOCKS),
        default="auto",
        help="whether a pair was stamped by the same clock, or times are corrected by the "
        "estimated offset and skew (default: the same, unless packets contradict it)",
    )


def run(options: argparse.Namespace) -> int:
    """Read, measure, print and write; the exit status."""
    if not 0 < options.gap < float("inf"):
        raise Refused(f"--gap {options.gap:g} must be more than 0 seconds")
    if options.report is not None and options.no_report:
        raise Refused("--report and --no-report contradict each other")
    if options.export is not None and options.export.suffix not in (".parquet", ".csv"):
        raise Refused(f"--export {options.export} must end in .parquet or .csv")
    for name in ("report", "export"):
        target = getattr(options, name)
        if target is not None and not target.parent.is_dir():
            raise Refused(f"--{name} {target}: there is no directory {target.parent}")
    if options.figures is not None and options.figures.exists() and not options.figures.is_dir():
        raise Refused(f"--figures {options.figures} is no directory")
    with stages() as tell:
        captures = [read_capture(path, tell) for path in dict.fromkeys(options.files)]
        if _is_for_data_only(options, captures):
            tell("finding connections", 0.0)
            print_json(_data(captures))
            return 0
        from analysis.capture.analyse import analyse_captures
        from analysis.capture.document import capture_document
        from analysis.capture.places import PlacesError
        from analysis.presentation.capture_text import capture_table

        try:
            analysis = analyse_captures(
                captures,
                listed_gap_s=options.gap,
                same_clock=_CLOCKS[options.clock],
                progress=tell,
            )
        except PlacesError as error:
            raise Refused(str(error)) from error
        written = _write(options, analysis, captures, tell)
        document = capture_document(analysis, captures) if options.json else None
    if document is not None:
        print_json(document)
    else:
        print(capture_table(analysis))
    for said in written:
        print(said, file=sys.stderr if options.json else sys.stdout)
    return 0


def _data(captures: Sequence[Capture]) -> dict[str, Any]:
    """Documents of captures that hold one connection in memory at a time."""
    from captures import summary

    files = [{"file": str(each.path), **summary(each)} for each in captures]
    return files[0] if len(files) == 1 else {"files": files}


def _is_for_data_only(options: argparse.Namespace, captures: Sequence[Capture]) -> bool:
    """Whether a document is all that is wanted, of captures too large to measure times in."""
    packets = sum(capture.frames for capture in captures)
    if not options.json or options.full or packets <= _MOST_TIMED_PACKETS:
        return False
    if options.report is not None or options.figures is not None or options.export is not None:
        return False
    print(
        f"tactical: {packets:,} packets: connections with their data and stalls, without delays "
        "and rates; --full measures these, too, and takes some 300 bytes of memory a packet",
        file=sys.stderr,
    )
    return True


def _write(
    options: argparse.Namespace,
    analysis: CaptureAnalysis,
    captures: list[Capture],
    tell: Callable[[str, float], None],
) -> list[str]:
    """Write what was asked for; what there is now, a line each."""
    written: list[str] = []
    try:
        if options.export is not None:
            from analysis.capture.frames import export_packets

            tell("exporting packets", 0.0)
            written.append(f"packets: {export_packets(captures, options.export)}")
        if options.figures is not None:
            tell("drawing figures", 0.0)
            written.append(f"figures: {_figures(analysis, options.figures)} in {options.figures}")
        if options.report is not None or not (options.no_report or options.json):
            from analysis.presentation.capture_page import capture_report

            tell("writing the report", 0.0)
            target = options.report or _unused(Path("report.html"))
            written.append(f"report: {capture_report(analysis, target)}")
    except OSError as error:
        named = error.filename or options.report or "the report"
        raise Refused(f"{named} cannot be written: {error.strerror or error}") from error
    return written


def _figures(analysis: CaptureAnalysis, directory: Path) -> int:
    from analysis.presentation.capture_page import capture_figures
    from analysis.presentation.style import PAPER_WIDTH_IN

    directory.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, plot in capture_figures(analysis, width_in=PAPER_WIDTH_IN):
        for kind in ("svg", "pdf"):
            plot.save(directory / f"{name}.{kind}")
        count += 1
    return count


def _unused(path: Path) -> Path:
    """The path, or the first with a number behind its name that is not there."""
    number = 1
    found = path
    while found.exists() or found.is_symlink():
        number += 1
        found = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return found
