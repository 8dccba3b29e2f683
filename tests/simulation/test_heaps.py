"""Heaps and queues against simple models of them."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from simulation.heaps import set_timer, sift_down, sift_up, take_timer
from simulation.queueing import enqueue
from simulation.state import CLOCK, HEAP, LINK, PACKET, STEP, TIMER, as_objects, zeros

TIMES = st.integers(0, 20).map(float)


@given(st.lists(st.one_of(TIMES, st.none()), max_size=60))
def test_the_heap_gives_the_earliest_first(operations):
    """A time is put in, None takes one out."""
    heap = as_objects(zeros(HEAP, len(operations) + 1))
    size, model = 0, []
    for who, at_s in enumerate(operations):
        if at_s is not None:
            sift_up(heap, size, at_s, who)
            size += 1
            model.append((at_s, who))
        elif size:
            taken = heap[0].at_s, heap[0].who
            size -= 1
            if size:
                sift_down(heap, size, heap[size].at_s, heap[size].who)
            assert taken[0] == min(model)[0]
            model.remove(taken)


@given(st.lists(st.one_of(st.tuples(st.integers(0, 7), TIMES), st.none()), max_size=80))
def test_timers_ring_in_order_and_move_forward_only(operations):
    """(timer, time) starts a timer or moves it, None lets the first ring."""
    clock = as_objects(zeros(CLOCK, 1))[0]
    timers = as_objects(zeros(TIMER, 8))
    for timer in timers:
        timer.place = -1
    model: dict[int, float] = {}
    for operation in operations:
        if operation is not None:
            who, at_s = operation
            set_timer(clock, timers, who, at_s)
            model[who] = min(at_s, model.get(who, at_s))
        elif model:
            first_s = timers[0].at_s
            who = take_timer(clock, timers)
            assert first_s == model.pop(who) == min([first_s, *model.values()])
        assert clock.timers == len(model)
        assert {timers[timers[who].place].who for who in model} == set(model)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8)), min_size=1, max_size=60),
    st.integers(1, 5),
)
def test_a_link_serves_in_order_and_drops_what_finds_the_buffer_full(arrivals, buffer):
    """(pause before it, size) of packets; a size of one takes 4 s."""
    clock = as_objects(zeros(CLOCK, 1))[0]
    heap = as_objects(zeros(HEAP, 1))
    (link,) = as_objects(zeros(LINK, 1))
    link.s_per_bit, link.buffer, link.early, link.mask, link.delay_s = 4.0, buffer, buffer, 63, 0.5
    ring = as_objects(zeros(PACKET, 64))
    steps = as_objects(zeros(STEP, len(arrivals)))
    leaves: list[tuple[float, int]] = []  # of the packets that were accepted
    now_s = 0.0
    for number, (pause, size) in enumerate(arrivals):
        now_s += pause
        steps[number].bits = float(size)
        waiting = sum(at_s > now_s for at_s, _ in leaves)
        if waiting < buffer:
            begins_s = max([now_s, *(at_s for at_s, _ in leaves)])
            leaves.append((begins_s + 4.0 * size, number))
        enqueue(now_s, number, number, now_s, clock, heap, [link], ring, steps)
    accepted = [(ring[i].depart_s, ring[i].number) for i in range(link.tail)]
    assert accepted == leaves
    assert link.dropped == len(arrivals) - len(leaves)
    assert (clock.busy, heap[0].at_s) == (1, leaves[0][0] + 0.5)


def test_records_become_objects_and_back():
    records = zeros(LINK, 2)
    records["loss"], records["tail"] = [0.25, 0.5], [3, 4]
    objects = as_objects(records)
    assert isinstance(objects[0], SimpleNamespace)
    assert (objects[1].loss, objects[1].tail) == (0.5, 4)
