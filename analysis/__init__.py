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

from analysis.collect import collect
from analysis.report import report
from analysis.result import (
    Interruption,
    PathShare,
    QueueResult,
    RunResult,
    Series,
    UserResult,
)
from analysis.run import analyse, jain, write
from analysis.run_text import stories_text
from analysis.rundirectory import RunDirectoryError
from analysis.table import table

if TYPE_CHECKING:
    from analysis.capture import analyse_captures
    from analysis.capture_json import capture_document
    from analysis.capture_page import capture_figures, capture_report
    from analysis.capture_text import capture_table
    from analysis.frames import (
        connections_frame,
        export_packets,
        interruptions_frame,
        packet_frames,
        packets_frame,
        series_frame,
        subflows_frame,
    )

__all__ = [
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

# Found on use: whoever analyses a run need not wait for pandas. Modules with the same name as
# their function are not among them: importing such a module would hide the function.
_ON_USE = {
    "analyse_captures": "analysis.capture",
    "capture_document": "analysis.capture_json",
    "capture_figures": "analysis.capture_page",
    "capture_report": "analysis.capture_page",
    "capture_table": "analysis.capture_text",
    "connections_frame": "analysis.frames",
    "export_packets": "analysis.frames",
    "interruptions_frame": "analysis.frames",
    "packet_frames": "analysis.frames",
    "packets_frame": "analysis.frames",
    "series_frame": "analysis.frames",
    "subflows_frame": "analysis.frames",
}


def __getattr__(name: str) -> Any:
    if name not in _ON_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ON_USE[name]), name)
