"""Records on their way to somebody who may be slow, or gone."""

import json
import os
from typing import Any

import pytest

from tactical.controller import records
from tactical.controller.logic import Record
from tactical.controller.records import RecordWriter
from tests.controller.openvswitch import wait_for


def note(number: int) -> Record:
    return Record("note", "controller", {"number": number, "padding": "x" * 1000})


def test_a_reader_that_is_slow_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe holds 64 KiB: without a thread of its own the third of these would have to wait."""
    monkeypatch.setattr(records, "LINES_WAITING", 100)
    reading, writing = os.pipe()
    heard: list[dict[str, Any]] = []
    write = RecordWriter(os.fdopen(writing, "w"))
    write.listen(heard.append)
    for number in range(1000):
        write(note(number))
    assert len(heard) == 1000, "listeners get all"
    with os.fdopen(reading) as stream:
        lines = [json.loads(stream.readline()) for _ in range(100)]
        wait_for(lambda: write._waiting.qsize() < 100, "room")
        write(note(1000))
        write.close()
        assert [line["data"]["number"] for line in lines] == list(range(100))
        between = []  # what fitted meanwhile, and as often as there was room what did not
        while (line := json.loads(stream.readline()))["data"].get("number") != 1000:
            between.append(line)
        lost = [line["data"]["message"] for line in between if line["kind"] == "error"]
        assert lost and all("records were lost" in message for message in lost)


def test_a_reader_that_has_gone_is_no_fault() -> None:
    reading, writing = os.pipe()
    write = RecordWriter(os.fdopen(writing, "w"))
    os.close(reading)
    heard: list[dict[str, Any]] = []
    write.listen(heard.append)
    for number in range(3):
        write(note(number))
    write.close()
    write(note(3))
    assert len(heard) == 4


def test_without_a_stream_only_listeners_hear() -> None:
    write = RecordWriter(None)
    heard: list[dict[str, Any]] = []
    end = write.listen(heard.append)
    write(note(1))
    end()
    write(note(2))
    write.close()
    assert [line["data"]["number"] for line in heard] == [1]
