"""Python classes of .proto files."""

import subprocess


def compile_protos(to, *files, includes=()):
    """Made with protoc into a temporary directory; to be put first on sys.path."""
    command = ["protoc", f"--python_out={to}", *(f"-I{path}" for path in includes), *files]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
