"""From the files of a run, or from captures alone, to figures, tables and a report.

    from analysis import analyse, report, table, write

    results = [write(directory) for directory in run_directories]   # also writes result.json
    print(table(results))
    report(results, "report.html")

Anybody's captures, one or a pair of the same traffic, as figures and as pandas DataFrames:

    from analysis import analyse_captures, capture_report, subflows_frame

    found = analyse_captures(["client.pcap", "server.pcap"])
    capture_report(found, "report.html")
    print(subflows_frame(found))

Every figure is defined in docs/analysis.md. Nothing but the files is looked at; runs that failed
or were interrupted are analysed as far as their files go.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from analysis.presentation.run_page import DrawnRun, report
from analysis.presentation.run_table import table
from analysis.presentation.run_text import stories_text
from analysis.run.analyse import analyse, jain, write
from analysis.run.collect import collect
from analysis.run.directory import RunDirectoryError
from analysis.run.result import PathShare, QueueResult, RunResult, Series, UserResult
from analysis.transfer.interruption import Interruption

if TYPE_CHECKING:
    from analysis.capture.analyse import analyse_captures
    from analysis.capture.document import capture_document
    from analysis.capture.frames import (
        connections_frame,
        export_packets,
        interruptions_frame,
        packet_frames,
        packets_frame,
        series_frame,
        subflows_frame,
    )
    from analysis.presentation.capture_page import capture_figures, capture_report
    from analysis.presentation.capture_text import capture_table

__all__ = [
    "DrawnRun",
    "Interruption",
    "PathShare",
    "QueueResult",
    "RunDirectoryError",
    "RunResult",
    "Series",
    "UserResult",
    "analyse",
    "analyse_captures",
    "capture_document",
    "capture_figures",
    "capture_report",
    "capture_table",
    "collect",
    "connections_frame",
    "export_packets",
    "interruptions_frame",
    "jain",
    "packet_frames",
    "packets_frame",
    "report",
    "series_frame",
    "stories_text",
    "subflows_frame",
    "table",
    "write",
]

# Found on use: whoever analyses a run need not wait for pandas.
_ON_USE = {
    "analyse_captures": "analysis.capture.analyse",
    "capture_document": "analysis.capture.document",
    "capture_figures": "analysis.presentation.capture_page",
    "capture_report": "analysis.presentation.capture_page",
    "capture_table": "analysis.presentation.capture_text",
    "connections_frame": "analysis.capture.frames",
    "export_packets": "analysis.capture.frames",
    "interruptions_frame": "analysis.capture.frames",
    "packet_frames": "analysis.capture.frames",
    "packets_frame": "analysis.capture.frames",
    "series_frame": "analysis.capture.frames",
    "subflows_frame": "analysis.capture.frames",
}


def __getattr__(name: str) -> Any:
    if name not in _ON_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ON_USE[name]), name)
