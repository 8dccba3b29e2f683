"""Counters are read as the kernel writes them; queues by netlink as tc shows them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tactical.emulation.counters import interface_counters, protocol_counters, qdiscs

NETSTAT = """\
TcpExt: SyncookiesSent TCPLostRetransmit
TcpExt: 0 5
IpExt: InNoRoutes InOctets
IpExt: 0 7
MPTcpExt: MPCapableSYNRX MPTCPRetrans
MPTcpExt: 4 0
"""


def test_counters_have_the_names_of_nstat() -> None:
    assert protocol_counters(NETSTAT) == {
        "TcpExtSyncookiesSent": 0,
        "TcpExtTCPLostRetransmit": 5,
        "MPTcpExtMPCapableSYNRX": 4,
        "MPTcpExtMPTCPRetrans": 0,
    }


@pytest.mark.parametrize("file", ["netstat", "snmp"])
def test_counters_of_this_kernel(file: str) -> None:
    if shutil.which("nstat") is None:
        pytest.skip("nstat (iproute2) is not installed")
    mine = protocol_counters(Path(f"/proc/net/{file}").read_text())
    said = subprocess.run(
        ["nstat", "-a", "-z", "-s", "-j"], capture_output=True, text=True, check=True
    ).stdout
    assert mine
    assert mine.keys() <= json.loads(said)["kernel"].keys()


def test_interfaces_of_this_machine() -> None:
    found = interface_counters(Path("/proc/net/dev").read_text())
    assert found.keys() == {each.name for each in Path("/sys/class/net").iterdir()}
    loopback = Path("/sys/class/net/lo/statistics")
    before = int((loopback / "tx_packets").read_text())
    again = interface_counters(Path("/proc/net/dev").read_text())["lo"]
    assert found["lo"]["tx_packets"] <= before <= again["tx_packets"]


_SCRIPT = """
set -e
sysctl -q -w net.ipv6.conf.default.disable_ipv6=1
ip link add one type veth peer name two
ip link set one up
ip link set two up
tc qdisc add dev one root handle 1: htb default 2
tc class add dev one parent 1: classid 1:2 htb rate 1kbit burst 1600
tc class add dev one parent 1: classid 1:4 htb rate 1mbit
ip address add 10.9.9.1/24 dev one
ip neighbour replace 10.9.9.2 lladdr 02:00:00:00:00:01 dev one nud permanent
ping -c 5 -i 0.01 -W 0.01 -s 1000 10.9.9.2 > /dev/null || true
"$0" -c "
import dataclasses, json
from tactical.emulation.counters import qdiscs
print(json.dumps([dataclasses.asdict(each) for each in qdiscs()]))"
tc -s -j qdisc show invisible
"""


def test_queues_and_their_backlog_as_tc_shows_them() -> None:
    if os.geteuid() != 0 or shutil.which("tc") is None or shutil.which("unshare") is None:
        pytest.skip("needs root, tc and unshare, to queue packets in a namespace of its own")
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", _SCRIPT, sys.executable],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode:
        pytest.skip(f"this machine has no HTB or veth: {done.stderr.strip().splitlines()[-1]}")
    mine, theirs = (json.loads(line) for line in done.stdout.splitlines()[-2:])
    ours = {(each["interface"], each["parent"] & 0xFFFF): each for each in mine}
    leaf = next(each for each in theirs if each.get("parent") == "1:2")
    slow = ours["one", 2]
    assert (slow["kind"], slow["drops"]) == (leaf["kind"], leaf["drops"])
    assert slow["backlog_packets"] + slow["packets"] == leaf["qlen"] + leaf["packets"] == 5
    assert slow["backlog_packets"] > 0
    assert slow["backlog_bytes"] > 1042
    assert ours["one", 4]["packets"] == 0
    assert ours["one", 0xFFFF]["kind"] == "htb"


def test_listing_queues_needs_no_rights() -> None:
    assert all(each.kind for each in qdiscs())


_SAMPLED = """
set -e
sysctl -q -w net.ipv6.conf.default.disable_ipv6=1
for port in satcom-eth3 shore-eth2 uav-eth2 shore-eth3; do
    ip link add $port type veth peer name p$port
    ip link set $port up
    ip link set p$port up
    tc qdisc add dev $port root handle 1: htb default 2
    tc class add dev $port parent 1: classid 1:2 htb rate 1kbit burst 1600
done
ip address add 10.9.9.1/24 dev uav-eth2
ip neighbour replace 10.9.9.2 lladdr 02:00:00:00:00:01 dev uav-eth2 nud permanent
"$0" -c "
import pathlib, subprocess, sys, time
import scenarios
from tactical.emulation.counters import BacklogSampler
from tactical.emulation.events import EventLog
from tactical.emulation.plan import make_plan
from tactical.emulation.sampling import sampling
plan = make_plan(scenarios.load('direct-move').build(1), 'fdm')
with EventLog(pathlib.Path(sys.argv[1])) as events, sampling(
    'backlog sampler', BacklogSampler(plan, events).sample
):
    time.sleep(0.8)
    ping = ('ping', '-c', '5', '-i', '0.01', '-W', '0.01', '-s', '1000', '10.9.9.2')
    subprocess.run(ping, capture_output=True)
    time.sleep(1.2)
    subprocess.run(('tc', 'class', 'delete', 'dev', 'uav-eth2', 'classid', '1:2'))
    subprocess.run(('tc', 'qdisc', 'delete', 'dev', 'uav-eth2', 'root'))
    time.sleep(1.2)
" "$1"
"""


def test_backlog_is_written_when_it_changes_and_when_its_queue_goes(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("tc") is None or shutil.which("unshare") is None:
        pytest.skip("needs root, tc and unshare, to queue packets in a namespace of its own")
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", _SAMPLED, sys.executable, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode:
        pytest.skip(f"this machine has no HTB or veth: {done.stderr.strip().splitlines()[-1]}")
    rows = [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    assert {row["kind"] for row in rows} == {"backlog"}
    told = [row for row in rows if row["port"] == "uav-eth2" and row["queue_id"] == 1]
    waiting = [row["backlog_packets"] for row in told]
    assert waiting[0] == waiting[-1] == 0
    assert max(waiting) >= 3
    assert told[0]["datapath"] == "uav"
    # Idle queues are told of once.
    assert len([row for row in rows if row["port"] == "satcom-eth3"]) == 1
