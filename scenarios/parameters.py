"""Fields that know their unit, meaning and bounds, and the checks that follow from them.

A parameter is an ordinary dataclass field whose type is annotated with a `Parameter`:

    delay_s: Annotated[float, Parameter(unit="s", meaning="delay one way", minimum=0)] = 0.25

From that one declaration come validation, the conversion of what a person typed, and the table
that ``tactical check`` and the help print.
"""

import dataclasses
import difflib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args, get_type_hints

from scenarios.errors import ScenarioError

_SHOWN = 80


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """What is known of one field.

    Attributes
    ----------
    unit : str
        SI unit, or empty for a pure number or text.
    meaning : str
        One phrase.
    minimum, maximum : float
        Bounds; a value on the bound is allowed unless `above` or `below` says otherwise.
    above, below : bool
        The bound itself is excluded.
    whole : bool
        The value must be a whole number although its type is float (Open vSwitch takes integer
        rates, iperf3 whole seconds).
    pattern, pattern_meaning : str
        For text: the regular expression the whole value must match, and the same in words.
    later : bool
        Experiments were run before there was this field: while it has its default it is no part of
        their fingerprint, which so stays what it was.
    """

    meaning: str
    unit: str = ""
    minimum: float = -math.inf
    maximum: float = math.inf
    above: bool = False
    below: bool = False
    whole: bool = False
    pattern: str = ""
    pattern_meaning: str = ""
    later: bool = False

    def expected(self, kind: type) -> str:
        """Return in words what a value must be, for an error message or a help page."""
        if kind is str:
            return self.pattern_meaning or "text"
        words = "a whole number" if kind is int or self.whole else "a number"
        if self.unit:
            words += f" in {self.unit}"
        bounds = []
        if self.minimum > -math.inf:
            bounds.append(
                f"above {self.minimum:.12g}" if self.above else f"{self.minimum:.12g} or more"
            )
        if self.maximum < math.inf:
            bounds.append(
                f"below {self.maximum:.12g}" if self.below else f"at most {self.maximum:.12g}"
            )
        return ", ".join([words, " and ".join(bounds)]) if bounds else words


class Row(NamedTuple):
    """One parameter of an experiment, ready to print.

    Attributes
    ----------
    key : str
        Dotted name, as ``--set`` takes it.
    value : float, int or str
        Resolved value.
    unit : str
        SI unit, or empty.
    meaning : str
        One phrase.
    expected : str
        What a value must be, in words.
    """

    key: str
    value: float | int | str
    unit: str
    meaning: str
    expected: str


class _Place(NamedTuple):
    key: str
    owner: Any
    name: str
    kind: type
    about: Parameter
    default: Any


def places(data: Any, prefix: str = "") -> Iterator[_Place]:
    """Walk the parameters of a dataclass and of the dataclasses inside it."""
    hints = get_type_hints(type(data), include_extras=True)
    for field in dataclasses.fields(data):
        value = getattr(data, field.name)
        kind, *notes = get_args(hints[field.name]) or (hints[field.name],)
        about = next((note for note in notes if isinstance(note, Parameter)), None)
        if about is not None:
            key = f"{prefix}{field.name}"
            yield _Place(key, data, field.name, kind, about, field.default)
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            yield from places(value, f"{prefix}{field.name}.")


def describe(data: Any) -> list[Row]:
    """Return every parameter of an experiment with its value, unit, meaning and bounds."""
    return [
        Row(
            place.key,
            getattr(place.owner, place.name),
            place.about.unit,
            place.about.meaning,
            place.about.expected(place.kind),
        )
        for place in places(data)
    ]


def check(data: Any, prefix: str = "") -> None:
    """Check every parameter of a dataclass, and give each its declared type.

    Parameters
    ----------
    data : dataclass instance
        Frozen or not; whole numbers given for float fields become floats in place, so that equal
        experiments have equal fingerprints.
    prefix : str
        Put before field names in messages, with its dot.

    Raises
    ------
    ScenarioError
        For the first field whose type or value is not as declared.
    """
    for place in places(data, prefix):
        value = _checked(place, getattr(place.owner, place.name))
        object.__setattr__(place.owner, place.name, value)


def _checked(place: _Place, value: Any) -> Any:
    wrong = ScenarioError(
        place.key, f"must be {place.about.expected(place.kind)}, not {written(value)}", value
    )
    if place.kind is str:
        if not isinstance(value, str) or not re.fullmatch(place.about.pattern or ".*", value):
            raise wrong
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong
    about = place.about
    try:
        number = float(value)
    except OverflowError:
        raise wrong from None
    if not math.isfinite(number):
        raise wrong
    if (place.kind is int or about.whole) and number != math.floor(number):
        raise wrong
    if number < about.minimum or (about.above and number == about.minimum):
        raise wrong
    if number > about.maximum or (about.below and number == about.maximum):
        raise wrong
    return int(number) if place.kind is int else number


def written(value: Any) -> str:
    """Return a value as a message shows it, which may be shortened."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python writes no number of more than 4300 digits
        return f"a very long {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def nearest(key: str, known: list[str]) -> str:
    """Return a sentence that suggests the known key closest to a mistyped one, or nothing."""
    close = [name for name in known if name.rpartition(".")[2] == key]
    close = close or difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    close = close or [name for name in known if name.rpartition(".")[2] == key.rpartition(".")[2]]
    return f"; did you mean {' or '.join(close)}?" if close else ""
