import pytest
from hypothesis import given
from hypothesis import strategies as st

from tactical.playback import FASTEST, SLOWEST, Playback

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("play"), st.booleans()),
        st.tuples(st.just("speed"), st.floats(SLOWEST, FASTEST)),
        st.tuples(st.just("seek"), st.floats(-1e6, 1e6)),
        st.tuples(st.just("wait"), st.floats(0, 1e4)),
    )
)


@given(STEPS)
def test_the_position_is_always_in_the_recording_and_only_a_search_goes_back(steps) -> None:
    playback, now_s = Playback(100.0), 5.0
    for step in steps:
        before_s, at_end = playback.position(now_s), playback.position(now_s) == 100.0
        match step:
            case ("play", playing):
                playback = playback.play(playing, now_s)
                assert playback.position(now_s) == (0.0 if playing and at_end else before_s)
            case ("speed", speed):
                playback = playback.at_speed(speed, now_s)
                assert playback.position(now_s) == before_s
            case ("seek", position_s):
                playback = playback.seek(position_s, now_s)
            case ("wait", wait_s):
                now_s += wait_s
                assert playback.position(now_s) >= before_s
        assert 0.0 <= playback.position(now_s) <= 100.0


def test_speed_is_seconds_of_run_time_for_each_second() -> None:
    playback = Playback(100.0).play(True, 10.0).at_speed(4.0, 11.0)
    assert playback.position(13.0) == pytest.approx(1.0 + 2 * 4.0)


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf")])
def test_a_speed_that_makes_no_sense_changes_nothing(speed: float) -> None:
    with pytest.raises(ValueError, match="speed"):
        Playback(1.0).at_speed(speed, 0.0)
