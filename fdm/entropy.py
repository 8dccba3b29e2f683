"""Compiled loops of the rule that decides between equally good answers, see `fdm.fairness`.

Given link flows f of least delay, the split is that of largest entropy −Σ x·ln(x/d) over the
shortest paths of all commodities with Σ x = f on links and Σ x = d for commodities. Its dual has a
number μ for each link and x_p = d·exp(−μ(p))/Σ exp(−μ(q)); Newton's method finds it.
"""

import numpy as np

from fdm.kernels import (
    Floats,
    Ints,
    compiled,
    curvature,
    direct,
    factored,
    load,
    slope,
    substituted,
    tree,
)

_TIE = 1e-6
"""Relative difference in length up to which paths are equally short."""

_FLAT = 1e-8
"""Part of a path exchange's curvature below which the cost cannot tell."""

_DAMPING = 1e-10
"""Part by which Newton steps raise curvatures, so little that what is not flat converges."""

_PATHS = 32
"""Shortest paths of a commodity up to which they are counted out."""

_STEPS = 60


@compiled
def with_ties(
    tail: Ints,
    head: Ints,
    out: Ints,
    out_link: Ints,
    length: Floats,
    origin: Ints,
    destination: Ints,
    own: Ints,
    first: Ints,
    pool: Ints,
    flow: Floats,
    most: int,
) -> tuple[bool, Ints, Ints, Ints, Floats]:
    """Add the paths that are as short as the shortest; False if there are too many."""
    nodes, commodities = len(out) - 1, len(origin)
    distance, key = np.empty(nodes), np.empty(nodes)
    arrived, heap = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    place, wanted = np.empty(nodes, np.int64), np.zeros(nodes, np.int64)
    into, into_link = np.zeros(nodes + 1, np.int64), np.empty(len(out_link), np.int64)
    for i in range(len(out_link)):
        into[head[out_link[i]] + 1] += 1
    for n in range(nodes):
        into[n + 1] += into[n]
    filled = into[:-1].copy()
    for i in range(len(out_link)):
        to = head[out_link[i]]
        into_link[filled[to]] = out_link[i]
        filled[to] += 1
    new_own = np.zeros(commodities + 1, np.int64)
    new_first = np.zeros(most + commodities + 2, np.int64)
    new_pool = np.empty(len(pool) + 64, np.int64)
    new_flow = np.zeros(most + commodities + 1)
    path, slack = np.empty(nodes + 1, np.int64), np.empty(nodes + 1)
    at, turn = np.empty(nodes + 1, np.int64), np.empty(nodes + 1, np.int64)
    on = np.zeros(nodes, np.int64)
    count, used = 0, 0
    k = 0
    while k < commodities:
        upto, remaining = k, 0
        while upto < commodities and origin[upto] == origin[k]:
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
            begun = count
            for p in range(own[i], own[i + 1]):
                if flow[p] <= 0.0:
                    continue
                size = first[p + 1] - first[p]
                if count > most + commodities - 1:
                    return False, own, first, pool, flow
                if used + size > len(new_pool):
                    more = np.empty(2 * (used + size), np.int64)
                    more[:used] = new_pool[:used]
                    new_pool = more
                for j in range(size):
                    new_pool[used + j] = pool[first[p] + j]
                used += size
                new_flow[count] = flow[p]
                count += 1
                new_first[count] = used
            known = count
            # Backwards from the destination over links that are on a shortest path.
            depth = 0
            at[0], turn[0], slack[0] = destination[i], into[destination[i]], 0.0
            on[at[0]] = 1
            allowed = _TIE * distance[destination[i]]
            while depth >= 0:
                node = at[depth]
                if node == origin[i]:
                    same = False
                    for p in range(begun, known):
                        if new_first[p + 1] - new_first[p] == depth:
                            same = True
                            for j in range(depth):
                                if new_pool[new_first[p] + j] != path[depth - 1 - j]:
                                    same = False
                                    break
                            if same:
                                break
                    if not same:
                        if count > most + commodities - 1 or count - begun >= _PATHS:
                            return False, own, first, pool, flow
                        if used + depth > len(new_pool):
                            more = np.empty(2 * (used + depth), np.int64)
                            more[:used] = new_pool[:used]
                            new_pool = more
                        for j in range(depth):
                            new_pool[used + j] = path[depth - 1 - j]
                        used += depth
                        count += 1
                        new_first[count] = used
                    on[node] = 0
                    depth -= 1
                    continue
                found = False
                while turn[depth] < into[node + 1]:
                    e = into_link[turn[depth]]
                    turn[depth] += 1
                    u = tail[e]
                    beyond = slack[depth] + distance[u] + length[e] - distance[node]
                    if beyond <= allowed and on[u] == 0:
                        path[depth] = e
                        depth += 1
                        at[depth], turn[depth], slack[depth] = u, into[u], max(0.0, beyond)
                        on[u] = 1
                        found = True
                        break
                if not found:
                    on[node] = 0
                    depth -= 1
            new_own[i + 1] = count
        k = upto
    return (
        True,
        new_own,
        new_first[: count + 1].copy(),
        new_pool[:used].copy(),
        new_flow[:count].copy(),
    )


@compiled
def undecided(
    bend: Floats, own: Ints, first: Ints, pool: Ints, flow: Floats, stiff: Ints, most: int
) -> tuple[int, Ints]:
    """Return which commodities can exchange flow at no cost, and how many; −1 if it is too much.

    `stiff` is set to 1 for links on which the cost can tell.
    """
    links, commodities = len(bend), len(own) - 1
    concerned = np.zeros(commodities, np.int64)
    n, size = 0, 0
    basic = np.full(commodities, -1, np.int64)
    for k in range(commodities):
        if own[k + 1] - own[k] < 2:
            continue
        b = own[k]
        for p in range(own[k], own[k + 1]):
            if flow[p] > flow[b]:
                b = p
        basic[k] = b
        n += own[k + 1] - own[k] - 1
        for p in range(own[k], own[k + 1]):
            size += first[p + 1] - first[p] + first[b + 1] - first[b]
    if n < 1:
        return 0, concerned
    owner, begin = np.empty(n, np.int64), np.zeros(n + 1, np.int64)
    on, sign = np.empty(size, np.int64), np.empty(size)
    scale = np.zeros(n)
    mark = np.zeros(links, np.int64)
    n, size = 0, 0
    for k in range(commodities):
        b = basic[k]
        if b < 0:
            continue
        for i in range(first[b], first[b + 1]):
            mark[pool[i]] = 1
        for p in range(own[k], own[k + 1]):
            if p == b:
                continue
            bent = 0.0
            for i in range(first[p], first[p + 1]):
                e = pool[i]
                if mark[e] == 1:
                    mark[e] = 2
                else:
                    on[size], sign[size] = e, 1.0
                    bent += bend[e]
                    size += 1
            for i in range(first[b], first[b + 1]):
                e = pool[i]
                if mark[e] == 2:
                    mark[e] = 1
                else:
                    on[size], sign[size] = e, -1.0
                    bent += bend[e]
                    size += 1
            owner[n] = k
            scale[n] = bent
            n += 1
            begin[n] = size
        for i in range(first[b], first[b + 1]):
            mark[pool[i]] = 0
    # An exchange with a link that no other uses, and on which the cost can tell, is decided.
    users = np.zeros(links, np.int64)
    one = np.zeros(links, np.int64)  # sum of the exchanges on a link: the only one at the end
    decided = np.zeros(n, np.int64)
    for j in range(n):
        for i in range(begin[j], begin[j + 1]):
            users[on[i]] += 1
            one[on[i]] += j
            if bend[on[i]] > _FLAT * scale[j]:
                stiff[on[i]] = 1
    waiting = np.empty(links, np.int64)
    top = 0
    for e in range(links):
        if users[e] == 1:
            waiting[top] = e
            top += 1
    left = n
    while top > 0:
        top -= 1
        e = waiting[top]
        if users[e] != 1:
            continue
        j = one[e]
        if bend[e] <= _FLAT * scale[j]:
            continue
        decided[j] = 1
        left -= 1
        for i in range(begin[j], begin[j + 1]):
            users[on[i]] -= 1
            one[on[i]] -= j
            if users[on[i]] == 1:
                waiting[top] = on[i]
                top += 1
    if left == 0:
        return 0, concerned
    if left > most:
        return -1, concerned
    number = np.full(n, -1, np.int64)
    back = np.empty(left, np.int64)
    left = 0
    for j in range(n):
        if decided[j] == 0:
            number[j] = left
            back[left] = j
            left += 1
    system = np.zeros((left, left))
    count = np.zeros(links + 1, np.int64)
    for j in range(n):
        if number[j] >= 0:
            for i in range(begin[j], begin[j + 1]):
                count[on[i] + 1] += 1
    for e in range(links):
        count[e + 1] += count[e]
    member, weight = np.empty(count[links], np.int64), np.empty(count[links])
    for j in range(n):
        if number[j] >= 0:
            unit = 1.0 / np.sqrt(scale[j]) if scale[j] > 0.0 else 0.0
            for i in range(begin[j], begin[j + 1]):
                member[count[on[i]]] = number[j]
                weight[count[on[i]]] = sign[i] * unit
                count[on[i]] += 1
    at = 0
    for e in range(links):
        for i in range(at, count[e]):
            for j in range(at, i + 1):
                system[member[i], member[j]] += bend[e] * weight[i] * weight[j]
        at = count[e]
    inverse = np.empty(left)
    factored(system, inverse, 0.0, _FLAT)
    found = 0
    x = np.empty(left)
    for i in range(left):
        if inverse[i] != 0.0:
            continue
        found += 1
        concerned[owner[back[i]]] = 1
        x[:i] = system[i, :i]
        for j in range(i - 1, -1, -1):
            x[j] *= inverse[j]
            if x[j] != 0.0:
                for m in range(j):
                    x[m] -= x[j] * system[j, m]
            if abs(x[j]) > 1e-6:
                concerned[owner[back[j]]] = 1
    return found, concerned


@compiled
def spread(
    rate: Floats,
    own: Ints,
    first: Ints,
    pool: Ints,
    flow: Floats,
    stiff: Ints,
    concerned: Ints,
) -> bool:
    """Set the flows of the commodities concerned to those of largest entropy, in place."""
    links, commodities = len(stiff), len(own) - 1
    number, count = np.full(links, -1, np.int64), 0
    total = 0.0
    for k in range(commodities):
        if concerned[k] == 1:
            total += rate[k]
            for i in range(first[own[k]], first[own[k + 1]]):
                e = pool[i]
                if stiff[e] == 1 and number[e] < 0:
                    number[e] = count
                    count += 1
    goal, now = np.zeros(count), np.zeros(count)
    x = np.zeros(len(flow))
    for k in range(commodities):
        if concerned[k] == 1:
            for p in range(own[k], own[k + 1]):
                for i in range(first[p], first[p + 1]):
                    if number[pool[i]] >= 0:
                        goal[number[pool[i]]] += flow[p]
    dual, trial, step = np.zeros(count), np.zeros(count), np.zeros(count)
    inverse = np.empty(count)
    unit = np.empty(count)
    mean, mine, taken = np.zeros(count), np.empty(count, np.int64), np.zeros(count, np.int64)
    value = np.inf
    ahead = 1.0
    worst = np.inf
    for _ in range(_STEPS):
        # The value and flows of the dual at the trial point.
        reached = 0.0
        for j in range(count):
            reached += trial[j] * goal[j]
        for k in range(commodities):
            if concerned[k] == 0:
                continue
            largest = -np.inf
            for p in range(own[k], own[k + 1]):
                x[p] = 0.0
                for i in range(first[p], first[p + 1]):
                    if number[pool[i]] >= 0:
                        x[p] -= trial[number[pool[i]]]
                largest = max(largest, x[p])
            everything = 0.0
            for p in range(own[k], own[k + 1]):
                x[p] = np.exp(x[p] - largest)
                everything += x[p]
            for p in range(own[k], own[k + 1]):
                x[p] *= rate[k] / everything
            reached += rate[k] * (largest + np.log(everything))
        if not reached <= value + 1e-12 * abs(value):
            ahead *= 0.25
            if ahead < 1e-6:
                break
            for j in range(count):
                trial[j] = dual[j] + ahead * step[j]
            continue
        value = reached
        dual[:] = trial
        now[:] = 0.0
        system = np.zeros((count, count))
        for k in range(commodities):
            if concerned[k] == 0:
                continue
            for p in range(own[k], own[k + 1]):
                for i in range(first[p], first[p + 1]):
                    u = number[pool[i]]
                    if u < 0:
                        continue
                    now[u] += x[p]
                    mean[u] += x[p] / rate[k]
                    for j in range(first[p], i + 1):
                        v = number[pool[j]]
                        if v >= 0:
                            system[max(u, v), min(u, v)] += x[p]
            size = 0
            for i in range(first[own[k]], first[own[k + 1]]):
                u = number[pool[i]]
                if u >= 0 and taken[u] == 0:
                    taken[u] = 1
                    mine[size] = u
                    size += 1
            for i in range(size):
                u = mine[i]
                for j in range(size):
                    v = mine[j]
                    if v <= u:
                        system[u, v] -= rate[k] * mean[u] * mean[v]
            for i in range(size):
                mean[mine[i]] = 0.0
                taken[mine[i]] = 0
        worst = 0.0
        for j in range(count):
            worst = max(worst, abs(now[j] - goal[j]))
            unit[j] = 1.0 / np.sqrt(system[j, j]) if system[j, j] > 1e-12 * goal[j] else 0.0
        if worst <= 1e-12 * total:
            break
        for i in range(count):
            for j in range(i + 1):
                system[i, j] *= unit[i] * unit[j]
            step[i] = (now[i] - goal[i]) * unit[i]
        factored(system, inverse, 1e-9, 0.0)
        substituted(system, inverse, step)
        ahead = 1.0
        for j in range(count):
            step[j] *= unit[j]
            trial[j] = dual[j] + step[j]
    if not worst <= 1e-4 * total:
        return False
    for k in range(commodities):
        if concerned[k] == 1:
            for p in range(own[k], own[k + 1]):
                flow[p] = x[p]
    return True


@compiled
def even(
    family: int,
    a: Floats,
    lin: Floats,
    c: Floats,
    beta: float,
    tail: Ints,
    head: Ints,
    out: Ints,
    out_link: Ints,
    origin: Ints,
    destination: Ints,
    rate: Floats,
    own: Ints,
    first: Ints,
    pool: Ints,
    flow: Floats,
    edge: float,
    most: int,
    before: int,
) -> tuple[int, Ints, Ints, Ints, Floats]:
    """Return path flows of least cost whose split follows the rule.

    Before that, and after it to mend what rounding did to link flows, come some Newton steps. The
    first answer is 0 if the cost leaves no choice, 1 if it does, and −1 if there is too much to
    choose from for more than `most` exchanges.
    """
    links = len(c)
    mark = np.zeros(links, np.int64)
    length, bend = np.full(links, np.inf), np.zeros(links)
    f = load(links, first, pool, flow)
    found = 0
    for turn in range(2):
        for e in range(links):
            if c[e] > 0.0:
                length[e] = slope(family, a[e], lin[e], c[e], beta, edge, f[e])
                bend[e] = curvature(family, a[e], c[e], beta, edge, f[e])
        if turn == 0:
            fine, own, first, pool, flow = with_ties(
                tail, head, out, out_link, length, origin, destination,
                own, first, pool, flow, most,
            )  # fmt: skip
            if not fine:
                return -1, own, first, pool, flow
        for _ in range(before if turn == 0 else 2):
            direct(
                family, a, lin, c, beta, edge, own, first, pool, flow, f, length, bend, mark,
                8, _DAMPING,
            )  # fmt: skip
        if turn == 0:
            stiff = np.zeros(links, np.int64)
            found, concerned = undecided(bend, own, first, pool, flow, stiff, most)
            if found <= 0:
                return found, own, first, pool, flow
            if not spread(rate, own, first, pool, flow, stiff, concerned):
                return -1, own, first, pool, flow
            f = load(links, first, pool, flow)
    return 1, own, first, pool, flow
