"""Who takes part in a connection: openings by MP_CAPABLE, subflows joined by token and HMAC."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from captures.authentication import join_hmac, token_and_initial_sequence
from captures.options import Capable, Join, Option, decode
from captures.packets import RST, Packets
from captures.streams import Half, Stream, header_cut

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Sent:
    """An option and the packet that has it; `forward` is from the stream's client."""

    row: int
    forward: bool
    option: Option


@dataclass(frozen=True)
class Member:
    """A stream and how it takes part.

    Attributes
    ----------
    stream : Stream
    options : list of Sent
    joined : bool
        It was added by MP_JOIN.
    swapped : bool
        The connection's server opened it.
    backup : bool
        As said when it was opened, by either side.
    verified : bool or None
        Whether its HMACs are right; ``None`` if that cannot be checked.
    """

    stream: Stream
    options: list[Sent]
    joined: bool = False
    swapped: bool = False
    backup: bool = False
    verified: bool | None = None

    def half(self, packets: Packets, *, forward: bool) -> Half:
        """What went from the connection's client to its server, or back."""
        return self.stream.half(packets, forward=forward != self.swapped)


@dataclass
class Draft:
    """A connection before its data are looked at.

    Attributes
    ----------
    multipath : bool
        Multipath TCP was agreed on, or seen in use.
    version : int or None
        As far as the opening tells.
    refused : bool
        Multipath TCP was asked for, but not agreed on.
    members : list of Member
    client_key, server_key : int or None
    token : int or None
        Of a join whose connection is not in the capture.
    """

    multipath: bool
    version: int | None = None
    refused: bool = False
    members: list[Member] = field(default_factory=list)
    client_key: int | None = None
    server_key: int | None = None
    token: int | None = None

    @property
    def first_row(self) -> int:
        """Position of its first packet."""
        return self.members[0].stream.first_row

    def initial_sequence(self, *, forward: bool) -> int | None:
        """Initial data sequence number of the side that sends in this direction."""
        key = self.client_key if forward else self.server_key
        if key is None or self.version is None:
            return None
        return token_and_initial_sequence(key, self.version)[1]

    def tokens(self) -> tuple[int | None, int | None]:
        """Tokens of client and server."""
        if self.version is None:
            return None, self.token
        version = self.version
        client, server = (
            None if key is None else token_and_initial_sequence(key, version)[0]
            for key in (self.client_key, self.server_key)
        )
        return client, server


def drafts(packets: Packets, streams: Iterable[Stream]) -> list[Draft]:
    """Sort streams into connections, in order of their first packets.

    A join belongs to the newest connection with its token; joins whose connection's opening is
    not in the capture form a connection for each token.
    """
    found: list[Draft] = []
    joins: list[Member] = []
    for stream in streams:
        options = _options(packets, stream)
        member = Member(stream, options)
        if any(isinstance(each.option, Join) for each in options):
            joins.append(member)
        elif any(isinstance(each.option, Capable) for each in options):
            found.append(_opening(packets, member))
        else:
            found.append(Draft(bool(options) or _has_dss(packets, stream), members=[member]))
    by_token: dict[int, list[tuple[Draft, bool]]] = {}
    for draft in found:
        for token, of_client in zip(draft.tokens(), (True, False), strict=True):
            if draft.multipath and token is not None:
                by_token.setdefault(token, []).append((draft, of_client))
    for member in joins:
        _join(member, found, by_token)
    return sorted(found, key=lambda draft: draft.first_row)


def _options(packets: Packets, stream: Stream) -> list[Sent]:
    table = packets.options
    found: list[Sent] = []
    for index in stream.options.tolist():
        option = decode(table.raw(index))
        if option is not None:
            row = int(table.row[index])
            place = int(np.searchsorted(stream.forward, row))
            forward = place < len(stream.forward) and int(stream.forward[place]) == row
            found.append(Sent(row, forward, option))
    return found


def _has_dss(packets: Packets, stream: Stream) -> bool:
    return any(
        bool((packets.dss_flags[rows] != 0).any()) for rows in (stream.forward, stream.backward)
    )


def _opening(packets: Packets, member: Member) -> Draft:
    capable = [(each, each.option) for each in member.options if isinstance(each.option, Capable)]
    asked = [option for sent, option in capable if sent.forward]
    answered = [option for sent, option in capable if not sent.forward]
    versions = [option.version for option in answered + asked]

    def first(keys: Iterable[int | None]) -> int | None:
        return next((key for key in keys if key is not None), None)

    client_key = first(option.sender_key for option in asked)
    server_key = first(
        [option.sender_key for option in answered] + [option.receiver_key for option in asked]
    )
    # Agreed: the server's SYN said so, the client repeated both keys, or DSS is in use. Refused by
    # an answer without the option; a reset, silence, and options that the snap length cut off say
    # nothing about it.
    stream = member.stream
    agreed = bool(answered) or any(option.receiver_key is not None for option in asked)
    agreed = agreed or _has_dss(packets, stream)
    answers = (packets.flags[stream.backward] & RST == 0) & ~header_cut(packets, stream.backward)
    refused = not agreed and bool(answers.any())
    version = versions[0] if versions[0] in (0, 1) and not refused else None
    return Draft(not refused, version, refused, [member], client_key, server_key)


def _join(
    member: Member, found: list[Draft], by_token: dict[int, list[tuple[Draft, bool]]]
) -> None:
    joins = [(each, each.option) for each in member.options if isinstance(each.option, Join)]
    tokens = [option.token for _, option in joins if option.token is not None]
    token = tokens[0] if tokens else None
    if token is None or token not in by_token:
        # The token is the receiver's: whoever sent the SYN counts as the client.
        found.append(Draft(True, token=token))
        candidates = [(found[-1], False)]
        if token is not None:
            by_token[token] = candidates
    else:
        candidates = by_token[token]
    opened = member.stream.first_row
    earlier = [each for each in candidates if not each[0].members or each[0].first_row <= opened]
    draft, of_client = (earlier or candidates)[-1]
    draft.members.append(
        Member(
            member.stream,
            member.options,
            joined=True,
            swapped=of_client,
            backup=any(option.backup for _, option in joins),
            verified=_verified(draft, of_client, joins),
        )
    )


def _verified(draft: Draft, swapped: bool, joins: list[tuple[Sent, Join]]) -> bool | None:
    """Whether the HMACs of a join are right."""
    if draft.client_key is None or draft.server_key is None or draft.version is None:
        return None
    keys = (draft.client_key, draft.server_key)
    keys = (keys[1], keys[0]) if swapped else keys
    # Whose nonce: the first is that of the side that opens the subflow.
    nonces: list[int | None] = [None, None]
    for sent, option in joins:
        if option.nonce is not None:
            nonces[0 if sent.forward else 1] = option.nonce
    first, second = nonces
    if first is None or second is None:
        return None
    results: list[bool] = []
    for sent, option in joins:
        if option.hmac is not None:
            if sent.forward:
                whole = join_hmac(draft.version, keys, (first, second))
            else:
                whole = join_hmac(draft.version, (keys[1], keys[0]), (second, first))
            results.append(whole[: len(option.hmac)] == option.hmac)
    return all(results) if results else None
