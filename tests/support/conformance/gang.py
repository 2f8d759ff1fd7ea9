"""How the ranks of one launch find each other and stay in step: every exchange is one message from each rank to the hub, and all of them back to each.

The hub is rank 0 (torch's store, HCCL's first server) or MindSpore's scheduler.  A peer that vanishes is met as the release meets it: "raise" (gloo says so
at once) or "hang" (HCCL and MindSpore wait for their time-outs; what the others then get is SIGTERM from whoever minds them).
"""

import os
import select
import socket
import struct
import sys
import time

from .fail import Violation, engine_error
from .wait import PATIENCE, until

_GOODBYE = 0xFFFFFFFF


class Lost(Exception):
    pass


def _receive(peer, size):
    parts = []
    while size:
        part = peer.recv(size)
        if not part:
            raise Lost()
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _take(peer):
    (size,) = struct.unpack("!I", _receive(peer, 4))
    return None if size == _GOODBYE else _receive(peer, size)


def _give(peer, message):
    peer.sendall(struct.pack("!I", len(message)) + message)


def listen(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.socket(family)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((address, port))
    server.listen(1024)
    return server


def _admit(server, count, first):
    """The peers by rank. A second process that says it is the same rank ends everything."""
    peers, end = {}, time.monotonic() + PATIENCE
    while len(peers) < count:
        server.settimeout(max(0.1, end - time.monotonic()))
        try:
            peer, _ = server.accept()
        except TimeoutError as error:
            raise Violation(
                f"{count - len(peers)} of {count} ranks never came; there are {sorted(peers)}"
            ) from error
        peer.settimeout(None)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            rank = int(_take(peer))
        except (Lost, OSError):
            continue  # a probe of the port, or a rank that died at once
        if rank in peers or not first <= rank < first + count:
            raise Violation(f"rank {rank} came twice, or is none of {first}..{first + count - 1}")
        peers[rank] = peer
    server.close()
    return [peers[rank] for rank in sorted(peers)]


def _connect(address, port, rank):
    peer = until(
        lambda: socket.create_connection((address, port), timeout=5.0),
        f"rank {rank} cannot reach {address}:{port}",
    )
    peer.settimeout(None)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _give(peer, str(rank).encode())
    return peer


def _pack(messages):
    return b"".join(struct.pack("!I", len(message)) + message for message in messages)


def _unpack(text):
    messages, at = [], 0
    while at < len(text):
        (size,) = struct.unpack_from("!I", text, at)
        messages.append(text[at + 4 : at + 4 + size])
        at += 4 + size
    return messages


class Gang:
    def __init__(self, place, release):
        self._rank, self._world, self._lost = place.rank, place.world, release["lost_peer"]
        self._peers, self._hub = [], None
        if place.world == 1:
            return
        if place.scheduler:
            self._hub = _connect(*place.scheduler, place.rank)
        elif place.rank == 0:
            self._peers = _admit(place.open_hub(), place.world - 1, 1)
        else:
            self._hub = _connect(*place.find_hub(), place.rank)

    def exchange(self, message):
        """What every rank sent, by rank."""
        if self._world == 1:
            return [message]
        try:
            if self._hub is not None:
                _give(self._hub, message)
                text = _take(self._hub)
                if text is None:
                    raise Lost()
                return _unpack(text)
            messages = [message] + [_take(peer) for peer in self._peers]
            text = _pack(messages)
            for peer in self._peers:
                _give(peer, text)
            return messages
        except (Lost, OSError) as error:
            raise self._alone(error) from error

    def barrier(self):
        self.exchange(b"")

    def goodbye(self):
        if self._hub is not None:
            self._hub.sendall(struct.pack("!I", _GOODBYE))
            self._hub.close()

    def _alone(self, error):
        if self._lost["how"] == "hang":
            sys.stdout.flush()
            select.select(
                [],
                [],
                [],
                float(os.environ.get(self._lost["patience"]) or self._lost["patience_default"]),
            )
        return engine_error(
            self._lost["kind"], self._lost["text"].format(rank=self._rank, error=error)
        )


def schedule(place):
    """MindSpore's scheduler: lets the workers find each other, and ends when all of them have said goodbye."""
    workers = _admit(listen(*place.scheduler), place.world, 0)
    print(f"The cluster of {len(workers)} workers is built", flush=True)
    while True:
        try:
            messages = [_take(worker) for worker in workers]
            if None in messages:
                break
            text = _pack(messages)
            for worker in workers:
                _give(worker, text)
        except (Lost, OSError) as error:
            # A worker that is gone is one that stops sending heartbeats: noticed only then.
            select.select([], [], [], float(os.environ.get("MS_NODE_TIMEOUT") or 30))
            raise engine_error(
                "RuntimeError",
                "The total number of timed out node is 1. Timed out node list is: [const vector]",
            ) from error
    if messages.count(None) != len(messages):
        raise Violation("some workers said goodbye and others went on")
