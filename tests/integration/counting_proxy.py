"""An HTTP proxy of a test before a real end: it counts requests, and can hold them, cut them, or be away.

    with CountingProxy("127.0.0.1", port) as proxy:
        proxy.address                         # HOST:PORT, in place of the end's
        proxy.counts["GET"]                   # answered since the last clear()
        proxy.cut = lambda path: ...          # true: the connection is closed in the middle of the answer
        proxy.endless = lambda path: ...      # true: the answer is a MiB longer, and does not end
        proxy.gate.clear(); proxy.gate.set()  # GETs wait for it, or what is in proxy.gates
        proxy.gated = lambda path: ...        # true: this one does; else it goes on
        proxy.away()                          # until back(): nobody listens
        proxy.slam()                          # until away() and back(): connections end at once; proxy.slammed counts them
"""

import collections
import http.client
import http.server
import socket
import socketserver
import threading

CHUNK = 64 << 10
HOP = ("connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade")


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def _pass_on(self):
        proxy = self.server.proxy
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length) if length else None
        if self.command in proxy.gates and proxy.gated(self.path):
            with proxy.changed:
                proxy.waiting += 1
                proxy.changed.notify_all()
            proxy.gate.wait()
        end = http.client.HTTPConnection(*proxy.end)
        try:
            end.request(
                self.command, self.path, body, {k: v for k, v in self.headers.items() if k.lower() not in HOP}
            )
            answer = end.getresponse()
            data = answer.read()
        finally:
            end.close()
        cut = self.command == "GET" and proxy.cut(self.path)
        with proxy.changed:
            proxy.counts[self.command] += 1
            proxy.paths.append((self.command, self.path))
            proxy.changed.notify_all()
        self.send_response(answer.status)
        for key, value in answer.getheaders():
            if key.lower() not in HOP and key.lower() not in ("content-length", "date", "server"):
                self.send_header(key, value)
        endless = self.command == "GET" and proxy.endless(self.path)
        self.send_header("Content-Length", str(1 << 30) if endless else answer.getheader("Content-Length", str(len(data))))
        self.end_headers()
        if self.command == "HEAD":
            return
        if cut:
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if endless:
            self.wfile.write(data + bytes(1 << 20))
            self.connection.recv(1)  # until the client ends
            self.close_connection = True
            return
        for at in range(0, len(data), CHUNK):
            self.wfile.write(data[at : at + CHUNK])

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_OPTIONS = do_PROPFIND = do_MKCOL = do_MOVE = _pass_on


class _Slam(socketserver.BaseRequestHandler):
    def handle(self):
        proxy = self.server.proxy
        with proxy.changed:
            proxy.slammed += 1
            proxy.changed.notify_all()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    proxy = None

    def handle_error(self, request, client_address):
        pass  # the other end has gone: that is what tests do


class CountingProxy:
    def __init__(self, host, port):
        self.end = (host, port)
        self.counts, self.paths = collections.Counter(), []
        self.cut = self.endless = lambda path: False
        self.gated = lambda path: True
        self.gates = ("GET",)
        self.gate = threading.Event()
        self.gate.set()
        self.changed = threading.Condition()
        self.waiting = 0  # GETs that have come to the gate, in all
        self.slammed = 0
        self._server, self._port = None, 0
        self.back()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.gate.set()
        self.away()

    @property
    def address(self):
        return f"127.0.0.1:{self._port}"

    def clear(self):
        with self.changed:
            self.counts.clear()
            self.paths.clear()

    def back(self):
        self._listen(_Handler)

    def slam(self):
        self.away()
        self._listen(_Slam)

    def _listen(self, handler):
        self._server = _Server(("127.0.0.1", self._port), handler)
        self._server.proxy = self
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def away(self):
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
