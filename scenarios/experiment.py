"""Experiments: parameters that build a scenario, read from and written to TOML."""

import dataclasses
import hashlib
import json
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from scenarios.errors import ScenarioError
from scenarios.parameters import check, nearest, places
from scenarios.scenario import Scenario

_E = TypeVar("_E", bound="Experiment")
_NAME_KEY = "experiment"


@dataclass(frozen=True)
class Experiment(ABC):
    """Parameters of an experiment, checked when made.

    A shipped experiment is a frozen dataclass derived from this one. Its fields are annotated with
    a `scenarios.parameters.Parameter`, or are dataclasses of such fields.

    Raises
    ------
    ScenarioError
        If a parameter has the wrong type, is out of bounds, or does not fit the others.
    """

    name: ClassVar[str]

    def __post_init__(self) -> None:
        check(self)
        self.check()

    def check(self) -> None:  # noqa: B027 - most experiments have nothing to add
        """Raise ScenarioError where parameters that are right by themselves do not fit together."""

    @abstractmethod
    def build(self, seed: int) -> Scenario:
        """Return the scenario for a seed: the same for the same seed on any machine."""


def overridden(experiment: _E, overrides: Mapping[str, Any] | Iterable[str], origin: str) -> _E:
    """Return an experiment with some parameters changed.

    Parameters
    ----------
    experiment : Experiment
        What to start from.
    overrides : mapping or iterable of str
        Dotted keys to values (nested mappings do as well), or strings ``KEY=VALUE`` whose value
        is written as in TOML; text may go without quotes.
    origin : str
        Where they come from, for messages: a file's path. Strings name themselves.

    Returns
    -------
    Experiment
        A new one of the same type.

    Raises
    ------
    ScenarioError
        For an unknown key, a string without ``=``, or a value that does not fit.
    """
    if isinstance(overrides, Mapping):
        entries = [(key, value, origin) for key, value in _flat(overrides)]
    else:
        entries = [_parsed(text, experiment) for text in overrides]
    tree = dataclasses.asdict(experiment)
    known = [place.key for place in places(experiment)]
    sources: dict[str, str] = {}
    for key, value, source in entries:
        if key not in known:
            _refuse(key, value, known, experiment, source)
        branch = tree
        *parents, leaf = key.split(".")
        for parent in parents:
            branch = branch[parent]
        branch[leaf] = value
        sources[key] = source
    try:
        changed: _E = _rebuilt(experiment, tree)
    except ScenarioError as error:
        raise error.at(sources.get(error.field, origin)) from None
    return changed


def to_toml(experiment: Experiment, table: str = "") -> str:
    """Return the resolved parameters of an experiment as TOML.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    table : str
        Put everything below this table, such as ``scenario``, to make it part of a larger file.
    """
    lines: list[str] = []

    def write(prefix: str, branch: Mapping[str, Any]) -> None:
        if prefix:
            lines.append(f"[{prefix}]")
        lines.extend(
            # A JSON string is a TOML basic string, and repr() of a finite float a TOML float.
            f"{key} = {json.dumps(value) if isinstance(value, str) else repr(value)}"
            for key, value in branch.items()
            if not isinstance(value, Mapping)
        )
        for key, value in branch.items():
            if isinstance(value, Mapping):
                lines.append("")
                write(f"{prefix}.{key}" if prefix else key, value)

    write(table, {_NAME_KEY: experiment.name, **dataclasses.asdict(experiment)})
    return "\n".join(lines) + "\n"


def fingerprint(experiment: Experiment) -> str:
    """Return 8 hexadecimal digits that are the same for equal parameters on any machine."""
    resolved = {_NAME_KEY: experiment.name, **dataclasses.asdict(experiment)}
    text = json.dumps(resolved, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def read_config(path: Path) -> dict[str, Any]:
    """Read parameters from a TOML file, or from the ``[scenario]`` table of a run's ``run.toml``.

    Raises
    ------
    ScenarioError
        If the file cannot be read or is not TOML.
    """
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError("", f"cannot be read: {error.strerror}", origin=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError("", f"is not TOML: {error}", origin=str(path)) from None
    if isinstance(tree.get("run"), dict) and isinstance(tree.get("scenario"), dict):
        return dict(tree["scenario"])
    return tree


def split_name(tree: Mapping[str, Any], origin: str) -> tuple[str | None, dict[str, Any]]:
    """Take the experiment's name out of parameters read from TOML, if it is there."""
    rest = dict(tree)
    name = rest.pop(_NAME_KEY, None)
    if name is not None and not isinstance(name, str):
        raise ScenarioError(
            _NAME_KEY, f"must be the name of an experiment, not {name!r}", name, origin
        )
    return name, rest


def _rebuilt(like: Any, tree: Mapping[str, Any]) -> Any:
    """Make a dataclass of the same shape as another from a tree of values."""
    return type(like)(
        **{
            field.name: (
                _rebuilt(getattr(like, field.name), tree[field.name])
                if dataclasses.is_dataclass(getattr(like, field.name))
                else tree[field.name]
            )
            for field in dataclasses.fields(like)
        }
    )


def _flat(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    entries: list[tuple[str, Any]] = []
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            entries.extend(_flat(value, f"{prefix}{key}."))
        else:
            entries.append((f"{prefix}{key}", value))
    return entries


def _parsed(text: str, experiment: Experiment) -> tuple[str, Any, str]:
    """Split ``KEY=VALUE`` and read the value as TOML."""
    source = f"--set {text}"
    key, equals, written = (part.strip() for part in text.partition("="))
    if not equals or not key:
        raise ScenarioError("", f"must be KEY=VALUE, not {text!r}", text, "--set")
    kinds = {place.key: place.kind for place in places(experiment)}
    try:
        # One line only: a line break would smuggle in further keys.
        value = tomllib.loads(f"value = {written}")["value"] if "\n" not in written else written
    except tomllib.TOMLDecodeError:
        value = written
    if kinds.get(key) is str and not isinstance(value, str):
        value = written
    return key, value, source


def _refuse(key: str, value: Any, known: list[str], experiment: Experiment, source: str) -> None:
    inside = [name for name in known if name.startswith(f"{key}.")]
    if inside:
        raise ScenarioError(
            key, f"is a group; set one of {', '.join(inside)}, not {value!r}", value, source
        )
    groups = dict.fromkeys(f"{name.partition('.')[0]}.*" if "." in name else name for name in known)
    hint = nearest(key, known) or f"; there are {', '.join(groups)}"
    raise ScenarioError(key, f"is no parameter of {experiment.name}{hint}", value, source)
