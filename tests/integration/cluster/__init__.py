"""A cluster of real processes for one test: the one place that knows how muster is started, waited for and ended in a test.

    cluster.py    Cluster: the controller, the agents, what a person types, what must be gone at the end
    daemon.py     Daemon: one controller or agent, its log and its end
    command.py    Done: how a command ended
    trace.py      Trace: what the ranks of a job wrote down
    processes.py  who lives, who belongs to a cluster, to kill and to wait
    waiting.py    waiting for files and for conditions
    ports.py      a port range that no other test has
    programs.py   the binaries and the time that a test waits at most
"""

from .cluster import Cluster
from .command import Done
from .ports import Ports
from .processes import Process, kill_process, processes_of, wait_ended, wait_gone
from .programs import BIN, DEADLINE, ROOT, SLOW, STUB, binary
from .trace import Trace
from .waiting import Directory, Gate, wait_until

__all__ = [
    "BIN", "Cluster", "DEADLINE", "Directory", "Done", "Gate", "Ports", "Process", "ROOT", "SLOW", "STUB", "Trace",
    "binary", "kill_process", "processes_of", "wait_ended", "wait_gone", "wait_until",
]  # fmt: skip
