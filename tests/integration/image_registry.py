"""A registry of one image on a free port of the loopback, as far as `pull` asks one: the reading half of the OCI distribution specification (v1.1), with an OCI image
manifest and layers that are plain tars. Layers from the second on are sent to their half, and then wait to be let go."""

import hashlib
import http.server
import json
import platform
import threading


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
MANIFEST, CONFIG, LAYER = (
    f"application/vnd.oci.image.{what}"
    for what in ("manifest.v1+json", "config.v1+json", "layer.v1.tar")
)


class Registry:
    def __init__(self, layers, patience, env=()):
        self.layers = layers
        self.stalled = {digest(layer) for layer in layers[1:]}
        self.go = threading.Event()
        self.patience = patience
        diff_ids = [digest(layer) for layer in layers]
        config = json.dumps(
            {
                "architecture": ARCHITECTURE,
                "os": "linux",
                "config": {"Env": list(env)},
                "rootfs": {"type": "layers", "diff_ids": diff_ids},
            }
        ).encode()
        described = [
            {"mediaType": LAYER, "digest": digest(layer), "size": len(layer)} for layer in layers
        ]
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": CONFIG, "digest": digest(config), "size": len(config)},
            "layers": described,
        }
        self.manifest = json.dumps(manifest).encode()
        self.blobs = {digest(blob): blob for blob in [config, *layers]}
        self.asked = []  # paths of blobs
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def name(self, image):
        return f"127.0.0.1:{self.server.server_port}/{image}"

    def close(self):
        self.go.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def handler(self):
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                last = self.path.rsplit("/", 1)[-1]
                if self.path == "/v2/":
                    self.answer(b"{}", "application/json")
                elif "/manifests/" in self.path:
                    self.answer(registry.manifest, MANIFEST)
                elif last in registry.blobs:
                    registry.asked.append(last)
                    self.answer(
                        registry.blobs[last], "application/octet-stream", last in registry.stalled
                    )
                else:
                    self.send_error(404)

            do_HEAD = do_GET

            def answer(self, data, media, stalled=False):
                self.send_response(200)
                self.send_header("Content-Type", media)
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Docker-Content-Digest", digest(data))
                self.end_headers()
                if self.command == "HEAD":
                    return
                half = len(data) // 2 if stalled else 0
                self.wfile.write(data[:half])
                self.wfile.flush()
                if stalled and not registry.go.wait(registry.patience):
                    self.close_connection = True
                    return
                self.wfile.write(data[half:])

            def log_message(self, *_):
                pass

        return Handler
