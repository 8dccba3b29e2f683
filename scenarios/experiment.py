"""Experiments: parameters that build a scenario, read from and written to TOML."""

import contextlib
import dataclasses
import hashlib
import json
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

from scenarios.components import Load
from scenarios.errors import ScenarioError
from scenarios.parameters import check, nearest, places, written
from scenarios.scenario import Scenario

_E = TypeVar("_E", bound="Experiment")
_NAME_KEY = "experiment"
_SHOWN = 80
_DEEPEST = 20


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
        for part in vars(self).values():
            if isinstance(part, Load):
                part.check()
        self.check()

    @property
    def as_published(self) -> bool:
        """Whether it is what its source describes: all parameters are the defaults.

        How the controller decides and what is recorded is ours, and may differ.
        """
        ours = ("controller", "captures")
        mine, default = dataclasses.asdict(self), dataclasses.asdict(type(self)())
        return all(mine[key] == default[key] for key in mine if key not in ours)

    def check(self) -> None:  # noqa: B027 - most experiments have nothing to add
        """Raise ScenarioError where parameters that are right by themselves do not fit together."""

    @abstractmethod
    def build(self, seed: int) -> Scenario:
        """Return the scenario for a seed: the same for the same seed on any machine."""


class Override(NamedTuple):
    """One parameter to change.

    Attributes
    ----------
    key : str
        Dotted name.
    value : object
        What it shall be, as TOML reads it.
    origin : str
        The option or file it comes from, for messages; empty for a Python caller.
    """

    key: str
    value: Any
    origin: str


def overridden(experiment: _E, overrides: Iterable[Override]) -> _E:
    """Return an experiment of the same type with some parameters changed, the last one winning.

    Raises
    ------
    ScenarioError
        For an unknown key or a value that does not fit, with the origin of the override.
    """
    tree = dataclasses.asdict(experiment)
    known = [place.key for place in places(experiment)]
    origins: dict[str, str] = {}
    for override in overrides:
        if override.key not in known:
            _refuse(override, known, experiment.name)
        branch = tree
        *parents, leaf = override.key.split(".")
        for parent in parents:
            branch = branch[parent]
        branch[leaf] = override.value
        origins[override.key] = override.origin
    try:
        changed: _E = _rebuilt(experiment, tree)
    except ScenarioError as error:
        # Where two parameters do not fit together, the one at fault need not be the one named.
        everywhere = ", ".join(dict.fromkeys(filter(None, origins.values())))
        raise error.at(origins.get(error.field, everywhere)) from None
    return changed


def from_options(options: Iterable[str], experiment: Experiment) -> list[Override]:
    """Read ``KEY=VALUE`` strings, whose value is written as in TOML; text may go without quotes.

    Raises
    ------
    ScenarioError
        If a string has no key or no ``=``.
    """
    kinds = {place.key: place.kind for place in places(experiment)}
    overrides = []
    for option in options:
        key, equals, text = (part.strip() for part in option.partition("="))
        if not equals or not key:
            raise ScenarioError("", f"must be KEY=VALUE, not {written(option)}", option, "--set")
        value: Any = text
        # One line only: a line break would smuggle in further keys.
        if kinds.get(key) is not str or text[:1] in ("'", '"'):
            with contextlib.suppress(tomllib.TOMLDecodeError):
                value = read_toml(f"value = {text}")["value"] if "\n" not in text else value
        overrides.append(Override(key, value, f"--set {_shortened(option)}"))
    return overrides


def from_tree(tree: Mapping[str, Any], origin: str = "", depth: int = 0) -> list[Override]:
    """Read a mapping of dotted keys, of nested mappings, or of both.

    Raises
    ------
    ScenarioError
        If mappings are nested more deeply than any parameter is.
    """
    if depth > _DEEPEST:
        raise ScenarioError("", f"has tables nested more than {_DEEPEST} deep", origin=origin)
    overrides = []
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            overrides += [
                inner._replace(key=f"{key}.{inner.key}")
                for inner in from_tree(value, origin, depth + 1)
            ]
        else:
            overrides.append(Override(key, value, origin))
    return overrides


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
    resolved: dict[str, Any] = {_NAME_KEY: experiment.name}
    for place in places(experiment):
        value = getattr(place.owner, place.name)
        if place.about.later and value == place.default:
            continue
        branch = resolved
        *parents, leaf = place.key.split(".")
        for parent in parents:
            branch = branch.setdefault(parent, {})
        branch[leaf] = value
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
        tree = read_toml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError("", f"cannot be read: {error.strerror}", origin=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError("", f"is not TOML: {error}", origin=str(path)) from None
    if isinstance(tree.get("run"), dict) and isinstance(tree.get("scenario"), dict):
        return dict(tree["scenario"])
    return tree


def read_toml(text: str) -> dict[str, Any]:
    """Read TOML, of which everything that cannot be read is a TOMLDecodeError."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError("it is nested too deeply") from None
    except (ValueError, OverflowError) as error:  # a number too long, a date that is none
        raise tomllib.TOMLDecodeError(str(error).partition(";")[0]) from None


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def split_name(tree: Mapping[str, Any], origin: str) -> tuple[str | None, dict[str, Any]]:
    """Take the experiment's name out of parameters read from TOML, if it is there."""
    rest = dict(tree)
    name = rest.pop(_NAME_KEY, None)
    if name is not None and not isinstance(name, str):
        raise ScenarioError(
            _NAME_KEY, f"must be the name of an experiment, not {written(name)}", name, origin
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


def _refuse(override: Override, known: list[str], name: str) -> None:
    key, value, origin = override
    inside = [place for place in known if place.startswith(f"{key}.")]
    if inside:
        raise ScenarioError(
            key, f"is a group; set one of {', '.join(inside)}, not {written(value)}", value, origin
        )
    groups = dict.fromkeys(
        f"{place.partition('.')[0]}.*" if "." in place else place for place in known
    )
    hint = nearest(key, known) or f"; there are {', '.join(groups)}"
    raise ScenarioError(key, f"is no parameter of {name}{hint}", value, origin)
