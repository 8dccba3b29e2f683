"""`tactical run`: make runs of an experiment, analyse them, compare the protocols."""

from __future__ import annotations

import argparse
from pathlib import Path

import scenarios
from tactical.emulation.adapters import MININET, MININET_WIFI, NETWORKS, problem
from tactical.faults import Refused
from tactical.host.choice import BACKENDS, choose
from tactical.host.simulated import SimulatedMachine
from tactical.judging import judge
from tactical.runs import add_time_argument, check_writable, make, runs_directory
from tactical.scenario_arguments import add_scenario_arguments, check_layout, load
from tactical.streams import print_json

SUMMARY = "run an experiment, analyse it, compare the protocols"
EXAMPLES = """\
KEY=VALUE changes a parameter; `tactical check SCENARIO` lists them with units and bounds. --config
takes a TOML file of them, also the run.toml of an earlier run, of which it repeats the parameters
but neither seed, protocol nor backend: give --seed, --protocol and --backend for these. --set wins
over --config.

In real time a run takes its scenario's duration and about a minute more, and in a virtual machine
it needs a processor to itself; where it had none, it is marked OVERLOADED. In virtual time it takes
some minutes, more on a busy machine, and is never the worse for it. --dry-run tells what would be
run, `tactical preview SCENARIO` what will happen.

examples:
  tactical run direct-move
  tactical run direct-move --backend sim
  tactical run direct-move --protocol mptcp --set traffic.congestion_control=bbr
  tactical run direct-move --set uav.rate_bps=2e6 --set duration_s=200 --backend vm
  tactical run direct-move --config RUN/run.toml --seed 7 --protocol fdm --json > results.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_scenario_arguments(parser)
    parser.add_argument(
        "--protocol",
        choices=[*scenarios.PROTOCOLS, "all"],
        default="all",
        help="sptcp: one TCP connection that hands over; mptcp: the kernel's multipath TCP; "
        "fdm: multipath TCP in queues set by flow deviation; all: each in turn (default)",
    )
    parser.add_argument(
        "--backend",
        choices=BACKENDS,
        default="auto",
        help="native: this machine's kernel, as root; vm: a virtual machine; auto: native where "
        "it works (default); sim: no kernel and no root, packets are simulated in seconds "
        "(docs/simulation.md)",
    )
    add_time_argument(parser)
    parser.add_argument(
        "--network",
        choices=NETWORKS,
        default=MININET,
        help="what the network is built with: Mininet and the kernel's simulated radios (default), "
        "or Mininet-WiFi where it is installed, in real time (docs/emulation.md)",
    )
    parser.add_argument(
        "--runs-dir",
        type=Path,
        default=Path("runs"),
        metavar="DIR",
        help="where run directories are made (default: runs)",
    )
    parser.add_argument(
        "--kill",
        metavar="NAME@SECONDS",
        help="end a process of the run as a crash would, at this run time, to see what comes of "
        "it: hostapd@10, ovs-vswitchd@10, dumpcap@10, iperf3@10, tactical.controller@10",
    )
    parser.add_argument(
        "--fail-on-overload",
        action="store_true",
        help="exit with status 3 if the machine could not keep up with a run, whose figures then "
        "show the machine; possible in real time only",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print every privileged command and do nothing"
    )


def run(options: argparse.Namespace) -> int:
    """Run each protocol in turn; fails if one of the runs did."""
    from tactical import experiment as lifecycle
    from tactical.dry_run import dry_run
    from tactical.emulation.injection import Kill

    experiment = load(options)
    scenario = experiment.build(options.seed)
    check_layout(scenario)
    if (reason := problem(options.network)) is not None:
        raise Refused(f"--network {options.network}: {reason}")
    if options.network == MININET_WIFI:
        if options.time == "virtual":
            raise Refused(
                f"--network {options.network} needs --time real: a machine in virtual time has "
                "only what the testbed itself needs in its memory"
            )
        options.time = "real"
    try:
        kill = None if options.kill is None else Kill.parse(options.kill)
    except ValueError as error:
        raise Refused(f"--kill {error}") from None
    machine = choose(options.backend, options.time)
    protocols = scenarios.PROTOCOLS if options.protocol == "all" else (options.protocol,)
    requests = [
        lifecycle.Request(
            experiment,
            protocol,
            options.seed,
            machine.name,
            options.runs_dir,
            options.time,
            options.network,
            kill,
        )
        for protocol in protocols
    ]
    if options.dry_run and machine.name == SimulatedMachine.name:
        raise Refused("--dry-run shows what needs root, and --backend sim needs it for nothing")
    if options.dry_run:
        commands = dry_run(requests)
        if options.json:
            print_json({"commands": commands})
        else:
            print("\n".join(commands))
        return 0
    parent = runs_directory(options.runs_dir, scenario.name)
    machine.check([parent])
    check_writable(options.runs_dir, parent)
    run_dirs, stopped = make(requests, scenario.duration_s)
    status = judge(run_dirs, as_json=options.json, fail_on_overload=options.fail_on_overload)
    if stopped is not None:
        raise stopped
    return status
