"""`tactical analyse`: connections, subflows and data in any capture."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tactical.faults import Refused
from tactical.streams import print_json

SUMMARY = "find connections, subflows and data in capture files"
EXAMPLES = """\
FILE is a pcap or pcapng file, compressed by gzip or zstd or not, of whatever origin. Multipath TCP
of versions 0 and 1 and plain TCP are told apart; bytes are counted four ways:

  announced      covered by data sequence mappings, sent or not
  captured       carried by packets in the file, each byte once
  in order       complete from the start
  acknowledged   by the other side, at the data level

Files that are cut off or damaged are read up to the damage, which is told.

examples:
  tactical analyse capture.pcapng
  tactical analyse client.pcap.gz server.pcap.gz --json > both.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="a capture file")


def run(options: argparse.Namespace) -> int:
    """Read and print; the exit status."""
    from captures import read, summary

    documents: list[dict[str, Any]] = []
    for path in options.files:
        try:
            capture = read(path)
        except OSError as error:
            raise Refused(f"{path} cannot be read: {error.strerror or error}") from error
        documents.append({"file": str(path), **summary(capture)})
    if options.json:
        print_json(documents[0] if len(documents) == 1 else {"files": documents})
        return 0
    for document in documents:
        _print(document)
    return 0


def _print(document: dict[str, Any]) -> None:
    print(
        f"{document['file']}: {document['frames']} packets, {document['tcp_frames']} of TCP in "
        f"{document['tcp_streams']} streams"
    )
    if document["damage"]:
        print(f"  damaged: {document['damage']}")
    for remark in document["quality"]["remarks"]:
        if remark != document["damage"]:
            print(f"  {remark}")
    rows: list[tuple[str, ...]] = [_HEADINGS]
    multipath = [("MPTCP", each) for each in document["connections"]]
    for kind, connection in multipath + [("TCP", each) for each in document["tcp_connections"]]:
        kind += "" if connection["version"] is None else f" v{connection['version']}"
        kind += ", fell back" if connection["fallback"] else ""
        rows.append((f"{connection['client']} > {connection['server']}  {kind}",))
        for name, arrow in (("client_to_server", ">"), ("server_to_client", "<")):
            rows.append((f"  {arrow}", *_cells(connection[name])))
            if len(connection["subflows"]) > 1:
                rows += [
                    (f"    {arrow} {each['client']}", *_subflow_cells(each[name]))
                    for each in connection["subflows"]
                ]
    widths = [
        max((len(row[column]) for row in rows if len(row) > max(column, 1)), default=0)
        for column in range(len(rows[0]))
    ]
    for row in rows:
        first = f"  {row[0]:<{widths[0]}}"
        rest = [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=False)]
        print("  ".join([first, *rest]).rstrip())


_HEADINGS = (
    "",
    "payload",
    "announced",
    "captured",
    "in order",
    "acknowl.",
    "retr.",
    "reinj.",
    "resent",
    "stall s",
)
_REPEATS = ("retransmissions", "reinjections", "resends")


def _cells(direction: dict[str, Any]) -> tuple[str, ...]:
    names = ("payload", "announced", "captured", "in_order", "acknowledged")
    return (
        *(f"{direction[f'{name}_bytes']:,}" for name in names),
        *(str(direction[name]) for name in _REPEATS),
        f"{direction['longest_stall_s']:.3f}",
    )


def _subflow_cells(direction: dict[str, Any]) -> tuple[str, ...]:
    payload, fresh = (f"{direction[name]:,}" for name in ("payload_bytes", "fresh_bytes"))
    return (payload, "", fresh, "", "", *(str(direction[name]) for name in _REPEATS))
