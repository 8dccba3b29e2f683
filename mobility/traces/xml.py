"""XML as a stream of elements with line numbers, from files that nobody vouches for."""

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import NamedTuple
from xml.parsers import expat

from mobility.traces.record import TraceError, opened

_CHUNK = 1 << 16
_MOST_TEXT = 10_000


class Element(NamedTuple):
    """The beginning or the end of an element.

    Attributes
    ----------
    line : int
        Where.
    name : str
        Without its namespace.
    attributes : dict of str, or None
        None at the end of an element.
    text : str
        At the end of an element, the text directly before it.
    """

    line: int
    name: str
    attributes: dict[str, str] | None
    text: str


def elements(file: FilePath) -> Iterator[Element]:
    """Yield the elements of a file as they come, in constant memory.

    Documents with a type declaration are refused: it is there that entities are declared, with
    which a few lines become gigabytes ("billion laughs") or read other files. No trace needs one.

    Raises
    ------
    TraceError
        If the file is not well-formed, or declares a document type.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    found: list[Element] = []
    text: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        text.clear()
        local = name.rpartition(":")[2]
        found.append(Element(parser.CurrentLineNumber, local, attributes, ""))

    def end(name: str) -> None:
        local = name.rpartition(":")[2]
        found.append(Element(parser.CurrentLineNumber, local, None, "".join(text).strip()))
        text.clear()

    def data(part: str) -> None:
        if sum(map(len, text)) > _MOST_TEXT:
            raise TraceError(
                file, parser.CurrentLineNumber, f"expected at most {_MOST_TEXT} characters of text"
            )
        text.append(part)

    def declared(*_: object) -> None:
        raise TraceError(
            file, parser.CurrentLineNumber, "expected no document type declaration (<!DOCTYPE)"
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = data
    parser.StartDoctypeDeclHandler = declared
    with opened(file) as stream:
        while True:
            chunk = stream.read(_CHUNK)
            try:
                parser.Parse(chunk, not chunk)
            except expat.ExpatError as error:
                raise TraceError(
                    file, error.lineno, f"expected XML: {expat.ErrorString(error.code)}"
                ) from None
            yield from found
            found.clear()
            if not chunk:
                return
