import dataclasses
import json
import pickle
import re
import subprocess
import sys
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import scenarios
from scenarios import DirectMove, ScenarioError

BAD = [
    ("satcom.delay_s=-1", "satcom.delay_s must be a number in s, 0 or more and at most 60, not -1"),
    ("satcom.delay_s=250ms", "must be a number in s, 0 or more and at most 60, not '250ms'"),
    ("satcom.delay_s=nan", "must be a number in s, 0 or more and at most 60, not nan"),
    ("satcom.delay_s=", "must be a number in s, 0 or more and at most 60, not ''"),
    ("satcom.loss=1", "must be a number, 0 or more and below 1, not 1"),
    ("satcom.loss=-0.1", "must be a number, 0 or more and below 1, not -0.1"),
    (
        "uav.rate_bps=1000.5",
        "must be a whole number in bit/s, 1000 or more and at most 100000000000",
    ),
    ("uav.rate_bps=true", "not True"),
    ("uav.rate_bps=0", "not 0"),
    ("uav.channel=14", "must be a whole number, 1 or more and at most 13, not 14"),
    ("uav.range_m=0", "must be a number in m, above 0 and at most 100000000, not 0"),
    ("uav.range_m=1e200", "at most 100000000, not 1e+200"),
    ("entry_time_s=1e300", "at most 86400, not 1e+300"),
    (f"duration_s=1{'0' * 400}", "at most 86400, not 1000"),
    (f"duration_s=1{'0' * 5000}", "at most 86400, not '1000"),
    (f"duration_s={'[' * 5000}", "at most 86400, not '[[["),
    (f"{'a.' * 3000}b=1", "is no parameter of direct-move"),
    ("ships.count=2.5", "ships.count must be a whole number in ships, 1 or more and at most 50"),
    ("ships.count='two'", "not 'two'"),
    ("ships.speed_mps=0", "above 0"),
    ("duration_s=10.5", "duration_s must be a whole number in s"),
    ("traffic.congestion_control=Cubic", "the name of a congestion control of the kernel"),
    ("traffic.congestion_control=abcdefghijklmnop", "the name of a congestion control"),
    ("traffic.congestion_control='a b'", "the name of a congestion control"),
    ("controller.capacity_share=1.01", "must be a number, above 0 and at most 1, not 1.01"),
    ("captures.snap_length_bytes=64", "96 or more"),
    (
        "satcom.delya_s=0.3",
        "satcom.delya_s is no parameter of direct-move; did you mean satcom.delay_s?",
    ),
    ("controler.kappa=2", "did you mean controller.kappa?"),
    ("delay_s=0.3", "did you mean satcom.delay_s or uav.delay_s?"),
    ("colour=blue", "there are duration_s, entry_time_s, satcom.*, uav.*, ships.*, traffic.*"),
    ("satcom=3", "satcom is a group; set one of satcom.rate_bps, satcom.delay_s"),
    ("satcom.delay_s.x=3", "is no parameter of direct-move"),
    ("satcom.delay_s", "must be KEY=VALUE, not 'satcom.delay_s'"),
    ("=3", "must be KEY=VALUE"),
    ("satcom.delay_s=0.3\nuav.delay_s=0.2", "satcom.delay_s must be a number in s"),
    ("entry_time_s=100", "entry_time_s must be less than duration_s"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_a_bad_option_is_refused_in_one_sentence_that_names_it(text, message):
    with pytest.raises(ScenarioError) as caught:
        scenarios.load("direct-move", [text])
    assert message in str(caught.value)
    assert str(caught.value).startswith("--set")
    if "=" in text[1:]:
        assert caught.value.field == text.partition("=")[0]


def test_options_are_read_as_toml_and_text_may_go_bare():
    experiment = scenarios.load(
        "direct-move",
        ["satcom.delay_s=0.3", "uav.rate_bps=2_000_000", " traffic.congestion_control = bbr "],
    )
    assert isinstance(experiment, DirectMove)
    assert experiment.satcom.delay_s == 0.3
    assert experiment.uav.rate_bps == 2e6
    assert experiment.traffic.congestion_control == "bbr"
    quoted = scenarios.load("direct-move", ['traffic.congestion_control="bbr"'])
    assert isinstance(quoted, DirectMove)
    assert quoted.traffic.congestion_control == "bbr"


def test_mappings_may_be_dotted_or_nested():
    dotted = scenarios.load("direct-move", {"satcom.delay_s": 0.3})
    assert dotted == scenarios.load("direct-move", {"satcom": {"delay_s": 0.3}})


def test_options_win_over_a_file(tmp_path):
    config = tmp_path / "my.toml"
    config.write_text("entry_time_s = 30\n[satcom]\ndelay_s = 0.3\nloss = 0.01\n")
    experiment = scenarios.load("direct-move", ["satcom.delay_s=0.4"], config)
    assert isinstance(experiment, DirectMove)
    assert (experiment.entry_time_s, experiment.satcom.delay_s, experiment.satcom.loss) == (
        30.0,
        0.4,
        0.01,
    )


def test_a_file_and_options_need_to_fit_only_together(tmp_path):
    config = tmp_path / "short.toml"
    config.write_text("duration_s = 30\n")
    with pytest.raises(ScenarioError, match=re.escape(f"{config}: entry_time_s must be less than")):
        scenarios.load("direct-move", [], config)
    experiment = scenarios.load("direct-move", ["entry_time_s=10"], config)
    assert isinstance(experiment, DirectMove)
    assert (experiment.duration_s, experiment.entry_time_s) == (30.0, 10.0)


def test_the_last_of_two_options_for_the_same_parameter_wins():
    experiment = scenarios.load("direct-move", ["entry_time_s=10", "entry_time_s=20"])
    assert isinstance(experiment, DirectMove)
    assert experiment.entry_time_s == 20.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("satcom.delay_s = ", "is not TOML"),
        ("[satcom]\ndelya_s = 1\n", "satcom.delya_s is no parameter of direct-move; did you mean"),
        ("[satcom]\ndelay_s = -1\n", "satcom.delay_s must be a number in s"),
        ("experiment = 'random-walk'\n", "is 'random-walk', but 'direct-move' was asked for"),
        ("experiment = 3\n", "must be the name of an experiment, not 3"),
        ("satcom = 3\n", "satcom is a group"),
        ("[satcom]\ndelay_s = [1, 2]\n", "not [1, 2]"),
        ("[satcom]\ndelay_s = 1979-05-27\n", "satcom.delay_s must be a number in s"),
    ],
)
def test_a_bad_file_is_refused_by_name(tmp_path, text, message):
    config = tmp_path / "my.toml"
    config.write_text(text)
    with pytest.raises(ScenarioError, match=re.escape(message)) as caught:
        scenarios.load("direct-move", [], config)
    assert str(caught.value).startswith(str(config))


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path):
    with pytest.raises(ScenarioError, match=r"missing\.toml: cannot be read: No such file"):
        scenarios.load("direct-move", [], tmp_path / "missing.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="is not TOML"):
        scenarios.load("direct-move", [], tmp_path / "bytes.toml")


def test_an_unknown_experiment_names_the_known_ones():
    with pytest.raises(
        ScenarioError, match=r"no experiment 'direct-mov'; there is .*did you mean direct-move"
    ):
        scenarios.load("direct-mov")


def test_toml_round_trips_alone_and_inside_a_larger_file(tmp_path):
    experiment = scenarios.load("direct-move", ["satcom.delay_s=0.1", "uav.range_m=1e3"])
    assert scenarios.from_toml(scenarios.to_toml(experiment)) == experiment
    run = '[run]\nprotocol = "fdm"\n\n' + scenarios.to_toml(experiment, "scenario")
    assert scenarios.from_toml(run, "scenario") == experiment
    assert tomllib.loads(run)["run"] == {"protocol": "fdm"}
    (tmp_path / "run.toml").write_text(run)
    assert scenarios.load("direct-move", [], tmp_path / "run.toml") == experiment


def test_toml_without_an_experiment_is_refused():
    for text, message in [
        ("duration_s = 3\n", "experiment must name an experiment"),
        ("experiment = 'x'\n", "no experiment 'x'"),
        ("experiment =\n", "not TOML"),
    ]:
        with pytest.raises(ScenarioError, match=message):
            scenarios.from_toml(text)
    with pytest.raises(ScenarioError, match="scenario must be a table"):
        scenarios.from_toml("experiment = 'direct-move'\n", "scenario")


@given(
    st.floats(0, 60),
    st.integers(1000, 10**11),
    st.floats(0, 1, exclude_max=True),
    st.integers(1, 50),
    st.from_regex(r"[a-z][a-z0-9_]{0,14}", fullmatch=True),
)
def test_any_valid_experiment_round_trips(delay_s, rate_bps, loss, count, congestion_control):
    experiment = scenarios.load(
        "direct-move",
        {
            "satcom.delay_s": delay_s,
            "uav.rate_bps": rate_bps,
            "satcom.loss": loss,
            "ships.count": count,
            "ships.spacing_m": 1.0,
            "traffic.congestion_control": congestion_control,
        },
    )
    restored = scenarios.from_toml(scenarios.to_toml(experiment))
    assert restored == experiment
    assert scenarios.fingerprint(restored) == scenarios.fingerprint(experiment)
    assert pickle.loads(pickle.dumps(experiment)) == experiment
    assert json.loads(json.dumps(dataclasses.asdict(experiment))) == dataclasses.asdict(experiment)


def test_the_fingerprint_is_the_same_on_every_machine():
    # Stored: it names run directories, so a change of it is a change of every experiment.
    assert scenarios.fingerprint(DirectMove()) == "a4059e10"


def test_the_fingerprint_does_not_depend_on_how_a_value_is_written():
    written = [["uav.rate_bps=2000000"], ["uav.rate_bps=2e6"], {"uav": {"rate_bps": 2_000_000}}]
    assert len({scenarios.fingerprint(scenarios.load("direct-move", way)) for way in written}) == 1


def test_the_fingerprint_tells_experiments_apart():
    changed = scenarios.load("direct-move", ["uav.buffer_packets=21"])
    assert scenarios.fingerprint(changed) != scenarios.fingerprint(DirectMove())


def test_every_parameter_is_described_and_can_be_set_to_what_it_is():
    experiment = DirectMove()
    rows = scenarios.describe(experiment)
    assert len({row.key for row in rows}) == len(rows) >= 20
    assert all(row.meaning and row.expected for row in rows)
    same = scenarios.load("direct-move", [f"{row.key}={row.value}" for row in rows])
    assert same == experiment


def test_an_error_survives_the_way_between_processes():
    error = ScenarioError("satcom.delay_s", "must be a number", -1, "--set satcom.delay_s=-1")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.field, copy.value) == (str(error), error.field, error.value)


def test_importing_scenarios_stays_light():
    code = (
        "import scenarios, sys; print(sorted({'pandas', 'scipy', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"a = {'[' * 5000}", "nested too deeply"),
        (f"duration_s = 1{'0' * 5000}", "4300 digits"),
        (f"{'.'.join('a' * 3000)} = 1", "nested more than 20 deep"),
    ],
)
def test_a_file_beyond_what_python_reads_is_refused(tmp_path, text, problem):
    (tmp_path / "much.toml").write_text(text)
    with pytest.raises(ScenarioError, match=problem):
        scenarios.load("direct-move", [], tmp_path / "much.toml")
