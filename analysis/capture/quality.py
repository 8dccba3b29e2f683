"""How far a capture file can be trusted."""

import numpy as np
from numpy.typing import NDArray

from analysis.capture.result import FileQuality, InterfaceResult
from analysis.transfer.rates import rates_bps, step_s
from analysis.transfer.trace import covering
from captures import Capture

I64 = NDArray[np.int64]

# Stamps are compared with these steps: a clock that ticks in microseconds shows in a file that
# counts nanoseconds.
_STEPS_NS = (1_000_000_000, 10_000_000, 4_000_000, 1_000_000, 1_000, 100, 1)
_NAMES = {1_000_000: "microseconds", 1_000_000_000: "nanoseconds", 1_000: "milliseconds"}


def quality(capture: Capture) -> FileQuality:
    """Judge one file.

    Parameters
    ----------
    capture : Capture

    Returns
    -------
    FileQuality
    """
    packets = capture.packets
    ticks = sorted({each.ticks_per_second for each in capture.interfaces})
    steps_back, largest = _steps_back(packets.time_ns, packets.interface)
    known = capture.first_ns is not None and capture.last_ns is not None
    limits = {each.snap_length_bytes for each in capture.interfaces if each.snap_length_bytes}
    kept = int(packets.captured_bytes.max(initial=0)) if capture.snapped_frames else 0
    resolution_s, interfaces = _resolution_s(packets.time_ns), _interfaces(capture)
    packets.release()
    return FileQuality(
        file=str(capture.path),
        frames=capture.frames,
        tcp_frames=len(packets),
        start_epoch_s=capture.first_ns / 1e9 if capture.first_ns is not None else None,
        duration_s=(capture.last_ns - capture.first_ns) / 1e9
        if known and capture.last_ns is not None and capture.first_ns is not None
        else None,
        link_types=tuple(sorted({each.link_type for each in capture.interfaces})),
        # Recorders that keep whole packets write a limit that none reaches.
        snap_length_bytes=min(limits, default=kept) if capture.snapped_frames else None,
        snapped_frames=capture.snapped_frames,
        received=capture.received,
        dropped=capture.dropped,
        large_frames=capture.large_frames,
        largest_frame_bytes=capture.largest_frame_bytes,
        undecoded=capture.undecoded,
        fragments=capture.fragments,
        clock=", ".join(_NAMES.get(each, f"1/{each} s") for each in ticks),
        clock_resolution_s=resolution_s,
        steps_back=steps_back,
        largest_step_back_s=largest,
        damage=capture.damage,
        recorder=capture.application,
        remarks=capture.remarks,
        interfaces=interfaces,
    )


def _steps_back(time_ns: I64, interface: NDArray[np.int32]) -> tuple[int, float]:
    count, largest = 0, 0
    for each in np.unique(interface).tolist():
        steps = np.diff(time_ns[interface == each])
        count += int((steps < 0).sum())
        largest = max(largest, -int(steps.min(initial=0)))
    return count, largest / 1e9


def _resolution_s(time_ns: I64) -> float | None:
    if len(time_ns) < 3:
        return None
    return next(step / 1e9 for step in _STEPS_NS if not (time_ns % step).any())


def _interfaces(capture: Capture) -> tuple[InterfaceResult, ...]:
    packets = capture.packets
    found: list[InterfaceResult] = []
    for index in np.unique(packets.interface).tolist():
        own = packets.interface == index
        sizes = packets.wire_bytes[own]
        at_s = (packets.time_ns[own] - int(packets.time_ns[own].min())) / 1e9
        span_s = float(np.ptp(at_s))
        name = capture.interfaces[index].name if index < len(capture.interfaces) else ""
        found.append(
            InterfaceResult(
                name=name or capture.path.name,
                packets=len(sizes),
                wire_bytes=int(sizes.sum()),
                mean_rate_bps=8 * int(sizes.sum()) / span_s if span_s > 0 else None,
                peak_rate_bps=(
                    float(rates_bps(at_s, sizes, covering([at_s], step_s(span_s))).max())
                    if span_s > 0
                    else None
                ),
            )
        )
    return tuple(found)
