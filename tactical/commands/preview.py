"""`tactical preview`: what a scenario will do, as a picture, a film or JSON, before it runs."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tactical.faults import Refused
from tactical.scenario_arguments import add_scenario_arguments, load
from tactical.streams import Tolerant, print_json

if TYPE_CHECKING:
    from tactical.forecast import Forecast

SUMMARY = "show tracks, ranges, handovers and rates of an experiment before it runs"
EXAMPLES = """\
Without --output and --animation it writes SCENARIO-preview.png. The times of handover are exact:
they are solved for, and the emulation keeps to them.

examples:
  tactical preview direct-move
  tactical preview random-walk --seed 7 --output walk.svg
  tactical preview random-walk --seed 7 --animation walk.gif
  tactical preview direct-move --set uav.range_m=350 --json
  tactical preview contended --set satcom.rain.peak_db=12
"""

_PICTURES, _MOVIES = (".png", ".svg", ".pdf"), (".gif", ".mp4")
_TELL_EVERY_S = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_scenario_arguments(parser)
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="picture to write: .png, .svg or .pdf"
    )
    parser.add_argument(
        "--animation",
        type=Path,
        metavar="FILE",
        help="film to write: .gif, or .mp4 with the program ffmpeg",
    )


def run(options: argparse.Namespace) -> int:
    """Write what was asked for and print the schedule of handovers."""
    from tactical.forecast import forecast

    scenario = load(options).build(options.seed)
    what = forecast(scenario)
    output = options.output
    if output is None and options.animation is None and not options.json:
        output = Path(f"{scenario.name}-preview.png")
    for option, path, suffixes in (
        ("--output", output, _PICTURES),
        ("--animation", options.animation, _MOVIES),
    ):
        if path is not None:
            _check(option, path, suffixes)
    written = []
    if output is not None:
        written.append(str(_write(what, "--output", output)))
    if options.animation is not None:
        written.append(str(_write(what, "--animation", options.animation)))
    if options.json:
        print_json(_document(what, options.seed, written))
        return 0
    for change in what.handovers:
        print(f"At {change.time_s:g} s {change.station}: {change.before} -> {change.after}")
    for turn in what.satellite_handovers:
        before, after = turn.before or "no satellite", turn.after or "no satellite"
        print(f"At {turn.time_s:g} s {turn.satellite}, for all stations: {before} -> {after}")
    print(f"{len(what.handovers)} handovers of a single path in {scenario.duration_s:g} s.")
    for name in written:
        print(f"Written: {name}")
    return 0


def _check(option: str, path: Path, suffixes: tuple[str, ...]) -> None:
    if path.suffix not in suffixes:
        raise Refused(f"{option} {path}: the name must end in {', '.join(suffixes)}")
    try:
        if not path.parent.is_dir():
            raise Refused(f"{option} {path}: there is no directory {path.parent}")
    except OSError as error:
        raise Refused(f"{option} {path} cannot be used: {error.strerror}") from error
    if path.suffix == ".mp4" and shutil.which("ffmpeg") is None:
        raise Refused(
            f"{option} {path}: .mp4 needs the program ffmpeg (apt-get install ffmpeg), .gif does "
            "not"
        )


def _write(what: Forecast, option: str, path: Path) -> Path:
    from tactical import preview

    try:
        if option == "--output":
            preview.draw(what, path)
        else:
            with _telling() as tell:
                preview.animate(what, path, tell)
    except OSError as error:
        raise Refused(f"{option} {path} cannot be written: {error.strerror or error}") from error
    except ValueError as error:
        raise Refused(str(error)) from error
    return path


@contextmanager
def _telling() -> Iterator[Callable[[int, int], None]]:
    """Show how far a film is: a bar on a terminal, elsewhere a line now and then."""
    if Tolerant(sys.stderr).rewritable():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True)) as bars:
            bar = bars.add_task("frames")
            yield lambda done, total: bars.update(bar, completed=done, total=total)
        return
    told_s = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal told_s
        if time.monotonic() - told_s > _TELL_EVERY_S:
            told_s = time.monotonic()
            print(f"frame {done} of {total}", file=sys.stderr, flush=True)

    yield tell


def _document(what: Forecast, seed: int, written: list[str]) -> dict[str, object]:
    scenario = what.scenario
    accesses = scenario.accesses
    shares = {access.name: what.share_bps(access) for access in accesses}
    delays = {access.name: what.delay_s(access) for access in accesses}
    return {
        "scenario": scenario.name,
        "seed": seed,
        "duration_s": scenario.duration_s,
        "handovers": [change._asdict() for change in what.handovers],
        "satellite_handovers": [turn._asdict() for turn in what.satellite_handovers],
        "in_range": [reach._asdict() for reach in what.reaches],
        "rate_for_each_user": [
            {"access": name, "time_s": float(time_s), "rate_bps": float(rate_bps)}
            for name, share in shares.items()
            for time_s, rate_bps in zip(share.times_s, share.values, strict=True)
        ],
        "delay": [
            {"access": name, "time_s": float(time_s), "delay_s": float(delay_s)}
            for name, delay in delays.items()
            for time_s, delay_s in zip(delay.times_s, delay.values, strict=True)
        ],
        "written": written,
    }
