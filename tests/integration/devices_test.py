#!/usr/bin/python3
"""Cards: a real controller and a real agent on machines of which only the vendors' tools are made up (tests/support/probe, tests/fixtures/probe).

Run:  /usr/bin/python3 tests/integration/devices_test.py [-v] [CASE]
"""

import json
import os
import pwd
import shutil
import signal
import subprocess
import unittest

from cluster import ROOT, Cluster, processes_of, wait_until

FIXTURES = os.path.join(ROOT, "tests/fixtures/probe")
STAND_INS = os.path.join(ROOT, "tests/support/probe")
SOON = "200ms"  # between looks


def recorded(name):
    with open(os.path.join(FIXTURES, name + ".txt"), encoding="utf-8") as file:
        return file.read()


def with_process(text, card, pid, name, memory=3390):
    """The machine with a process on a card, and so much memory used there."""
    none = f"| No running processes found in NPU {card} "
    row = f"| {card}       0                 | {pid:<13} | {name:<24} | {memory:<23} |"
    lines, on_card = [], False
    for line in text.splitlines():
        if on_card:
            line = (
                line.replace(line.split("/")[1].split()[-1] + " /", f"{memory} /")
                if "/ 65536" in line
                else line
            )
        on_card = line.startswith(f"| {card}     910B3")
        lines.append(row if line.startswith(none) else line)
    return "\n".join(lines) + "\n"


def without_card(text, card):
    """As the tools show it when a card has fallen off the bus: neither in the table nor in the numbers."""
    lines, second = [], False
    for line in text.splitlines():
        first = line.startswith(f"| {card}     910B3")
        if not first and not second and not line.startswith(f"\t{card} "):
            lines.append(line)
        second = first
    return "\n".join(lines) + "\n"


class Machine:
    """A cluster of one node, whose tools print what a recorded machine did."""

    def __init__(
        self,
        case,
        name,
        tools=("npu-smi", "hccn_tool"),
        stand_in="recorded",
        interval=SOON,
        args=(),
    ):
        self.cluster = Cluster()
        case.addCleanup(self.cluster.close)
        self.tools = self.cluster.path("tools")
        os.mkdir(self.tools)
        self.show(recorded(name))
        for tool in tools:
            self.tool(tool, stand_in)
        self.cluster.controller()
        self.start(interval, args)

    def start(self, interval=SOON, args=()):
        env = {
            "PATH": f"{self.tools}:/usr/bin:/bin",
            "MUSTER_RECORDED": self.cluster.path("machine.txt"),
        }
        self.agent = self.cluster.agent(
            "n0",
            state=self.cluster.path("agent"),
            args=["--probe-interval", interval, *args],
            env=env,
            probe=True,
        )

    def show(self, text):
        """What the tools print from now on: all of it at once."""
        os.rename(self.cluster.write("next.txt", text), self.cluster.path("machine.txt"))

    def tool(self, name, stand_in):
        made = os.path.join(self.tools, "." + name)
        shutil.copy(os.path.join(STAND_INS, stand_in), made)
        os.rename(made, os.path.join(self.tools, name))

    def node(self):
        return json.loads(self.cluster.muster("node", "show", "n0", "-o", "json", code=0).out)

    def readings(self):
        return {reading["id"]: reading for reading in self.node().get("readings", [])}

    def reading(self, device):
        """Nothing: none was told yet."""
        return self.readings().get(device, {})

    def devices(self):
        return self.node()["inventory"].get("devices", [])

    def until(self, true, what):
        wait_until(true, self.agent.pid_fd, what=f"{what}\n{self.agent.logged()}")

    def until_health(self, **health):
        """health: id=word, as _3="bad"."""
        wanted = {int(name.strip("_")): word for name, word in health.items()}
        self.until(
            lambda: {device: self.readings().get(device, {}).get("health") for device in wanted}
            == wanted,
            f"readings {wanted}",
        )

    def job(self, name, devices, run, recovery=""):
        return self.cluster.submit(f"name: {name}\nengine: command\nlaunch: {{run: [sh, -c, {json.dumps(run)}]}}\nresources: {{nodes: 1, devices: {devices}}}\n"
                                   f"recovery: {{max_restarts: 0{recovery}}}\n")  # fmt: skip

    def why(self, job):
        return self.cluster.muster("why", job).out

    def placed(self, job):
        attempts = json.loads(self.cluster.muster("show", job, "-o", "json", code=0).out).get(
            "attempts", []
        )
        return [node["devices"] for attempt in attempts for node in attempt["nodes"]]

    def well(self, job):
        self.cluster.muster("wait", job, "--timeout", "60s", code=0)


class Devices(unittest.TestCase):
    maxDiff = None

    def test_a_container_that_sees_cards_4_to_7(self):
        machine = Machine(self, "910b_container")
        devices = machine.devices()
        self.assertEqual([(d["id"], d["physicalId"], d["type"], d["model"], d["addresses"]) for d in devices],
                         [(i, i + 4, "ascend910b", "910B3", [f"192.168.{i + 4}.21"]) for i in range(4)])  # fmt: skip
        machine.until_health(_0="ok", _1="ok", _2="ok", _3="ok")
        job = machine.job("all", 4, "echo device $MUSTER_DEVICES")
        machine.well(job)
        self.assertEqual(machine.placed(job), [[0, 1, 2, 3]])
        listed = machine.cluster.muster("node", "ls", code=0).out.splitlines()
        self.assertIn("4 ascend910b  ok", listed[1])
        shown = machine.cluster.muster("node", "show", "n0", code=0).out
        self.assertIn(
            "DEVICE  PHYSICAL  TYPE        MODEL  HEALTH        MEMORY  ADDRESS       IN USE BY",
            shown,
        )
        self.assertIn(
            "     0         4  ascend910b  910B3  ok      3.3/64.0 GiB  192.168.4.21  free", shown
        )

    def test_a_card_in_alarm_gets_no_new_work(self):
        machine = Machine(self, "910b_alarm")
        machine.until_health(_0="ok", _1="ok", _2="warning", _7="bad")
        findings = machine.node()["inventory"]["findings"]
        self.assertIn("npu-smi lists card 3 and does not show it", findings)
        job = machine.job("three", 3, "true")
        machine.well(job)
        self.assertEqual(machine.placed(job), [[0, 1, 2]])
        waits = machine.job("four", 4, "true")
        self.assertIn(
            "'n0' has 3 of 4 devices free (device 7 is bad: npu-smi says Alarm: 80E01801 node type=SOC",
            machine.why(waits).replace("; ", ": "),
        )
        self.assertIn(
            "4 ascend910b  1 bad, 1 warning", machine.cluster.muster("node", "ls", code=0).out
        )
        shown = machine.cluster.muster("node", "show", "n0", code=0).out
        self.assertIn("finding      npu-smi lists card 3 and does not show it", shown)
        self.assertIn("health       device 7: npu-smi says Alarm", shown)
        # The process on it has ended, too: where this test runs in a container, a pid of the host's is taken for a living one's.
        row = "| 7       0                 | 139667        | python                   | 30780                   |"
        well = recorded("910b_alarm").replace("| Alarm  ", "| OK     ")
        self.assertIn(row, well)
        machine.show(
            well.replace(
                row,
                "| No running processes found in NPU 7                                                            |",
            )
        )
        machine.well(waits)

    def test_gpus(self):
        machine = Machine(self, "nvidia_lost", tools=("nvidia-smi",))
        machine.until_health(_0="ok", _1="bad", _2="bad", _3="warning")
        job = machine.job("two", 2, "true")
        machine.well(job)
        self.assertEqual(machine.placed(job), [[0, 3]])

    def test_a_stranger_on_a_card(self):
        machine = Machine(self, "910b_container")
        text = recorded("910b_container")
        stranger = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(stranger.wait)
        self.addCleanup(stranger.kill)
        machine.show(with_process(text, 6, stranger.pid, "sleep"))
        machine.until(lambda: machine.reading(2).get("occupants"), "an occupant")
        occupant = machine.reading(2)["occupants"][0]
        user = pwd.getpwuid(os.getuid()).pw_name
        self.assertEqual(
            (occupant["pid"], occupant["name"], occupant["user"], occupant["memoryMib"]),
            (stranger.pid, "sleep", user, 3390),
        )
        job = machine.job("three", 3, "true")
        machine.well(job)
        self.assertEqual(machine.placed(job), [[0, 1, 3]])
        waits = machine.job("four", 4, "true")
        self.assertIn(
            f"'n0' has 3 of 4 devices free (device 2 is in use by pid {stranger.pid} ({user}, sleep))",
            machine.why(waits),
        )
        self.assertIn(
            f"pid {stranger.pid} ({user}, sleep)",
            machine.cluster.muster("node", "show", "n0", code=0).out,
        )
        self.assertIn("1 occupied", machine.cluster.muster("node", "ls", code=0).out)
        machine.show(text)
        machine.well(waits)

    def test_ranks_are_no_strangers(self):
        """Neither a rank nor what it starts: the node would have had no device for the job's next attempt."""
        machine = Machine(self, "910b_container")
        with machine.cluster.gate() as gate:
            # In a spec "$$" stands for one "$".
            job = machine.job(
                "ours", 1, f"sh -c 'echo pid $$$$; read line < {gate.path}; exit 0'; exit $?"
            )
            machine.cluster.wait_event(lambda event: event["type"] == "node-started", job)
            machine.until(
                lambda: "pid " in machine.cluster.muster("logs", job).out, "the rank's line"
            )
            logs = machine.cluster.muster("logs", job, code=0).out
            pid = int(logs.split("pid ")[1].split()[0])
            machine.show(with_process(recorded("910b_container"), 4, pid, "sh", memory=7777))
            machine.until(
                lambda: machine.reading(0).get("memoryUsedMib") == 7777, "a look at the rank"
            )
            self.assertNotIn("occupants", machine.reading(0))
            gate.open()
            machine.well(job)
            next_one = machine.job("next", 4, "true")
            machine.well(next_one)

    def test_tools_that_fail_at_the_start(self):
        """No devices, not CPU slots; a sentence why; and all of them as soon as the tool works."""
        for stand_in, why in (
            ("garbage", "npu-smi info gave no devices: it printed '"),
            ("hang", "npu-smi info gave no devices: it did not end within 5000 ms"),
        ):
            with self.subTest(stand_in):
                machine = Machine(self, "910b_container", stand_in=stand_in)
                self.assertEqual(machine.devices(), [])
                self.assertTrue(
                    any(
                        finding.startswith(why)
                        for finding in machine.node()["inventory"]["findings"]
                    ),
                    machine.node(),
                )
                self.assertIn("none     not seen", machine.cluster.muster("node", "ls", code=0).out)
                refused = machine.cluster.muster(
                    "run",
                    "-d",
                    machine.cluster.spec(
                        'name: x\nengine: command\nlaunch: {run: "true"}\nresources: {devices: 1}\n'
                    ),
                )
                self.assertEqual(refused.code, 2, refused)
                self.assertIn("'n0' has no devices", refused.err)
                for tool in ("npu-smi", "hccn_tool"):
                    machine.tool(tool, "recorded")
                machine.until(lambda: len(machine.devices()) == 4, "the devices")
                machine.well(machine.job("now", 4, "true"))

    def test_tools_that_hang_later(self):
        """The agent goes on, the cards get no new work, and nobody waits for a tool when the agent is to leave."""
        machine = Machine(self, "910b_container")
        machine.until_health(_0="ok")
        machine.tool("npu-smi", "hang")
        machine.until_health(_0="bad", _3="bad")
        self.assertEqual(
            machine.reading(0)["healthText"],
            "the tools do not show it: npu-smi info gave no devices: it did not end within 5000 ms",
        )
        self.assertEqual(len(machine.devices()), 4)
        node = machine.node()
        self.assertEqual((node["connected"], node["silent"]), (True, False))
        machine.until(
            lambda: any("npu-smi" in command for _, command in processes_of(machine.tools)),
            "a look",
        )
        self.assertEqual(machine.agent.stop(), 0)
        self.assertEqual([command for _, command in processes_of(machine.tools)], [])

    def test_an_agent_that_starts_again_while_the_tools_hang(self):
        """Its first Hello waited up to 21 s for them: ranks with a shorter grace ended for want of a word from the controller."""
        for kept in (True, False):
            with self.subTest(kept=kept):
                machine = Machine(self, "910b_container")
                machine.until_health(_0="ok", _3="ok")
                with machine.cluster.gate() as gate:
                    job = machine.job(
                        "runs", 1, f"read line < {gate.path}", recovery=", orphan_grace: 5s"
                    )
                    machine.cluster.wait_event(lambda event: event["type"] == "node-started", job)
                    lease = machine.cluster.path("agent", "runs", f"{job}.1", "lease")
                    machine.agent.stop(signal.SIGKILL)
                    written = os.stat(lease).st_mtime_ns
                    machine.tool("npu-smi", "hang")
                    if not kept:
                        os.unlink(machine.cluster.path("agent", "devices"))
                    machine.start()
                    machine.until(lambda: os.stat(lease).st_mtime_ns > written, "a longer lease")
                    self.assertEqual(len(machine.devices()), 4 if kept else 0)
                    late = machine.job("late", 1, "true") if kept else None
                    machine.agent.wait_for("did not end within 5000 ms")
                    if kept:
                        output = machine.agent.logged()
                        self.assertLess(
                            output.index("attached to the controller"),
                            output.index("did not end within 5000 ms"),
                            "it attached before the tools answered",
                        )
                        machine.until_health(_0="bad", _3="bad")
                        self.assertEqual(
                            machine.placed(late),
                            [],
                            "nothing new came on cards that nobody had looked at",
                        )
                    machine.tool("npu-smi", "recorded")
                    machine.until_health(_0="ok", _3="ok")
                    if kept:
                        machine.well(late)
                    gate.open()
                    machine.well(job)
                    shown = json.loads(
                        machine.cluster.muster("show", job, "-o", "json", code=0).out
                    )
                    self.assertEqual(
                        len(shown["attempts"]), 1, "nothing of this disturbed the rank"
                    )

    def test_cards_and_tools_that_vanish_and_come_back(self):
        machine = Machine(self, "910b_container")
        text = recorded("910b_container")
        with machine.cluster.gate() as gate:
            job = machine.job("runs", 1, f"read line < {gate.path}")
            machine.cluster.wait_event(lambda event: event["type"] == "node-started", job)
            machine.show(without_card(text, 7))
            machine.until(
                lambda: [d["id"] for d in machine.devices()] == [0, 1, 2], "card 7 to be gone"
            )
            machine.show(text)
            machine.until(
                lambda: [d["id"] for d in machine.devices()] == [0, 1, 2, 3], "card 7 to be back"
            )
            # The driver is being exchanged. The cards are out of use for that, and the node has none the less four of them.
            for tool in ("npu-smi", "hccn_tool"):
                os.unlink(os.path.join(machine.tools, tool))
            machine.until_health(_0="bad", _1="bad", _2="bad", _3="bad")
            self.assertEqual(len(machine.devices()), 4)
            waits = machine.job("waits", 3, "true")
            self.assertIn(
                "'n0' has 0 of 4 devices free (device 0 is bad: the tools do not show it any more)",
                machine.why(waits),
            )
            for tool in ("npu-smi", "hccn_tool"):
                machine.tool(tool, "recorded")
            machine.well(waits)
            self.assertEqual(machine.placed(waits), [[1, 2, 3]])
            gate.open()
            machine.well(job)
            shown = json.loads(machine.cluster.muster("show", job, "-o", "json", code=0).out)
            self.assertEqual(len(shown["attempts"]), 1, "nothing of this disturbed the rank")

    def test_a_controller_that_starts_anew_waits_for_the_first_probe(self):
        machine = Machine(self, "910b_alarm")
        machine.until_health(_7="bad")
        job = machine.job("four", 4, "true")
        machine.cluster.daemons[0].stop()
        machine.cluster.controller()
        machine.until_health(_7="bad")
        self.assertEqual(machine.placed(job), [])
        self.assertIn("device 7 is bad", machine.why(job))

    # As the parts of a divided A3 are shown. One of them was given out twice, which ended the controller, at each of its starts.
    def test_cards_of_one_physical_number(self):
        with Cluster() as cluster:
            controller = cluster.controller()
            cards = cluster.write(
                "cards", "".join(f"id={i} type=ascend910_93 physical={i // 2}\n" for i in range(4))
            )
            cluster.agent("n0", args=["--devices-from", cards])
            with cluster.gate() as gate:
                spec = "name: {0}\nengine: command\nlaunch: {{per: once, run: [sh, -c, 'read x < {1}']}}\nresources: {{devices: 2, type: ascend910_93}}\n"
                jobs = [cluster.submit(spec.format(name, gate.path)) for name in ("one", "two")]
                for job in jobs:
                    cluster.muster("wait", job, "--for", "running", "--timeout", "60s", code=0)
                gate.open(2)
                for job in jobs:
                    cluster.muster("wait", job, "--timeout", "60s", code=0)
            self.assertTrue(controller.alive(), controller.logged())

    def test_devices_of_a_written_list(self):
        machine = Machine(self, "910b_container", stand_in="hang", args=())
        self.assertEqual(machine.devices(), [])
        machine.agent.stop()
        cards = machine.cluster.write(
            "cards.txt",
            "# two of them\nid=0 type=ascend910b name=910B3 physical=4 address=192.1.1.4 numa=1\nid=1 type=ascend910b physical=5\n",
        )
        machine.start(args=["--devices-from", cards])
        machine.until(lambda: len(machine.devices()) == 2, "the devices of the list")
        first = machine.devices()[0]
        self.assertEqual(
            (first["model"], first["physicalId"], first["addresses"], first["numaNode"]),
            ("910B3", 4, ["192.1.1.4"], 1),
        )
        machine.well(machine.job("two", 2, "true"))
        bad = machine.cluster.write("bad.txt", "id=0 type=abacus\n")
        agent = machine.cluster.agent("n1", args=["--devices-from", bad], wait=False)
        code, output = agent.ended()
        self.assertEqual(code, 64, output)
        self.assertIn(
            f"reading the devices of '{bad}': reading the list of devices: line 1: type='abacus' is not one of",
            output,
        )


if __name__ == "__main__":
    unittest.main()
