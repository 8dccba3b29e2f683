"""Compiled loops of the path methods: shortest path trees, gradient projection, Newton steps.

Paths are columns in order of their commodity; commodities are in order of their origin. Column
``p`` owns the links ``pool[first[p]:first[p + 1]]`` and commodity ``k`` the columns
``own[k]:own[k + 1]``.

- Gradient projection goes through commodities one by one and moves flow from every longer path to
  the shortest, by the length difference over the curvature of the links that differ
  (D. P. Bertsekas, E. M. Gafni, "Projection methods for variational inequalities with application
  to the traffic assignment problem", Math. Prog. Study 17, 1982).
- A Newton step does the same for all commodities at once, with the conjugate gradient method on
  the paths that are in use (truncated Newton, R. S. Dembo, T. Steihaug, Math. Prog. 26, 1983).
  Nothing larger than the list of paths is stored.

Links that queues can fill are continued quadratically above a share of their capacity, so that
any flow has a finite cost; the continuation lies below the function, hence bounds stay valid.

Families of link costs, by number: 0 is a·f/(C − f) + l·f, 1 is −a·ln(1 − f/C) + l·f, 2 is
l·f + a·f·(f/C)^β/(β + 1).
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from fdm.compilation import keep

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_F = TypeVar("_F", bound=Callable[..., Any])


_KEEP = keep()


def compiled(function: _F, fastmath: Any = False) -> _F:
    try:
        import numba
    except ImportError:
        return function  # slow, and right
    options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    return cast(_F, numba.njit(cache=_KEEP, **options)(function))


def _sums_in_any_order(function: _F) -> _F:
    return compiled(function, {"reassoc", "contract"})


_DIRECT = 350
"""Path exchanges up to which a Newton step solves its linear system directly."""

_PIVOTS, _FEW = 8, 64
"""Times that a direct step revises which paths it leaves empty; thrice as often up to so many
exchanges."""

_ROUNDING = 1e-13
"""A slope below this part of Σ length·flow may be rounding of the flows."""

_DAMPING, _LEAST_DAMPING = 0.1, 1e-9
"""Part of the relative gap by which curvatures are raised in a direct step, and the least."""


@_sums_in_any_order
def dot(a: Floats, b: Floats, n: int) -> float:
    """Return the inner product of the first n entries."""
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@compiled
def value(family: int, a: float, lin: float, c: float, beta: float, r: float, f: float) -> float:
    """Return the cost of a link."""
    edge = r * c
    s = c - edge
    beyond = f - edge
    cost: float = lin * f
    if family == 2:
        cost += a * f * (f / c) ** beta / (beta + 1.0)
    elif family == 0:
        if f <= edge:
            cost += a * f / (c - f)
        else:
            cost += a * edge / s + a * c / (s * s) * beyond * (1.0 + beyond / s)
    elif f <= edge:
        cost -= a * np.log1p(-f / c)
    else:
        cost += a / s * beyond * (1.0 + 0.5 * beyond / s) - a * np.log1p(-r)
    return cost


@compiled
def slope(family: int, a: float, lin: float, c: float, beta: float, r: float, f: float) -> float:
    """Return the first derivative of the cost of a link: its length."""
    length = lin
    if family == 2:
        x = f / c
        length += a * (x * x * x * x if beta == 4.0 else x**beta)
        return length
    s = c - min(f, r * c)
    beyond = max(0.0, f - r * c) / s
    if family == 0:
        length += a * c / (s * s) * (1.0 + 2.0 * beyond)
    else:
        length += a / s * (1.0 + beyond)
    return length


@compiled
def curvature(family: int, a: float, c: float, beta: float, r: float, f: float) -> float:
    """Return the second derivative of the cost of a link."""
    if family == 2:
        x = f / c
        return a * beta / c * (x * x * x if beta == 4.0 else x ** (beta - 1.0))
    s = c - min(f, r * c)
    return 2.0 * a * c / (s * s * s) if family == 0 else a / (s * s)


@compiled
def tree(
    origin: int,
    out: Ints,
    out_link: Ints,
    head: Ints,
    length: Floats,
    wanted: Ints,
    remaining: int,
    distance: Floats,
    arrived: Ints,
    heap: Ints,
    key: Floats,
    place: Ints,
) -> None:
    """Fill `distance` and `arrived` from one origin (Dijkstra, binary heap with decrease-key)."""
    distance[:] = np.inf
    arrived[:] = -1
    place[:] = -1
    distance[origin] = 0.0
    heap[0] = origin
    key[0] = 0.0
    place[origin] = 0
    size = 1
    while size > 0:
        node = heap[0]
        size -= 1
        if size > 0:
            last, last_key = heap[size], key[size]
            i = 0
            while True:
                child = 2 * i + 1
                if child >= size:
                    break
                if child + 1 < size and key[child + 1] < key[child]:
                    child += 1
                if key[child] >= last_key:
                    break
                heap[i], key[i] = heap[child], key[child]
                place[heap[i]] = i
                i = child
            heap[i], key[i] = last, last_key
            place[last] = i
        place[node] = -2
        if wanted[node] == 1:
            remaining -= 1
            if remaining == 0:
                return
        for e in range(out[node], out[node + 1]):
            link = out_link[e]
            to = head[link]
            if place[to] == -2:
                continue
            reach = distance[node] + length[link]
            if reach < distance[to]:
                distance[to] = reach
                arrived[to] = link
                i = place[to]
                if i < 0:
                    i = size
                    size += 1
                while i > 0:
                    up = (i - 1) // 2
                    if key[up] <= reach:
                        break
                    heap[i], key[i] = heap[up], key[up]
                    place[heap[i]] = i
                    i = up
                heap[i], key[i] = to, reach
                place[to] = i


@compiled
def widen(
    tail: Ints,
    head: Ints,
    out: Ints,
    out_link: Ints,
    length: Floats,
    origin: Ints,
    destination: Ints,
    rate: Floats,
    own: Ints,
    first: Ints,
    pool: Ints,
    flow: Floats,
    keep: float,
) -> tuple[Ints, Ints, Ints, Floats, float, int]:
    """Drop paths without flow, add the shortest; also Σ rate·distance and the number added.

    A commodity without any path begins on its shortest with all its rate. Its distance is
    infinite if there is none.
    """
    nodes, commodities = len(out) - 1, len(rate)
    distance, key = np.empty(nodes), np.empty(nodes)
    arrived, heap = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    place, wanted = np.empty(nodes, np.int64), np.zeros(nodes, np.int64)
    columns = len(flow)
    new_own = np.zeros(commodities + 1, np.int64)
    new_first = np.zeros(columns + commodities + 1, np.int64)
    new_flow = np.zeros(columns + commodities)
    new_pool = np.empty(len(pool) + 16 * commodities + nodes, np.int64)
    path = np.empty(nodes + 1, np.int64)
    count, used, added, best = 0, 0, 0, 0.0
    k = 0
    while k < commodities:
        upto = k
        remaining = 0
        while upto < commodities and origin[upto] == origin[k]:
            if wanted[destination[upto]] == 0:
                wanted[destination[upto]] = 1
                remaining += 1
            upto += 1
        tree(
            origin[k], out, out_link, head, length, wanted, remaining,
            distance, arrived, heap, key, place,
        )  # fmt: skip
        for c in range(k, upto):
            wanted[destination[c]] = 0
        for c in range(k, upto):
            at = destination[c]
            best += rate[c] * distance[at]
            hops = 0
            if distance[at] < np.inf:
                while at != origin[c]:
                    path[hops] = arrived[at]
                    hops += 1
                    at = tail[arrived[at]]
            known = hops == 0
            need = used + first[own[c + 1]] - first[own[c]] + hops
            if need > len(new_pool):
                larger = np.empty(2 * need, np.int64)
                larger[:used] = new_pool[:used]
                new_pool = larger
            for p in range(own[c], own[c + 1]):
                size = first[p + 1] - first[p]
                same = size == hops
                if same:
                    for i in range(hops):
                        if pool[first[p] + i] != path[hops - 1 - i]:
                            same = False
                            break
                known = known or same
                if flow[p] > keep * rate[c] or same:
                    for i in range(size):
                        new_pool[used + i] = pool[first[p] + i]
                    used += size
                    new_flow[count] = flow[p]
                    count += 1
                    new_first[count] = used
            if not known:
                for i in range(hops):
                    new_pool[used + i] = path[hops - 1 - i]
                used += hops
                new_flow[count] = 0.0
                count += 1
                added += 1
                new_first[count] = used
            # What was dropped or lost to rounding goes to the widest path.
            total, widest = 0.0, new_own[c]
            for p in range(new_own[c], count):
                total += new_flow[p]
                if new_flow[p] > new_flow[widest]:
                    widest = p
            if count > new_own[c]:
                if total > 0.0:
                    new_flow[widest] = max(0.0, new_flow[widest] + (rate[c] - total))
                else:
                    new_flow[count - 1] = rate[c]
            new_own[c + 1] = count
        k = upto
    return (
        new_own,
        new_first[: count + 1].copy(),
        new_pool[:used].copy(),
        new_flow[:count].copy(),
        best,
        added,
    )


@compiled
def load(links: int, first: Ints, pool: Ints, flow: Floats) -> Floats:
    """Return the flow of every link."""
    total = np.zeros(links)
    for p in range(len(flow)):
        if flow[p] > 0.0:
            for i in range(first[p], first[p + 1]):
                total[pool[i]] += flow[p]
    return total


@compiled
def sweep(
    family: int,
    a: Floats,
    lin: Floats,
    c: Floats,
    beta: float,
    r: float,
    own: Ints,
    first: Ints,
    pool: Ints,
    flow: Floats,
    f: Floats,
    length: Floats,
    bend: Floats,
    mark: Ints,
) -> None:
    """Project the gradient of one commodity after the other; everything is updated in place."""
    for k in range(len(own) - 1):
        if own[k + 1] - own[k] < 2:
            continue
        best, least = -1, np.inf
        for p in range(own[k], own[k + 1]):
            total = 0.0
            for i in range(first[p], first[p + 1]):
                total += length[pool[i]]
            if total < least:
                best, least = p, total
        for i in range(first[best], first[best + 1]):
            mark[pool[i]] = 1
        for p in range(own[k], own[k + 1]):
            if p == best or flow[p] <= 0.0:
                continue
            beyond, bent = 0.0, 0.0
            for i in range(first[best], first[best + 1]):
                beyond -= length[pool[i]]
                bent += bend[pool[i]]
            for i in range(first[p], first[p + 1]):
                link = pool[i]
                beyond += length[link]
                bent += -bend[link] if mark[link] == 1 else bend[link]
            if beyond <= 0.0:
                continue
            moved = flow[p]
            if bent > 0.0 and beyond < moved * bent:
                moved = beyond / bent
            flow[p] -= moved
            flow[best] += moved
            for i in range(first[p], first[p + 1]):
                link = pool[i]
                f[link] = max(0.0, f[link] - moved)
            for i in range(first[best], first[best + 1]):
                f[pool[i]] += moved
            for q in (p, best):
                for i in range(first[q], first[q + 1]):
                    e = pool[i]
                    length[e] = slope(family, a[e], lin[e], c[e], beta, r, f[e])
                    bend[e] = curvature(family, a[e], c[e], beta, r, f[e])
        for i in range(first[best], first[best + 1]):
            mark[pool[i]] = 0


@compiled
def times_hessian(
    own: Ints,
    first: Ints,
    pool: Ints,
    basic: Ints,
    free: Ints,
    bend: Floats,
    x: Floats,
    y: Floats,
    links: Floats,
) -> None:
    """Set y to the Hessian times x on free paths, each exchanged for its commodity's basic one."""
    links[:] = 0.0
    for k in range(len(own) - 1):
        total = 0.0
        for p in range(own[k], own[k + 1]):
            if free[p] == 1:
                total += x[p]
                for i in range(first[p], first[p + 1]):
                    links[pool[i]] += x[p]
        if total != 0.0:
            b = basic[k]
            for i in range(first[b], first[b + 1]):
                links[pool[i]] -= total
    for e in range(len(links)):
        links[e] *= bend[e]
    for k in range(len(own) - 1):
        b = basic[k]
        if b < 0:
            continue
        base = 0.0
        for i in range(first[b], first[b + 1]):
            base += links[pool[i]]
        for p in range(own[k], own[k + 1]):
            if free[p] == 1:
                total = -base
                for i in range(first[p], first[p + 1]):
                    total += links[pool[i]]
                y[p] = total


@compiled
def newton(
    family: int,
    a: Floats,
    lin: Floats,
    c: Floats,
    beta: float,
    r: float,
    own: Ints,
    first: Ints,
    pool: Ints,
    flow: Floats,
    f: Floats,
    length: Floats,
    bend: Floats,
    mark: Ints,
    tolerance: float,
    most: int,
) -> float:
    """Take a truncated Newton step; returns how fast the cost falls along it, 0 if it does not."""
    columns, commodities, links = len(flow), len(own) - 1, len(f)
    basic = np.full(commodities, -1, np.int64)
    free = np.zeros(columns, np.int64)
    pull, diagonal = np.zeros(columns), np.ones(columns)
    for k in range(commodities):
        if own[k + 1] - own[k] < 2:
            continue
        b = own[k]
        for p in range(own[k], own[k + 1]):
            if flow[p] > flow[b]:
                b = p
        base = 0.0
        for i in range(first[b], first[b + 1]):
            base += length[pool[i]]
            mark[pool[i]] = 1
        for p in range(own[k], own[k + 1]):
            if p == b:
                continue
            total, bent = -base, 0.0
            for i in range(first[b], first[b + 1]):
                bent += bend[pool[i]]
            for i in range(first[p], first[p + 1]):
                total += length[pool[i]]
                bent += -bend[pool[i]] if mark[pool[i]] == 1 else bend[pool[i]]
            if (flow[p] > 0.0 or total < 0.0) and bent > 0.0:
                free[p] = 1
                basic[k] = b
                pull[p] = -total
                diagonal[p] = bent
        for i in range(first[b], first[b + 1]):
            mark[pool[i]] = 0
    x, y, z = np.zeros(columns), np.zeros(columns), np.zeros(columns)
    residual = pull.copy()
    work = np.zeros(links)
    norm = 0.0
    for p in range(columns):
        if free[p] == 1:
            z[p] = residual[p] / diagonal[p]
            norm += z[p] * residual[p]
    start = norm
    if not start > 0.0:
        return 0.0
    direction = z.copy()
    for _ in range(most):
        times_hessian(own, first, pool, basic, free, bend, direction, y, work)
        bent = 0.0
        for p in range(columns):
            if free[p] == 1:
                bent += direction[p] * y[p]
        if not bent > 0.0:
            break
        ahead = norm / bent
        before, norm = norm, 0.0
        for p in range(columns):
            if free[p] == 1:
                x[p] += ahead * direction[p]
                residual[p] -= ahead * y[p]
                norm += residual[p] * residual[p] / diagonal[p]
        if norm <= tolerance * tolerance * start:
            break
        ratio = norm / before
        for p in range(columns):
            if free[p] == 1:
                direction[p] = residual[p] / diagonal[p] + ratio * direction[p]
    # Within bounds: no path below zero, no commodity's basic path below zero.
    work[:] = 0.0
    descent = 0.0
    for k in range(commodities):
        b = basic[k]
        if b < 0:
            continue
        total = 0.0
        for p in range(own[k], own[k + 1]):
            if free[p] == 1:
                x[p] = max(x[p], -flow[p])
                total += x[p]
        if total > flow[b]:
            share = flow[b] / total
            total = flow[b]
            for p in range(own[k], own[k + 1]):
                if free[p] == 1 and x[p] > 0.0:
                    x[p] *= share
            total = 0.0
            for p in range(own[k], own[k + 1]):
                if free[p] == 1:
                    total += x[p]
        x[b] = -total
        for p in range(own[k], own[k + 1]):
            if free[p] == 1:
                descent -= x[p] * pull[p]
            if x[p] != 0.0:
                for i in range(first[p], first[p + 1]):
                    work[pool[i]] += x[p]
    return searched(
        family, a, lin, c, beta, r, first, pool, flow, f, length, bend, x, work, descent
    )


@compiled
def factored(system: Floats, inverse: Floats, damping: float, least: float) -> int:
    """Cholesky factor in place (lower rows), of a matrix with unit diagonal; returns the rank.

    What is left of a row with no more than `least` on the diagonal depends on the rows before.
    """
    n = len(system)
    rank = 0
    for i in range(n):
        row = system[i]
        total = row[i] + damping
        for j in range(i):
            other = system[j]
            at = row[j] - dot(row, other, j)
            at *= inverse[j]
            row[j] = at
            total -= at * at
        if total > least:
            inverse[i] = 1.0 / np.sqrt(total)
            rank += 1
        else:
            inverse[i] = 0.0
    return rank


@compiled
def substituted(system: Floats, inverse: Floats, x: Floats) -> None:
    """Solve in place with a factor; what depends on the rest is 0."""
    n = len(x)
    for i in range(n):
        x[i] = (x[i] - dot(system[i], x, i)) * inverse[i]
    for i in range(n - 1, -1, -1):
        x[i] *= inverse[i]
        if x[i] != 0.0:
            at, row = x[i], system[i]
            for j in range(i):
                x[j] -= at * row[j]


@compiled
def direct(
    family: int,
    a: Floats,
    lin: Floats,
    c: Floats,
    beta: float,
    r: float,
    own: Ints,
    first: Ints,
    pool: Ints,
    flow: Floats,
    f: Floats,
    length: Floats,
    bend: Floats,
    mark: Ints,
    most: int,
    damping: float,
) -> float:
    """Take a Newton step with path flows kept above 0; returns how fast the cost falls along it."""
    columns, commodities, links = len(flow), len(own) - 1, len(f)
    state = np.zeros(columns, np.int64)  # 1 free, 0 at zero
    goal = flow.copy()
    basic = np.full(commodities, -1, np.int64)
    many = 0
    for k in range(commodities):
        if own[k + 1] - own[k] < 2:
            continue
        b = own[k]
        for p in range(own[k], own[k + 1]):
            if flow[p] > flow[b]:
                b = p
        base = 0.0
        for i in range(first[b], first[b + 1]):
            base += length[pool[i]]
        for p in range(own[k], own[k + 1]):
            total = 0.0
            for i in range(first[p], first[p + 1]):
                total += length[pool[i]]
            if p == b or flow[p] > 0.0 or total < base:
                state[p] = 1
                basic[k] = b
                many += first[p + 1] - first[p] + first[b + 1] - first[b]
    shift = np.empty(links)
    swap = np.zeros(columns, np.int64)
    fewest, chances = columns + 1, 3
    count = np.empty(links + 1, np.int64)
    for turn in range(most):
        # The model's flow and lengths where what is fixed has moved to the basic paths.
        n = 0
        for k in range(commodities):
            if basic[k] < 0:
                continue
            b = -1
            for p in range(own[k], own[k + 1]):
                if state[p] == 1 and (b < 0 or goal[p] > goal[b]):
                    b = p
            basic[k] = b
            for p in range(own[k], own[k + 1]):
                if state[p] == 1 and p != b:
                    n += 1
        if n == 0 and turn == 0:
            return 0.0
        goal[:] = flow
        shift[:] = 0.0
        for k in range(commodities):
            b = basic[k]
            if b < 0:
                continue
            moved = 0.0
            for p in range(own[k], own[k + 1]):
                if state[p] == 0 and flow[p] > 0.0:
                    moved += flow[p]
                    goal[p] = 0.0
                    for i in range(first[p], first[p + 1]):
                        shift[pool[i]] -= flow[p]
            if moved > 0.0:
                goal[b] += moved
                for i in range(first[b], first[b + 1]):
                    shift[pool[i]] += moved
        # Columns: a free path in exchange for its basic one.
        which = np.empty(n, np.int64)
        begin = np.empty(n + 1, np.int64)
        on = np.empty(many, np.int64)
        sign = np.empty(many)
        pull = np.empty(n)
        scale = np.empty(n)
        count[:] = 0
        n, size = 0, 0
        begin[0] = 0
        for k in range(commodities):
            b = basic[k]
            if b < 0:
                continue
            for i in range(first[b], first[b + 1]):
                mark[pool[i]] = 1
            for p in range(own[k], own[k + 1]):
                if state[p] == 0 or p == b:
                    continue
                total, bent = 0.0, 0.0
                for i in range(first[p], first[p + 1]):
                    e = pool[i]
                    if mark[e] == 1:
                        mark[e] = 2
                    else:
                        on[size], sign[size] = e, 1.0
                        count[e + 1] += 1
                        size += 1
                        total += length[e] + bend[e] * shift[e]
                        bent += bend[e]
                for i in range(first[b], first[b + 1]):
                    e = pool[i]
                    if mark[e] == 2:
                        mark[e] = 1
                    else:
                        on[size], sign[size] = e, -1.0
                        count[e + 1] += 1
                        size += 1
                        total -= length[e] + bend[e] * shift[e]
                        bent += bend[e]
                which[n] = p
                scale[n] = 1.0 / np.sqrt(bent) if bent > 0.0 else 0.0
                pull[n] = -total * scale[n]
                n += 1
                begin[n] = size
            for i in range(first[b], first[b + 1]):
                mark[pool[i]] = 0
        for e in range(links):
            count[e + 1] += count[e]
        member = np.empty(size, np.int64)
        weight = np.empty(size)
        for j in range(n):
            for i in range(begin[j], begin[j + 1]):
                e = on[i]
                member[count[e]] = j
                weight[count[e]] = sign[i] * scale[j]
                count[e] += 1
        system = np.zeros((n, n))
        at = 0
        for e in range(links):
            for i in range(at, count[e]):
                w = bend[e] * weight[i]
                row = system[member[i]]
                for j in range(at, i + 1):
                    row[member[j]] += w * weight[j]
            at = count[e]
        inverse = np.empty(n)
        factored(system, inverse, damping, 0.0)
        substituted(system, inverse, pull)
        for j in range(n):
            goal[which[j]] += pull[j] * scale[j]
        for k in range(commodities):
            b = basic[k]
            if b < 0:
                continue
            for p in range(own[k], own[k + 1]):
                if state[p] == 1 and p != b:
                    goal[b] += flow[p] - goal[p]
        # Exchange what is below zero with what is fixed and would rise (block pivoting).
        shift[:] = 0.0
        for p in range(columns):
            if goal[p] != flow[p]:
                for i in range(first[p], first[p + 1]):
                    shift[pool[i]] += goal[p] - flow[p]
        wrong, below = 0, 0
        for k in range(commodities):
            b = basic[k]
            if b < 0:
                continue
            base = 0.0
            for i in range(first[b], first[b + 1]):
                base += length[pool[i]] + bend[pool[i]] * shift[pool[i]]
            for p in range(own[k], own[k + 1]):
                if state[p] == 1:
                    swap[p] = 1 if goal[p] < 0.0 else 0
                    below += swap[p]
                else:
                    total = 0.0
                    for i in range(first[p], first[p + 1]):
                        total += length[pool[i]] + bend[pool[i]] * shift[pool[i]]
                    swap[p] = 1 if total < base - 1e-12 * abs(base) else 0
                wrong += swap[p]
        if below == 0 and wrong <= 1 + n // 50:
            break
        if wrong < fewest:
            fewest, chances = wrong, 3
        elif chances > 0:
            chances -= 1
        single = wrong >= fewest and chances == 0
        for p in range(columns - 1, -1, -1):
            if swap[p] == 1:
                state[p] = 1 - state[p]
                if single:
                    break
        for k in range(commodities):  # never all paths of a commodity
            if basic[k] < 0:
                continue
            free, widest = 0, own[k]
            for p in range(own[k], own[k + 1]):
                free += state[p]
                if flow[p] > flow[widest]:
                    widest = p
            if free == 0:
                state[widest] = 1
    for k in range(commodities):
        if basic[k] < 0:
            continue
        total, rest = 0.0, 0.0
        for p in range(own[k], own[k + 1]):
            rest += flow[p]
            goal[p] = max(0.0, goal[p])
            total += goal[p]
        for p in range(own[k], own[k + 1]):
            goal[p] *= rest / total
    shift[:] = 0.0
    descent = 0.0
    for k in range(commodities):
        base = 0.0
        if basic[k] >= 0:
            for i in range(first[basic[k]], first[basic[k] + 1]):
                base += length[pool[i]]
        for p in range(own[k], own[k + 1]):
            goal[p] -= flow[p]
            if goal[p] != 0.0:
                total = -base
                for i in range(first[p], first[p + 1]):
                    total += length[pool[i]]
                    shift[pool[i]] += goal[p]
                descent += goal[p] * total
    return searched(
        family, a, lin, c, beta, r, first, pool, flow, f, length, bend, goal, shift, descent
    )


@compiled
def searched(
    family: int,
    a: Floats,
    lin: Floats,
    c: Floats,
    beta: float,
    r: float,
    first: Ints,
    pool: Ints,
    flow: Floats,
    f: Floats,
    length: Floats,
    bend: Floats,
    change: Floats,
    work: Floats,
    descent: float,
) -> float:
    """Go along a change as far as the cost falls; returns how fast it falls, 0 if it does not.

    `work` is the change of link flows and `descent` the slope of the cost at the start.
    """
    links = len(f)
    if not descent < 0.0:
        return 0.0
    coarse = 0.0
    for e in range(links):
        if work[e] != 0.0:
            coarse += f[e] * length[e]
    step, low, high = 1.0, 0.0, 1.0
    # What rounding of flows does to the slope must not decide; there the model is as good as exact.
    for _ in range(40 if -descent > _ROUNDING * coarse else 0):
        one, two = 0.0, 0.0
        for e in range(links):
            if work[e] != 0.0:
                at = max(0.0, f[e] + step * work[e])
                one += work[e] * slope(family, a[e], lin[e], c[e], beta, r, at)
                two += work[e] * work[e] * curvature(family, a[e], c[e], beta, r, at)
        if one <= 0.0:
            low = step
            if step == 1.0:
                break
        else:
            high = step
        if abs(one) <= 1e-3 * abs(descent):
            break
        following = step - one / two if two > 0.0 else 0.5 * (low + high)
        if not low < following < high:
            following = 0.5 * (low + high)
        step = following
        if high - low < 1e-12:
            break
    for p in range(len(flow)):
        if change[p] != 0.0:
            flow[p] = max(0.0, flow[p] + step * change[p])
    f[:] = load(links, first, pool, flow)
    for e in range(links):
        length[e] = slope(family, a[e], lin[e], c[e], beta, r, f[e])
        bend[e] = curvature(family, a[e], c[e], beta, r, f[e])
    return -descent


@compiled
def optimise(
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
    edges: Floats,
    gap: float,
    rounds: int,
    sweeps: int,
    steps: int,
    most: int,
    warm: int,
    memory: Floats,
    proof: Floats,
) -> tuple[Ints, Ints, Ints, Floats]:
    """Minimise the cost from given paths, or from none.

    `edges` are the shares of capacity above which the cost is continued, from the first tried to
    the last. Returns the paths. `memory` is 0 at first and lets a call with the same
    arguments and the paths of the last go on where that stopped: its entries are whether it is
    done, rounds so far, iterations, relative gap, least proof of how much of the demands fits, the
    number of the edge in force, the least gap, rounds since then, and the factor on sweeps.
    `proof` takes the lengths that prove it.
    """
    links = len(c)
    length, bend = np.zeros(links), np.zeros(links)
    mark = np.zeros(links, np.int64)
    f = load(links, first, pool, flow)
    number, lowest, patience, extra = 0, np.inf, 0, 1
    begun, iterations, relative, fitting = 0, 0, np.inf, np.inf
    if memory[1] > 0.0:
        begun, iterations = int(memory[1]), int(memory[2])
        relative, fitting, number, lowest = memory[3], memory[4], int(memory[5]), memory[6]
        patience, extra = int(memory[7]), int(memory[8])
    elif family != 2 and len(flow) > 0:
        fullest = 0.0
        for e in range(links):
            if c[e] > 0.0:
                fullest = max(fullest, f[e] / c[e])
        while number < len(edges) - 1 and fullest < 0.5 + 0.5 * edges[number]:
            number += 1
        number = max(number, warm)
    done = 0
    for turn in range(begun, begun + rounds):
        r = edges[number]
        room = 0.0
        for e in range(links):
            length[e] = slope(family, a[e], lin[e], c[e], beta, r, f[e]) if c[e] > 0.0 else np.inf
            if c[e] > 0.0:
                room += length[e] * c[e]
        keep = 1e-13 if turn > 0 else -1.0
        own, first, pool, flow, best, _ = widen(
            tail, head, out, out_link, length, origin, destination, rate,
            own, first, pool, flow, keep,
        )  # fmt: skip
        if family != 2 and room < fitting * best:  # of the same lengths, to the last digit
            fitting = room / best
            proof[:] = length
        f = load(links, first, pool, flow)
        now, fullest = 0.0, 0.0
        for e in range(links):
            if c[e] > 0.0:
                length[e] = slope(family, a[e], lin[e], c[e], beta, r, f[e])
                bend[e] = curvature(family, a[e], c[e], beta, r, f[e])
                now += length[e] * f[e]
                fullest = max(fullest, f[e] / c[e])
        relative, raised = max(0.0, (now - best) / now) if now > 0.0 else 0.0, False
        if family == 2 or fullest <= r:
            if relative <= gap:
                done = 1
                break
            if family != 2 and number < len(edges) - 1 and relative < 0.1:
                number, raised = len(edges) - 1, True
        else:
            if fitting < 1.0 - 1e-9:
                done = 1
                break
            # In force only where links overflow: a rough answer is enough to go on from.
            if number < len(edges) - 1 and relative <= 0.02:
                number, raised = number + 1, True
            elif number == len(edges) - 1 and relative <= gap:
                done = 1
                break
        if raised:  # the paths will do; looking for others takes longest on large networks
            r = edges[number]
            for e in range(links):
                if c[e] > 0.0:
                    length[e] = slope(family, a[e], lin[e], c[e], beta, r, f[e])
                    bend[e] = curvature(family, a[e], c[e], beta, r, f[e])
        if relative < 0.5 * lowest:
            lowest, patience, extra = relative, 0, 1
        else:
            patience += 1
            if patience % 4 == 0:
                extra = min(2 * extra, 16)
        exchanges = 0
        for k in range(len(rate)):
            exchanges += max(0, own[k + 1] - own[k] - 1)
        if exchanges <= _DIRECT:
            sweep(family, a, lin, c, beta, r, own, first, pool, flow, f, length, bend, mark)
            iterations += 1
            falling = direct(
                family, a, lin, c, beta, r, own, first, pool, flow, f, length, bend, mark,
                _PIVOTS if exchanges > _FEW else 3 * _PIVOTS,
                max(_LEAST_DAMPING, _DAMPING * min(1.0, relative)),
            )  # fmt: skip
            if falling > 0.0:
                continue
        for _ in range(steps):
            for _ in range(extra * sweeps):
                sweep(family, a, lin, c, beta, r, own, first, pool, flow, f, length, bend, mark)
                iterations += 1
            if most > 0 and relative < 0.3:
                tolerance = min(0.1, max(1e-6, relative**0.5))
                expected = newton(
                    family, a, lin, c, beta, r, own, first, pool, flow, f, length, bend, mark,
                    tolerance, most,
                )  # fmt: skip
                iterations += 1
                if expected <= max(0.02 * relative, 0.1 * gap) * now:
                    break
    memory[0], memory[1], memory[2] = done, begun + rounds, iterations
    memory[3], memory[4], memory[5], memory[6] = relative, fitting, number, lowest
    memory[7], memory[8] = patience, extra
    return own, first, pool, flow


@compiled
def reached(
    origin: Ints, destination: Ints, out: Ints, out_link: Ints, head: Ints
) -> NDArray[np.bool_]:
    """Return which commodities have a path."""
    nodes = len(out) - 1
    seen, waiting = np.full(nodes, -1, np.int64), np.empty(nodes, np.int64)
    there = np.zeros(len(origin), np.bool_)
    last = -1
    for k in range(len(origin)):
        if origin[k] != last:
            last = origin[k]
            seen[last] = k
            mark = k
            waiting[0] = last
            size = 1
            while size > 0:
                size -= 1
                node = waiting[size]
                for i in range(out[node], out[node + 1]):
                    to = head[out_link[i]]
                    if seen[to] != mark:
                        seen[to] = mark
                        waiting[size] = to
                        size += 1
        there[k] = seen[destination[k]] == mark
    return there


@compiled
def carried(
    order: Ints,
    origin: Ints,
    destination: Ints,
    rate: Floats,
    tail: Ints,
    head: Ints,
    c: Floats,
    own: Ints,
    first: Ints,
    pool: Ints,
    flow: Floats,
) -> tuple[Ints, Ints, Ints, Floats]:
    """Return earlier paths as far as they still lead from end to end, with the rates of now.

    Earlier paths are in the order of demands, `order` says which of them are wanted.
    """
    count = len(order)
    new_own = np.zeros(count + 1, np.int64)
    new_first = np.zeros(len(flow) + 1, np.int64)
    new_pool = np.empty(len(pool), np.int64)
    new_flow = np.empty(len(flow))
    columns, used = 0, 0
    for k in range(count):
        number, total = order[k], 0.0
        for p in range(own[number], own[number + 1]):
            at, good = origin[k], flow[p] > 0.0 and flow[p] < np.inf
            for i in range(first[p], first[p + 1]):
                e = pool[i]
                if e < 0 or e >= len(c) or c[e] <= 0.0 or tail[e] != at:
                    good = False
                    break
                at = head[e]
            if good and at == destination[k]:
                for i in range(first[p], first[p + 1]):
                    new_pool[used] = pool[i]
                    used += 1
                new_flow[columns] = flow[p]
                total += flow[p]
                columns += 1
                new_first[columns] = used
        for p in range(new_own[k], columns):
            new_flow[p] *= rate[k] / total
        new_own[k + 1] = columns
    return (
        new_own,
        new_first[: columns + 1].copy(),
        new_pool[:used].copy(),
        new_flow[:columns].copy(),
    )


@compiled
def finish(
    family: int,
    a: Floats,
    lin: Floats,
    c: Floats,
    beta: float,
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
    gap: float,
    trace: float,
    full: float,
) -> tuple[Floats, Floats, float, float, float, float]:
    """Drop traces if the gap allows; path and link flows, cost, Σ length·flow, best, utilisation.

    A trace is what carries less than that part of its commodity.
    """
    f = load(len(c), first, pool, flow)
    cost, now, best, fullest = judge(
        family, a, lin, c, beta, head, out, out_link, origin, destination, rate, f
    )
    kept = flow.copy()
    traces = False
    for k in range(len(rate)):
        total = 0.0
        for p in range(own[k], own[k + 1]):
            if kept[p] < trace * rate[k]:
                kept[p] = 0.0
                traces = True
            total += kept[p]
        for p in range(own[k], own[k + 1]):
            kept[p] *= rate[k] / total
    if traces and (family == 2 or fullest < full):
        other = load(len(c), first, pool, kept)
        result = judge(
            family, a, lin, c, beta, head, out, out_link, origin, destination, rate, other
        )
        if result[1] - result[2] <= max(gap * result[1], now - best):
            return kept, other, result[0], result[1], result[2], result[3]
    return flow, f, cost, now, best, fullest


@compiled
def arranged(
    order: Ints, demands: int, own: Ints, first: Ints, pool: Ints, flow: Floats
) -> tuple[Ints, Ints, Ints, Floats]:
    """Return the paths that carry something in the order of demands, the largest flow first."""
    place = np.full(demands, -1, np.int64)
    for k in range(len(order)):
        place[order[k]] = k
    new_own = np.zeros(demands + 1, np.int64)
    new_first = np.zeros(len(flow) + 1, np.int64)
    new_pool = np.empty(len(pool), np.int64)
    new_flow = np.empty(len(flow))
    picked = np.empty(len(flow), np.int64)
    columns, used = 0, 0
    for number in range(demands):
        k = place[number]
        if k >= 0:
            size = 0
            for p in range(own[k], own[k + 1]):
                if flow[p] > 0.0:
                    i = size
                    while i > 0 and before(p, picked[i - 1], first, pool, flow):
                        picked[i] = picked[i - 1]
                        i -= 1
                    picked[i] = p
                    size += 1
            for j in range(size):
                p = picked[j]
                for i in range(first[p], first[p + 1]):
                    new_pool[used] = pool[i]
                    used += 1
                new_flow[columns] = flow[p]
                columns += 1
                new_first[columns] = used
        new_own[number + 1] = columns
    return (
        new_own,
        new_first[: columns + 1].copy(),
        new_pool[:used].copy(),
        new_flow[:columns].copy(),
    )


@compiled
def before(p: int, q: int, first: Ints, pool: Ints, flow: Floats) -> bool:
    """Return whether a path comes before another: larger flow, then lower links."""
    if flow[p] != flow[q]:
        return bool(flow[p] > flow[q])
    for i in range(min(first[p + 1] - first[p], first[q + 1] - first[q])):
        one, other = pool[first[p] + i], pool[first[q] + i]
        if one != other:
            return bool(one < other)
    return bool(first[p + 1] - first[p] < first[q + 1] - first[q])


@compiled
def settle(
    family: int,
    a: Floats,
    lin: Floats,
    c: Floats,
    beta: float,
    own: Ints,
    first: Ints,
    pool: Ints,
    flow: Floats,
    edges: Floats,
    gap: float,
    rounds: int,
    sweeps: int,
    most: int,
) -> float:
    """Minimise the cost over the given paths only, in place; returns the utilisation."""
    links = len(c)
    f = load(links, first, pool, flow)
    length, bend = np.zeros(links), np.zeros(links)
    mark = np.zeros(links, np.int64)
    number, fullest = 0, 0.0
    for _ in range(rounds):
        r = edges[number]
        fullest = 0.0
        for e in range(links):
            length[e], bend[e] = 0.0, 0.0
            if c[e] > 0.0:
                length[e] = slope(family, a[e], lin[e], c[e], beta, r, f[e])
                bend[e] = curvature(family, a[e], c[e], beta, r, f[e])
                fullest = max(fullest, f[e] / c[e])
        now, excess = 0.0, 0.0
        for k in range(len(own) - 1):
            least, carried = np.inf, 0.0
            for p in range(own[k], own[k + 1]):
                total = 0.0
                for i in range(first[p], first[p + 1]):
                    total += length[pool[i]]
                least = min(least, total)
                now += flow[p] * total
                carried += flow[p]
            if carried > 0.0:
                excess -= carried * least
        excess += now
        if excess <= (gap if number == len(edges) - 1 else 1e-3) * now:
            if number == len(edges) - 1:
                break
            number = len(edges) - 1 if fullest <= r else number + 1
            continue
        for _ in range(sweeps):
            sweep(family, a, lin, c, beta, r, own, first, pool, flow, f, length, bend, mark)
        newton(
            family, a, lin, c, beta, r, own, first, pool, flow, f, length, bend, mark, 1e-3, most
        )  # fmt: skip
    return fullest


@compiled
def judge(
    family: int,
    a: Floats,
    lin: Floats,
    c: Floats,
    beta: float,
    head: Ints,
    out: Ints,
    out_link: Ints,
    origin: Ints,
    destination: Ints,
    rate: Floats,
    f: Floats,
) -> tuple[float, float, float, float]:
    """Return cost, Σ length·flow, Σ rate·distance and utilisation of link flows.

    It knows the link flows only, and nothing of how they came about.
    """
    nodes = len(out) - 1
    length = np.full(len(c), np.inf)
    cost, now, fullest, best = 0.0, 0.0, 0.0, 0.0
    for e in range(len(c)):
        if c[e] <= 0.0:
            continue
        fullest = max(fullest, f[e] / c[e])
        if family == 2 or f[e] < c[e]:
            length[e] = slope(family, a[e], lin[e], c[e], beta, 1.0, f[e])
        if f[e] > 0.0:
            cost += value(family, a[e], lin[e], c[e], beta, 1.0, f[e])
            now += length[e] * f[e]
    distance, key = np.empty(nodes), np.empty(nodes)
    arrived, heap = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    place, wanted = np.empty(nodes, np.int64), np.zeros(nodes, np.int64)
    k = 0
    while k < len(rate):
        upto, remaining = k, 0
        while upto < len(rate) and origin[upto] == origin[k]:
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
            best += rate[i] * distance[destination[i]]
        k = upto
    return cost, now, best, fullest
