"""From the files of a run to figures, tables and a report; nothing else is looked at.

    from analysis import analyse, report, table, write

    results = [write(directory) for directory in run_directories]   # also writes result.json
    print(table(results))
    report(results, "report.html")

Every figure is defined in docs/analysis.md. Runs that failed or were interrupted are analysed as
far as their files go.
"""

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

__all__ = [
    "Interruption",
    "PathShare",
    "QueueResult",
    "RunDirectoryError",
    "RunResult",
    "Series",
    "UserResult",
    "analyse",
    "collect",
    "jain",
    "report",
    "stories_text",
    "table",
    "write",
]
