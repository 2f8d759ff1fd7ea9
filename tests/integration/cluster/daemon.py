"""One controller or agent of a test: a child of the test, and gone with it."""

import os
import re
import signal
import subprocess

from .processes import wait_ended
from .programs import DEADLINE
from .waiting import wait_until

SANITIZER = re.compile(
    r"(WARNING|ERROR|FATAL): \w+Sanitizer\b|Sanitizer: CHECK failed|^\S+:\d+:\d+: runtime error: ",
    re.MULTILINE,
)


class Daemon:
    """`log`: the file of this name; a daemon next to a live one of its name has its own. The kernel
    kills the daemon when the test is gone, however that ended."""

    def __init__(self, name, command, env, log):
        self.name, self.log = name, log
        with open(log, "ab") as output:
            self._begin = output.tell()
            self.process = subprocess.Popen(
                ["/usr/bin/setpriv", "--pdeathsig", "KILL", *command], env=env, cwd="/",
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)  # fmt: skip
        self.pid_fd = os.pidfd_open(self.process.pid)

    def alive(self):
        return self.process.poll() is None

    def send_signal(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM):
        """Its exit code. One that the signal does not end is killed."""
        self.send_signal(number)
        if not wait_ended(self.pid_fd):
            self.process.kill()
        return self.process.wait()

    def ended(self):
        """Its exit code and its log, once it has ended by itself."""
        if not wait_ended(self.pid_fd):
            raise AssertionError(f"{self.name} goes on; its log:\n{self.logged()}")
        return self.process.wait(), self.logged()

    def logged(self):
        """What this one wrote."""
        with open(self.log, "rb") as file:
            file.seek(self._begin)
            return file.read().decode(errors="replace")

    def sanitizer_report(self):
        """What a sanitizer that ended it wrote, or one that ended a later daemon with this log; else an empty string."""
        log = self.logged()
        found = SANITIZER.search(log)
        if found is None:
            return ""
        report, mark, rest = log[found.start() :].partition("SUMMARY: ")
        return report + mark + rest.split("\n", 1)[0]

    def wait_for(self, text, within=DEADLINE):
        """Until its log has the text."""
        wait_until(
            lambda: text in self.logged(),
            self.pid_fd,
            within,
            f"{self.name} to log '{text}'\n{self.logged()}",
        )

    def close(self):
        """Ends it. False: SIGTERM did not."""
        in_order = True
        if self.alive():
            self.stop()
            in_order = self.process.returncode != -signal.SIGKILL
        os.close(self.pid_fd)
        return in_order
