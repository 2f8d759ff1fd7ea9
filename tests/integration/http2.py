"""Just enough of HTTP/2 (RFC 9113) to send what no gRPC library would: requests that never end, calls that are taken back at once,
and floods of frames."""

import contextlib
import socket
import ssl
import struct

DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 3, 4, 6, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = 3, 4
CANCEL = 8
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_PATIENCE = 60  # s; of a peer that takes nothing


def _frame(kind, flags, stream, payload=b""):
    return (
        struct.pack(">I", len(payload))[1:]
        + bytes((kind, flags))
        + struct.pack(">I", stream)
        + payload
    )


def _literal(text):
    data = text.encode()
    assert len(data) < 127, "longer ones are packed otherwise"
    return bytes((len(data),)) + data


def _fields(path, host):
    """HPACK (RFC 7541): literals without indexing, so that no frame depends on another."""
    fields = [
        (":method", "POST"),
        (":scheme", "https"),
        (":path", path),
        (":authority", host),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
    ]
    return b"".join(b"\0" + _literal(name) + _literal(value) for name, value in fields)


class Connection:
    """One to HOST:PORT, in the clear, or within TLS: `context` (tls.py), to the server of this name. `streams_most`: as the peer's settings say, None: no bound.
    `open`: streams with what their windows hold; `ended`: how the others did. The constructor waits for the peer's settings; OSError: it refuses the
    connection."""

    def __init__(self, host, port, context=None, name=None):
        self._socket = socket.create_connection((host, port), timeout=_PATIENCE)
        self._authority = f"{host}:{port}"
        try:
            if context is not None:
                self._socket = context.wrap_socket(self._socket, server_hostname=name)
            self._settle()
        except BaseException:
            self._socket.close()
            raise

    def _settle(self):
        self._window = self._initial = 65_535
        self._received = b""
        self._next = 1
        self.streams_most = None
        self.open, self.ended = {}, {}
        self._socket.sendall(PREFACE + _frame(SETTINGS, 0, 0))
        self._settled = False
        while not self._settled:
            assert self.read(_PATIENCE), "the peer said nothing"

    def close(self):
        self._socket.close()

    def begin(self, path):
        """A call: its stream's number."""
        stream, self._next = self._next, self._next + 2
        self._socket.sendall(_frame(HEADERS, END_HEADERS, stream, _fields(path, self._authority)))
        self.open[stream] = self._initial
        return stream

    def send(self, stream, data):
        """As much as the windows take of it: how many bytes."""
        size = max(0, min(len(data), self._window, self.open.get(stream, 0), 16_384))
        if size > 0:
            self._socket.sendall(_frame(DATA, 0, stream, data[:size]))
            self._window -= size
            self.open[stream] -= size
        return size

    def ask(self, path, request=b""):
        """A call whose request is whole, of at most 16 KiB: its stream's number."""
        stream = self.begin(path)
        message = b"\0" + struct.pack(">I", len(request)) + request
        self._socket.sendall(_frame(DATA, END_STREAM, stream, message))
        return stream

    def call(self, path):
        """A call with an empty request; it returns when it is over."""
        stream = self.ask(path)
        while stream in self.open:
            assert self.read(_PATIENCE), "the peer said nothing"

    def take_back(self, path, count):
        """So many calls, each reset behind its headers."""
        fields, wish = _fields(path, self._authority), struct.pack(">I", CANCEL)
        while count > 0:
            now, count = min(count, 1_000), count - 1_000
            batch = b""
            for _ in range(now):
                batch += _frame(HEADERS, END_HEADERS, self._next, fields) + _frame(
                    RST_STREAM, 0, self._next, wish
                )
                self._next += 2
            self._socket.sendall(batch)
            while self.read(0):
                pass

    def flood(self, kind, count):
        """So many empty frames of SETTINGS, or PINGs, none of whose answers is read. It ends early when the peer takes no more."""
        data = _frame(kind, 0, 0, bytes(8) if kind == PING else b"")
        self._socket.settimeout(5)
        with contextlib.suppress(OSError):  # an ssl.SSLError is one
            for _ in range(count // 1_000):
                self._socket.sendall(data * 1_000)
        self._socket.settimeout(_PATIENCE)

    def huge(self):
        """A frame that says to be as long as a length can be. ConnectionError or ssl.SSLError: the peer ends the connection."""
        self._socket.sendall(b"\xff\xff\xff" + _frame(DATA, 0, 1, b"x" * 16_384)[3:])
        while self.read(_PATIENCE):
            pass

    def read(self, seconds):
        """Takes in what the peer has sent; False: nothing within this time."""
        self._socket.settimeout(max(seconds, 0.0))
        try:
            more = self._socket.recv(1 << 16)
        except (BlockingIOError, TimeoutError, ssl.SSLWantReadError):
            return False
        finally:
            self._socket.settimeout(_PATIENCE)
        if not more:
            raise ConnectionError("the peer has closed the connection")
        self._received += more
        while len(self._received) >= 9:
            end = 9 + int.from_bytes(self._received[:3], "big")
            if len(self._received) < end:
                break
            head, payload, self._received = (
                self._received[:9],
                self._received[9:end],
                self._received[end:],
            )
            self._take(head[3], head[4], struct.unpack(">I", head[5:9])[0], payload)
        return True

    def _take(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & ACK:
            for at in range(0, len(payload), 6):
                key, value = struct.unpack(">HI", payload[at : at + 6])
                if key == MAX_CONCURRENT_STREAMS:
                    self.streams_most = value
                if key == INITIAL_WINDOW_SIZE:
                    self.open = {
                        one: window + value - self._initial for one, window in self.open.items()
                    }
                    self._initial = value
            self._socket.sendall(_frame(SETTINGS, ACK, 0))
            self._settled = True
        elif kind == PING and not flags & ACK:
            self._socket.sendall(_frame(PING, ACK, 0, payload))
        elif kind == WINDOW_UPDATE and stream == 0:
            self._window += struct.unpack(">I", payload)[0]
        elif kind == WINDOW_UPDATE and stream in self.open:
            self.open[stream] += struct.unpack(">I", payload)[0]
        elif kind == RST_STREAM or kind == HEADERS and flags & END_STREAM:
            self.open.pop(stream, None)
            self.ended.setdefault(stream, "answered" if kind == HEADERS else "reset")
