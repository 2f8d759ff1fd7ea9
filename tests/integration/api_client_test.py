#!/usr/bin/python3
"""A program in another language, with nothing but the controller's address: it learns the API by gRPC reflection, asks for health,
submits a job and watches it to its end, and over TCP shows a certificate.  No generated code of muster's is used, but by the examples of docs/api.md.

Run:  /usr/bin/python3 tests/integration/api_client_test.py [-v]       (needs python3-grpcio, python3-protobuf, protoc)
"""

import json
import os
import re
import subprocess
import sys
import unittest

import grpc
import tls
from cluster import DEADLINE, Cluster
from protos import compile_protos
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# The public protocol of reflection, as far as it is used here; Debian has no python3 package with its classes.
REFLECTION = """
syntax = "proto3";
package grpc.reflection.v1alpha;
message ServerReflectionRequest {
  string host = 1;
  oneof message_request {
    string file_by_filename = 3;
    string file_containing_symbol = 4;
    string list_services = 7;
  }
}
message FileDescriptorResponse { repeated bytes file_descriptor_proto = 1; }
message ServiceResponse { string name = 1; }
message ListServiceResponse { repeated ServiceResponse service = 1; }
message ErrorResponse { int32 error_code = 1; string error_message = 2; }
message ServerReflectionResponse {
  string valid_host = 1;
  ServerReflectionRequest original_request = 2;
  oneof message_response {
    FileDescriptorResponse file_descriptor_response = 4;
    ListServiceResponse list_services_response = 6;
    ErrorResponse error_response = 7;
  }
}
"""
TIMEOUT = 60
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Api:
    """Every method of a server, by reflection: api.call("muster.v1.JobService/GetJob", job="x")."""

    def __init__(self, channel, reflection):
        self._channel, self._reflection = channel, reflection
        self._ask_stream = channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            request_serializer=reflection.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection.ServerReflectionResponse.FromString,
        )
        self._pool = descriptor_pool.DescriptorPool()
        self._files = set()

    def _ask(self, **request):
        answer = next(
            iter(
                self._ask_stream(
                    iter([self._reflection.ServerReflectionRequest(**request)]), timeout=TIMEOUT
                )
            )
        )
        if answer.HasField("error_response"):
            raise KeyError(answer.error_response.error_message)
        return answer

    def services(self):
        return [
            service.name for service in self._ask(list_services="*").list_services_response.service
        ]

    def _add(self, answer):
        files = [
            descriptor_pb2.FileDescriptorProto.FromString(data)
            for data in answer.file_descriptor_response.file_descriptor_proto
        ]
        given = {file.name: file for file in files}
        for file in files:
            self._add_file(file, given)

    def _add_file(self, file, given):
        if file.name in self._files:
            return
        self._files.add(file.name)
        for name in file.dependency:
            if name in given:
                self._add_file(given[name], given)
            elif name not in self._files:
                self._add(self._ask(file_by_filename=name))
        self._pool.Add(file)

    def method(self, name):
        service = name.split("/")[0]
        try:
            found = self._pool.FindServiceByName(service)
        except KeyError:
            self._add(self._ask(file_containing_symbol=service))
            found = self._pool.FindServiceByName(service)
        return found.methods_by_name[name.split("/")[1]]

    def _class(self, descriptor):
        return message_factory.MessageFactory(self._pool).GetPrototype(descriptor)

    def call(self, name, request=None, stream=False, **fields):
        method = self.method(name)
        asks, answers = self._class(method.input_type), self._class(method.output_type)
        make = self._channel.unary_stream if stream else self._channel.unary_unary
        return make(
            "/" + name,
            request_serializer=asks.SerializeToString,
            response_deserializer=answers.FromString,
        )(request or asks(**fields), timeout=TIMEOUT)

    def request(self, name):
        return self._class(self.method(name).input_type)()


class ApiClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        try:
            classes = cls.cluster.path("classes")
            os.mkdir(classes)
            compile_protos(
                classes,
                cls.cluster.write("reflection.proto", REFLECTION),
                includes=[cls.cluster.dir],
            )
            sys.path.insert(0, classes)
            import reflection_pb2

            sys.path.remove(classes)
            cls.cluster.controller(listen="127.0.0.1:0")
            cls.cluster.agent("n0")
            cls.cluster.agent("n1")
            cls.reflection = reflection_pb2
            cls.channel = grpc.insecure_channel("unix:" + cls.cluster.path("s"))
            cls.api = Api(cls.channel, reflection_pb2)
        except BaseException:
            cls.cluster.close()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        cls.cluster.close()

    def test_services(self):
        services = self.api.services()
        for name in (
            "muster.v1.JobService",
            "muster.v1.NodeService",
            "muster.v1.AgentService",
            "muster.v1.CertificateService",
            "muster.v1.SecretService",
            "muster.v1.StoreService",
            "grpc.health.v1.Health",
        ):
            self.assertIn(name, services)

    def test_health(self):
        # Served by gRPC's own health service, which reflection lists without a description: the message is field 1, an enum; 1 = SERVING.
        check = self.channel.unary_unary("/grpc.health.v1.Health/Check")
        self.assertEqual(check(b"", timeout=TIMEOUT), b"\x08\x01")

    def submit(self, name, run, request_id="", api=None):
        api = api or self.api
        request = api.request("muster.v1.JobService/SubmitJob")
        request.request_id = request_id
        spec = request.spec
        spec.name, spec.engine = name, "command"
        spec.code.at = self.cluster.dir
        spec.launch.run.extend(run)
        spec.resources.nodes = 2
        spec.resources.devices = 1
        spec.resources.type = "cpu"
        return api.call("muster.v1.JobService/SubmitJob", request)

    def test_over_tcp_with_a_certificate(self):
        user = self.cluster.credentials(user="ann")
        with tls.channel(grpc, self.cluster, user) as channel:
            api = Api(channel, self.reflection)
            job = self.submit("over-tcp", ["true"], api=api).job_id
            types = [
                news.event.type
                for news in api.call(
                    "muster.v1.JobService/Watch", stream=True, job=job, until_final=True
                )
            ]
            self.assertEqual(types[-1], "job-ended")
            with self.assertRaises(grpc.RpcError) as error:
                api.call("muster.v1.CertificateService/IssueCertificate", user="eve")
            self.assertEqual(error.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
            self.assertIn("over its unix socket", error.exception.details())
        with tls.channel(grpc, self.cluster, self.cluster.credentials(node="n0")) as channel:
            # A node's agent is no user: neither jobs, nor what reflection says.
            call = channel.unary_unary("/muster.v1.JobService/ListJobs")
            with self.assertRaises(grpc.RpcError) as error:
                call(b"", timeout=TIMEOUT)
            self.assertEqual(error.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
            with self.assertRaises(grpc.RpcError) as error:
                Api(channel, self.reflection).services()
            self.assertEqual(error.exception.code(), grpc.StatusCode.UNAUTHENTICATED)

    def test_submit_and_watch(self):
        text = (
            'printf " iteration %8d/%8d | lm loss: %E |\\n" 1 2 3.5 2 2 2.5; read x < '
            + self.cluster.path("gate")
        )
        with self.cluster.gate() as gate:
            submitted = self.submit("by-api", ["bash", "-c", text], "api-1")
            again = self.submit("by-api", ["bash", "-c", text], "api-1")
            self.assertEqual(again.job_id, submitted.job_id)
            self.assertTrue(again.repeated_request)
            types = []
            for news in self.api.call(
                "muster.v1.JobService/Watch", stream=True, job=submitted.job_id, until_final=True
            ):
                types.append(news.event.type)
                if news.event.type == "node-started" and types.count("node-started") == 2:
                    gate.open(2)
        self.assertEqual(types[:2], ["job-submitted", "attempt-placed"])
        self.assertEqual(types[-1], "job-ended")
        job = self.api.call("muster.v1.JobService/GetJob", job=submitted.job_id).job
        phase = job.DESCRIPTOR.fields_by_name["phase"].enum_type.values_by_number[job.phase].name
        self.assertEqual(phase, "JOB_PHASE_SUCCEEDED")
        log = b"".join(
            chunk.data
            for chunk in self.api.call(
                "muster.v1.JobService/ReadLogs",
                stream=True,
                job=submitted.job_id,
                ranks=[1],
                follow=True,
            )
        )
        self.assertEqual(log.count(b" iteration "), 2, log)
        nodes = self.api.call("muster.v1.NodeService/ListNodes").nodes
        self.assertEqual([node.name for node in nodes], ["n0", "n1"])

    def test_what_a_person_writes(self):
        """No parser of job.yaml in the program: the text goes as it is, with the files that it names."""
        request = self.api.request("muster.v1.JobService/SubmitJob")
        request.yaml.text = (
            "name: by-text\nengine: command\nlaunch: {run: [sh, -c, 'echo $WHO; cat x.txt']}\n"
            "code: {at: CODE, patches: x.diff}\nresources: {nodes: 1, devices: 1, type: cpu}\n"
        ).replace("CODE", self.code())
        request.yaml.files["x.diff"] = b"--- a/x.txt\n+++ b/x.txt\n@@ -1 +1 @@\n-old\n+new\n"
        request.yaml.set["launch.cwd"] = "auto"
        request.yaml.env["WHO"] = "python"
        job = self.api.call("muster.v1.JobService/SubmitJob", request).job_id
        list(self.api.call("muster.v1.JobService/Watch", stream=True, job=job, until_final=True))
        log = self.api.call("muster.v1.JobService/ReadLogs", stream=True, job=job, follow=True)
        self.assertEqual(b"".join(chunk.data for chunk in log), b"python\nnew\n")

        plan = self.api.request("muster.v1.JobService/PlanJob")
        plan.yaml.CopyFrom(request.yaml)
        planned = self.api.call("muster.v1.JobService/PlanJob", plan)
        self.assertEqual(planned.ranks[0].argv[:2], ["sh", "-c"])

        del request.yaml.files["x.diff"]
        request.yaml.text += "reources: {}\n"
        with self.assertRaises(grpc.RpcError) as error:
            self.api.call("muster.v1.JobService/SubmitJob", request)
        self.assertEqual(error.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertRegex(
            error.exception.details(),
            r"job.yaml:4:\d+: code.patches\[0\]: 'x.diff': is not among the files of the request\n"
            r"job.yaml:6:1: reources: unknown key; did you mean 'resources'\?",
        )
        request.spec.name = "both"
        with self.assertRaises(grpc.RpcError) as error:
            self.api.call("muster.v1.JobService/SubmitJob", request)
        self.assertIn("both 'yaml' and specs", error.exception.details())

    def test_a_chain_that_a_person_writes(self):
        request = self.api.request("muster.v1.JobService/SubmitJob")
        request.yaml.text = (
            "name: by-text-chain\nengine: command\nresources: {nodes: 1, devices: 1, type: cpu}\n"
            "stages:\n  one: {launch: {run: 'true'}}\n  two: {launch: {run: 'echo ${stages.one.out}'}}\n"
        )
        stages = self.api.call("muster.v1.JobService/SubmitJob", request).stages
        self.assertEqual([stage.stage for stage in stages], ["one", "two"])
        for stage in stages:
            list(
                self.api.call(
                    "muster.v1.JobService/Watch",
                    stream=True,
                    job=stage.job_id,
                    until_final=True,
                )
            )
        job = self.api.call("muster.v1.JobService/GetJob", job=stages[1].job_id).job
        self.assertEqual(job.resolved.after, [stages[0].job_id])

    def code(self):
        path = self.cluster.path("code")
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, "x.txt"), "w", encoding="ascii") as file:
            file.write("old\n")
        return path

    def test_errors(self):
        with self.assertRaises(grpc.RpcError) as error:
            self.api.call("muster.v1.JobService/GetJob", job="nothing")
        self.assertEqual(error.exception.code(), grpc.StatusCode.NOT_FOUND)
        with self.assertRaises(grpc.RpcError) as error:
            self.submit("Bad Name", ["true"])
        self.assertEqual(error.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertIn("Bad Name", error.exception.details())
        with self.assertRaises(grpc.RpcError) as error:
            self.submit("by-api-2", ["true"], "x" * 129)
        self.assertEqual(error.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)

    def test_the_examples_of_the_page(self):
        """docs/api.md: its command makes the code, and its programs run, with other addresses and files alone."""
        with open(os.path.join(ROOT, "docs", "api.md"), encoding="utf-8") as file:
            page = file.read()
        protoc, openssl = re.findall(r"```sh\n(.+?)```", page, re.DOTALL)
        by_socket, by_tcp = re.findall(r"```python\n(.+?)```", page, re.DOTALL)
        folder = self.cluster.path("program")
        code = self.code()
        os.mkdir(folder)
        os.symlink(os.path.join(ROOT, "proto"), os.path.join(folder, "proto"))
        user = self.cluster.credentials(user="anna")
        os.symlink(user, os.path.join(folder, "ann.pem"))
        for name, text in (
            ("job.yaml", f"name: of-the-page\nengine: command\nlaunch: {{run: [cat, x.txt]}}\n"
             f"code: {{at: {code}, patches: fix.diff}}\nresources: {{nodes: 1, devices: 1, type: cpu}}\n"),
            ("fix.diff", "--- a/x.txt\n+++ b/x.txt\n@@ -1 +1 @@\n-old\n+new\n"),
        ):  # fmt: skip
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)

        def here(text, others):
            for old, new in others.items():
                self.assertIn(old, text)
                text = text.replace(old, new)
            return text

        def ran(*words):
            done = subprocess.run(
                words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                timeout=DEADLINE, check=False,
            )  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout + done.stderr

        ran("sh", "-c", protoc)
        socket = here(by_socket, {"unix:/run/muster/s": "unix:" + self.cluster.path("s"), "/shared/train": self.cluster.dir})
        shown = ran(sys.executable, "-c", socket)
        self.assertRegex(shown, r"(?s)^job-submitted .*\njob-ended ")
        with open(self.cluster.endpoint, encoding="utf-8") as file:
            cluster = json.load(file)["cluster_id"]
        address = {"10.0.0.1:7070": self.cluster.tcp_address()}
        over_tcp = here(by_tcp, {**address, "0123456789abcdef": cluster})
        self.assertEqual(ran(sys.executable, "-c", over_tcp), "", "anna has no job yet")
        self.cluster.muster(
            "run", "-d", os.path.join(folder, "job.yaml"), env=self.cluster.over_tcp("anna"), code=0
        )
        self.assertEqual(ran(sys.executable, "-c", over_tcp), "of-the-page anna\n")
        self.assertIn("Verification: OK", ran("sh", "-c", here(openssl, address)))


if __name__ == "__main__":
    unittest.main()
