"""What an experiment is: nodes, radios, links, traffic and movement, as inert data.

An *experiment* is a frozen dataclass of parameters, such as `DirectMove`; its ``build(seed)``
returns a `Scenario`, the nodes and links themselves. TOML overrides any parameter:

>>> import scenarios
>>> experiment = scenarios.load("direct-move", ["satcom.delay_s=0.3", "ships.count=3"])
>>> experiment.satcom.delay_s
0.3
>>> [station.name for station in experiment.build(seed=1).stations]
['ship1', 'ship2', 'ship3']
>>> scenarios.load("direct-move", ["satcom.delya_s=0.3"])
Traceback (most recent call last):
    ...
scenarios.errors.ScenarioError: --set satcom.delya_s=0.3: satcom.delya_s is no parameter of \
direct-move; did you mean satcom.delay_s?
"""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from scenarios.contended import Contended
from scenarios.convoy import Convoy
from scenarios.direct_move import DirectMove
from scenarios.errors import ScenarioError
from scenarios.experiment import (
    Experiment,
    fingerprint,
    from_options,
    from_tree,
    overridden,
    read_config,
    read_toml,
    split_name,
    to_toml,
)
from scenarios.leo_pass import LeoPass
from scenarios.lossy_satcom import LossySatcom
from scenarios.parameters import Parameter, Row, describe, nearest
from scenarios.random_walk import RandomWalk
from scenarios.scenario import (
    INTERFACE_NAME_LIMIT,
    PROTOCOLS,
    AccessPoint,
    CoverageChange,
    Handover,
    Link,
    LinkState,
    Satellite,
    SatelliteHandover,
    Scenario,
    Service,
    Station,
)
from scenarios.ship_to_ship import ShipToShip
from scenarios.ship_to_shore import ShipToShore
from scenarios.traffic import (
    Application,
    Constant,
    Files,
    Messages,
    OnOff,
    Requests,
    Schedule,
    Traffic,
)

_SHIPPED: tuple[type[Experiment], ...] = (
    DirectMove,
    RandomWalk,
    LossySatcom,
    Contended,
    ShipToShore,
    ShipToShip,
    Convoy,
    LeoPass,
)

EXPERIMENTS: Mapping[str, type[Experiment]] = {each.name: each for each in _SHIPPED}
"""The shipped experiments by name."""


def load(
    name: str,
    overrides: Mapping[str, Any] | Iterable[str] = (),
    config: Path | None = None,
) -> Experiment:
    """Return a shipped experiment with parameters changed.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS`.
    overrides : mapping or iterable of str
        Dotted keys to values, or strings ``KEY=VALUE`` with the value written as in TOML. They
        win over `config`.
    config : Path, optional
        A TOML file of parameters, as `to_toml` writes them; all of them optional. The
        ``run.toml`` of an earlier run works too and repeats its parameters.

    Returns
    -------
    Experiment
        Checked and ready to build.

    Raises
    ------
    ScenarioError
        For an unknown experiment or key, a wrong type or an impossible value; the message names
        the field, the value, what was expected, and the option or file.
    """
    experiment = _type(name)()
    changes = []
    if config is not None:
        declared, tree = split_name(read_config(config), str(config))
        if declared not in (None, name):
            raise ScenarioError(
                "experiment", f"is {declared!r}, but {name!r} was asked for", declared, str(config)
            )
        changes += from_tree(tree, str(config))
    if isinstance(overrides, Mapping):
        changes += from_tree(overrides)
    else:
        changes += from_options(overrides, experiment)
    return overridden(experiment, changes)


def from_toml(text: str, table: str = "", origin: str = "") -> Experiment:
    """Return the experiment that `to_toml` wrote.

    Parameters
    ----------
    text : str
        TOML with a key ``experiment``; parameters that are missing take their defaults.
    table : str
        The table it is below, as given to `to_toml`.
    origin : str
        Where the text comes from, for messages.

    Raises
    ------
    ScenarioError
        As `load`, or if the text is not TOML or names no experiment.
    """
    try:
        tree: Any = read_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError("", f"not TOML: {error}", origin=origin) from None
    for part in table.split(".") if table else ():
        tree = tree.get(part)
        if not isinstance(tree, dict):
            raise ScenarioError(table, "must be a table of parameters, but is missing", "", origin)
    name, parameters = split_name(tree, origin)
    if name is None:
        raise ScenarioError("experiment", "must name an experiment, but is missing", None, origin)
    return overridden(_type(name, origin)(), from_tree(parameters, origin))


def _type(name: str, origin: str = "") -> type[Experiment]:
    if name not in EXPERIMENTS:
        raise ScenarioError(
            "",
            f"no experiment {name!r}; there is {', '.join(sorted(EXPERIMENTS))}"
            + nearest(name, list(EXPERIMENTS)),
            name,
            origin,
        )
    return EXPERIMENTS[name]


__all__ = [
    "EXPERIMENTS",
    "INTERFACE_NAME_LIMIT",
    "PROTOCOLS",
    "AccessPoint",
    "Application",
    "Constant",
    "Contended",
    "Convoy",
    "CoverageChange",
    "DirectMove",
    "Experiment",
    "Files",
    "Handover",
    "LeoPass",
    "Link",
    "LinkState",
    "LossySatcom",
    "Messages",
    "OnOff",
    "Parameter",
    "RandomWalk",
    "Requests",
    "Row",
    "Satellite",
    "SatelliteHandover",
    "Scenario",
    "ScenarioError",
    "Schedule",
    "Service",
    "ShipToShip",
    "ShipToShore",
    "Station",
    "Traffic",
    "describe",
    "fingerprint",
    "from_toml",
    "load",
    "to_toml",
]
