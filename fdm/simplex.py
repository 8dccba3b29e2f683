"""Compiled loops of max-min fair filling: a revised simplex method with paths made as needed.

All rising demands share one level t. Each linear program is

    max t   with   Σ x over the paths of k = a_k + b_k·t,   Σ x over link e ≤ u_e,   x ≥ 0,

with b = 1 for a rising demand and 0 for one that is held at a. Its rows are the demands and those
links that some path in store uses. Optimal duals are link lengths; the rising demands that have a
distance above 0 at these lengths cannot get more without taking from others that have no more
(D. Nace, M. Pióro, "Max-min fairness and its applications to routing and load-balancing in
communication networks", IEEE Comm. Surveys 10(4), 2008). They are held, and the level rises on
from the same basis.
"""

import numpy as np

from fdm.kernels import Floats, Ints, compiled, tree

_PIVOT = 1e-9
"""Entries of a column that are too small to pivot on."""

_GAIN = 1e-9
"""Reduced cost, relative to that of the level, from which a column enters."""

_LEVEL = -1
"""The column of t; a path is its number, the slack of link e is −2 − e."""


@compiled
def pivoted(inverse: Floats, size: int, column: Floats, at: int) -> None:
    """Bring a column into the basis in a place."""
    row = inverse[at]
    factor = 1.0 / column[at]
    for j in range(size):
        row[j] *= factor
    for i in range(size):
        if i != at and column[i] != 0.0:
            times, other = column[i], inverse[i]
            for j in range(size):
                other[j] -= times * row[j]


@compiled
def filled(
    tail: Ints,
    head: Ints,
    out: Ints,
    out_link: Ints,
    origin: Ints,
    destination: Ints,
    rate: Floats,
    room: Floats,
    together: bool,
    most: int,
) -> tuple[bool, Floats, Floats]:
    """Return max-min fair rates within the room of links.

    Commodities are in order of their origin, each with a rate above 0 and a path. With `together`
    the level is a multiple of all rates, and the first bottleneck ends it. The first answer says
    whether it was finished within so many steps; the last are link lengths of the last bottleneck.
    """
    links, count, nodes = len(room), len(rate), len(out) - 1
    distance, key = np.empty(nodes), np.empty(nodes)
    arrived, heap = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    place, wanted = np.empty(nodes, np.int64), np.zeros(nodes, np.int64)
    length, proof = np.zeros(links), np.zeros(links)
    row_of = np.full(links, -1, np.int64)
    link_of = np.full(count + links, -1, np.int64)
    basis = np.empty(count + links, np.int64)
    value = np.zeros(count + links)
    inverse = np.zeros((2 * count + 16, 2 * count + 16))
    owner = np.empty(4 * count + 16, np.int64)
    first = np.zeros(4 * count + 17, np.int64)
    pool = np.empty(32 * count + nodes, np.int64)
    path = np.empty(nodes + 1, np.int64)
    slope = np.ones(count)  # b of the rising, 0 of the others
    rising = np.ones(count, np.bool_)
    held = np.zeros(count)
    dual = np.zeros(count + links)
    paths, used, rows, level, up = 0, 0, count, 0.0, -1
    if together:
        slope[:] = rate
    for e in range(links):
        length[e] = 1.0 / room[e] if room[e] > 0.0 else np.inf
    done, fresh = False, True
    for _ in range(most):
        if fresh:
            # The shortest path of every commodity that is not in store and would gain.
            fresh = False
            added = 0
            k = 0
            while k < count:
                upto, remaining = k, 0
                while upto < count and origin[upto] == origin[k]:
                    if wanted[destination[upto]] == 0:
                        wanted[destination[upto]] = 1
                        remaining += 1
                    upto += 1
                tree(
                    origin[k], out, out_link, head, length, wanted, remaining,
                    distance, arrived, heap, key, place,
                )  # fmt: skip
                for i in range(k, upto):
                    wanted[destination[i]] = 0
                for i in range(k, upto):
                    total, hops, at = dual[i], 0, destination[i]
                    while at != origin[i]:
                        e = arrived[at]
                        path[hops] = e
                        hops += 1
                        if row_of[e] >= 0:
                            total += dual[row_of[e]]
                        at = tail[e]
                    if paths >= count and total >= -_GAIN:
                        continue
                    added += 1
                    if paths == len(owner):
                        more = np.empty(2 * paths, np.int64)
                        more[:paths] = owner
                        owner = more
                        begins = np.zeros(2 * paths + 1, np.int64)
                        begins[: paths + 1] = first
                        first = begins
                    if used + hops > len(pool):
                        longer = np.empty(2 * (used + hops), np.int64)
                        longer[:used] = pool[:used]
                        pool = longer
                    owner[paths] = i
                    for j in range(hops):
                        e = path[hops - 1 - j]
                        pool[used + j] = e
                        if row_of[e] < 0:
                            row_of[e] = rows
                            link_of[rows] = e
                            basis[rows] = -2 - e
                            value[rows] = room[e]
                            dual[rows] = 0.0
                            rows += 1
                    used += hops
                    paths += 1
                    first[paths] = used
                k = upto
            if rows > len(inverse):
                wider = np.zeros((rows + rows // 2, rows + rows // 2))
                wider[: len(inverse), : len(inverse)] = inverse
                for i in range(count, rows):
                    if wider[i, i] == 0.0 and basis[i] == -2 - link_of[i]:
                        wider[i, i] = 1.0
                inverse = wider
            if up == -1 and level == 0.0 and paths == count:
                for i in range(count):
                    basis[i] = i
                    inverse[i, i] = 1.0
                    for j in range(first[i], first[i + 1]):
                        inverse[row_of[pool[j]], i] = -1.0
                for i in range(count, rows):
                    inverse[i, i] = 1.0
            elif added > 0:
                for i in range(count, rows):
                    if basis[i] == -2 - link_of[i] and inverse[i, i] == 0.0:
                        inverse[i, i] = 1.0
            if added == 0 and up >= 0:
                # Optimal: a bottleneck. Hold those that it concerns; the level leaves the basis.
                level += value[up]
                value[up] = 0.0
                for e in range(links):
                    proof[e] = dual[row_of[e]] if row_of[e] >= 0 else 0.0
                largest, widest = 0.0, -1
                for i in range(count, rows):
                    if dual[i] > largest:
                        largest, widest = dual[i], i
                if together or widest < 0:
                    for i in range(count):
                        held[i] = level * slope[i]
                    done = together
                    break
                for i in range(count):
                    if rising[i] and dual[i] < -_GAIN:
                        rising[i] = False
                        slope[i] = 0.0
                        held[i] = level
                column = inverse[:rows, widest].copy()
                basis[up] = -2 - link_of[widest]
                pivoted(inverse, rows, column, up)
                up = -1
                dual[:rows] = 0.0
        # How far the level may rise before a rising demand has all it asks for.
        ceiling = np.inf
        for i in range(count):
            if rising[i]:
                ceiling = min(ceiling, rate[i])
        if ceiling == np.inf:  # nobody rises any more
            done = True
            break
        if together:
            ceiling = np.inf
        entering = 0
        column = np.zeros(rows)
        if up < 0:
            entering = _LEVEL
            for i in range(count):
                if slope[i] != 0.0:
                    for j in range(rows):
                        column[j] -= slope[i] * inverse[j, i]
            rise = 1.0
        else:
            dual[:rows] = inverse[up, :rows]
            best, which = _GAIN, -1
            for i in range(count, rows):
                if -dual[i] > best:
                    best, which = -dual[i], i
            if which >= 0:
                entering = -2 - link_of[which]
                column[:] = inverse[:rows, which]
            else:
                chosen = -1
                for p in range(paths):
                    gain = -dual[owner[p]]
                    for j in range(first[p], first[p + 1]):
                        gain -= dual[row_of[pool[j]]]
                    if gain > best:
                        best, chosen = gain, p
                if chosen < 0:
                    # Nothing in store gains. A little more for each link avoids roundabout ways.
                    little = 0.0
                    for i in range(count, rows):
                        little = max(little, dual[i])
                    for e in range(links):
                        if room[e] > 0.0:
                            length[e] = 1e-12 * little
                            if row_of[e] >= 0:
                                length[e] += max(0.0, dual[row_of[e]])
                    fresh = True
                    continue
                entering = chosen
                for i in range(rows):
                    total = inverse[i, owner[chosen]]
                    for j in range(first[chosen], first[chosen + 1]):
                        total += inverse[i, row_of[pool[j]]]
                    column[i] = total
            rise = -column[up]
        step, leaving = np.inf, -1
        for i in range(rows):
            if column[i] > _PIVOT and i != up:
                ratio = value[i] / column[i]
                if ratio < step * (1.0 - 1e-12) or (
                    ratio <= step * (1.0 + 1e-12) and column[i] > column[leaving]
                ):
                    step, leaving = ratio, i
        now = value[up] if up >= 0 else 0.0
        topped = rise > 0.0 and (ceiling - level - now) <= step * rise
        if topped:
            step, leaving = max(0.0, (ceiling - level - now) / rise), up
        elif leaving < 0:
            break
        for i in range(rows):
            value[i] = max(0.0, value[i] - step * column[i]) if i != up else value[i] + step * rise
        if leaving >= 0:
            basis[leaving] = entering
            value[leaving] = step
            pivoted(inverse, rows, column, leaving)
            if entering == _LEVEL:
                up = leaving
        if topped:
            up = -1
            dual[:rows] = 0.0
            level = ceiling
            for i in range(count):
                if rising[i] and rate[i] <= level:
                    rising[i] = False
                    held[i] = rate[i]
                    slope[i] = 0.0
    return done, held, proof
