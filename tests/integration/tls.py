"""Python's side of TLS with a controller: by a file that `muster cert issue` wrote, or without a certificate."""

import re
import socket
import ssl

_BLOCK = re.compile(rb"-----BEGIN ([A-Z ]+)-----.+?-----END \1-----\n", re.DOTALL)


def server_name(cluster):
    """The name in the controller's certificate, wherever it listens."""
    return f"controller.{cluster.announced()['cluster_id']}.muster"


def blocks(credentials):
    """The PEM blocks of such a file: its labels in order, and what each holds."""
    with open(credentials, "rb") as file:
        return [(found[1].decode(), found[0]) for found in _BLOCK.finditer(file.read())]


def parts(credentials):
    """Of such a file: the private key, the certificate, and the CA's certificate, as PEM."""
    found = blocks(credentials)
    (key,) = (text for label, text in found if label.endswith("PRIVATE KEY"))
    own, authority = (text for label, text in found if label == "CERTIFICATE")
    return key, own, authority


def context(credentials=None, version=None):
    """For Connection and wrap_socket. Without credentials it shows no certificate, and believes every server. `version`: of TLS, and no other."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.set_alpn_protocols(["h2"])
    if version is not None:
        made.minimum_version = made.maximum_version = version
    if credentials is None:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    else:
        made.load_verify_locations(cadata=parts(credentials)[2].decode())
        made.load_cert_chain(credentials)
    return made


def first_frame(at, of, name):
    """The head of the controller's first frame of HTTP/2, which it sends to those that it lets in; nothing: it ended the connection. `at`: (host, port)."""
    try:
        with socket.create_connection(at, timeout=60) as plain:
            with of.wrap_socket(plain, server_hostname=name) as within:
                return within.recv(9)
    except (ssl.SSLError, ConnectionError):
        return b""


def client_hello(of):
    """The bytes with which a handshake begins."""
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    begun = of.wrap_bio(received, sent, server_hostname="controller.muster")
    try:
        begun.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return sent.read()


def channel(grpc, cluster, credentials):
    """A channel of gRPC's Python package to the controller's TCP address."""
    key, own, authority = parts(credentials)
    return grpc.secure_channel(
        cluster.tcp_address(),
        grpc.ssl_channel_credentials(authority, key, own),
        options=[("grpc.ssl_target_name_override", server_name(cluster))],
    )
