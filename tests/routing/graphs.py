"""Graphs to try things on."""

from hypothesis import strategies as st

from routing import Graph, Link


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Small graphs with parallel links, dead ends and links that are down; from 0 to 1."""
    nodes = draw(st.integers(2, 7))
    node = st.integers(0, nodes - 1)
    link = st.builds(
        Link, node, node, st.integers(0, 20).map(float), st.integers(0, 5).map(float)
    ).filter(lambda link: link.tail != link.head)
    # The two ends are there whatever is drawn.
    return Graph([Link(0, 1, 0.0), *draw(st.lists(link, max_size=20))])
