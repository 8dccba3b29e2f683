import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tactical.live.store import POINTS_KEPT, Store

CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(0, 3)),
        st.tuples(st.just("append"), st.sampled_from("pq"), st.integers()),
        st.just(("look",)),
    )
)


class Looker:
    """Keeps what it is told, as the page does."""

    def __init__(self) -> None:
        self.version = 0
        self.sections: dict[str, dict[str, Any]] = {}
        self.series: dict[str, list[Any]] = {}

    def look(self, store: Store) -> None:
        told = json.loads(json.dumps(store.since(self.version)))
        self.version = told["version"]
        for name, values in told["sections"].items():
            self.sections.setdefault(name, {}).update(values)
        for name, points in told["series"].items():
            self.series.setdefault(name, []).extend(points)


@given(CHANGES)
def test_who_looks_now_and_then_knows_what_a_late_joiner_is_told(changes: list[Any]) -> None:
    store, often, once = Store(), Looker(), Looker()
    for change in changes:
        match change:
            case ("put", section, key, value):
                store.put(section, key, value)
            case ("append", series, value):
                store.append(series, [value])
            case _:
                often.look(store)
    often.look(store)
    once.look(store)
    assert (often.sections, often.series) == (once.sections, once.series)


def test_what_stays_as_it_is_is_not_told_again() -> None:
    store = Store()
    store.put("run", "policy", "fdm")
    seen = store.since(0)["version"]
    store.put("run", "policy", "fdm")
    assert store.since(seen) == {"version": seen, "sections": {}, "series": {}}


def test_series_are_bounded_for_whoever_comes_and_whoever_stays() -> None:
    store, looker = Store(), Looker()
    for number in range(POINTS_KEPT + 50):
        store.append("rate", [number])
    looker.look(store)
    assert len(looker.series["rate"]) == POINTS_KEPT
    assert looker.series["rate"][-1] == [POINTS_KEPT + 49]
