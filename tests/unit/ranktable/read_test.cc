// What the reader reports about files: JSON itself, types, counts, versions, status.
#include <gtest/gtest.h>

#include "common/engine/ranktable/json_tree.h"
#include "common/engine/ranktable/judge.h"
#include "common/engine/ranktable/read_table.h"
#include "common/engine/ranktable/table_text.h"
#include "common/engine/ranktable/words.h"
#include "tests/unit/ranktable/samples.h"

namespace muster::ranktable {
namespace {

constexpr const char* kSound =
    R"({"version":"1.0","server_count":"2","server_list":[{"server_id":"a","device":[{"device_id":"0","device_ip":"1.1.1.1","rank_id":"0"}]},{"server_id":"b","device":[{"device_id":"0","device_ip":"1.1.1.2","rank_id":"1"}]}],"status":"completed"})";

std::string with(std::string text, std::string_view what, std::string_view by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

std::string verdict(const std::string& text, std::optional<Chip> chip = std::nullopt) {
  const Judgement judgement = judge(text, chip);
  const std::string findings = problem_text(judgement.findings);
  return fmt::format("{}{}{}", to_string(judgement.verdict), findings.empty() ? "" : "\n",
                     findings);
}
std::string changed(std::string_view what, std::string_view by) {
  return verdict(with(kSound, what, by));
}

TEST(Read, TheSoundOne) {
  const Judgement judgement = judge(kSound, std::nullopt);
  EXPECT_EQ(judgement.verdict, Verdict::Acceptable);
  EXPECT_EQ(judgement.form, "version 1.0");
  EXPECT_EQ(judgement.servers, 2u);
  EXPECT_EQ(judgement.ranks, 2u);
}

TEST(Read, EveryScalarIsAString) {
  EXPECT_EQ(changed(R"("rank_id":"1")", R"("rank_id":1)"),
            "rejected\nserver_list[1].device[0].rank_id: is the number 1; every value of a rank "
            "table is a string: write \"1\"");
  EXPECT_EQ(changed(R"("server_count":"2")", R"("server_count":2)"),
            "rejected\nserver_count: is the number 2; every value of a rank table is a string: "
            "write \"2\"");
  EXPECT_EQ(changed(R"("device_ip":"1.1.1.2")", R"("device_ip":null)"),
            "rejected\nserver_list[1].device[0].device_ip: is null; every value of a rank table is "
            "a string");
  EXPECT_EQ(
      changed(R"("server_id":"b")", R"("server_id":["b"])"),
      "rejected\nserver_list[1].server_id: is a list; every value of a rank table is a string");
  EXPECT_EQ(changed(R"("status":"completed")", R"("status":true)"),
            "rejected\nstatus: is true or false; every value of a rank table is a string");
  EXPECT_EQ(changed(R"("version":"1.0")", R"("version":1.0)"),
            "rejected\nversion: is the number 1.0; every value of a rank table is a string: write "
            "\"1.0\"");
}

TEST(Read, NumbersAreDecimalDigits) {
  for (const char* bad :
       {"", "x", "1x", "-1", "+1", " 1", "0x1", "1.0", "99999999999999999999", "4294967295"}) {
    EXPECT_EQ(changed(R"("rank_id":"1")", fmt::format(R"("rank_id":"{}")", bad)),
              fmt::format(
                  "rejected\nserver_list[1].device[0].rank_id: '{}' is not a decimal number", bad));
  }
  EXPECT_EQ(changed(R"("rank_id":"1")", R"("rank_id":"01")"), "acceptable");
}

TEST(Read, CountsAndMissingKeys) {
  EXPECT_EQ(changed(R"("server_count":"2")", R"("server_count":"3")"),
            "rejected\nserver_count: '3', but server_list has 2; a table that was put together by "
            "hand needs its count too");
  EXPECT_EQ(changed(R"("server_count":"2",)", ""),
            "acceptable\nnote: server_count: is missing; older documents call it mandatory");
  EXPECT_EQ(changed(R"("rank_id":"1")", R"("x":"1")"),
            "rejected\nserver_list[1].device[0].rank_id: is missing");
  EXPECT_EQ(changed(R"("device_id":"0")", R"("x":"1")"),
            "rejected\nserver_list[0].device[0].device_id: is missing");
  EXPECT_EQ(changed(R"("server_id":"b",)", ""), "rejected\nserver_list[1].server_id: is missing");
  EXPECT_EQ(
      changed(R"("device":)", R"("devices":)"),
      "rejected\nserver_list[0].devices: is the key of a group list; in this form it is 'device'\n"
      "server_list[1].device[0].rank_id: '1': the table has 1 ranks, so they are 0 to 0");
  EXPECT_EQ(changed(R"("server_list":)", R"("servers":)"), "rejected\nserver_list: is missing");
  EXPECT_EQ(changed(R"("status":"completed")", R"("x":"1")"), "rejected\nstatus: is missing");
  EXPECT_EQ(
      verdict(R"({"version":"1.0","server_count":"0","server_list":[],"status":"completed"})"),
      "rejected\nserver_list: is empty");
  EXPECT_EQ(
      verdict(R"({"version":"1.0","server_count":"1","server_list":[[]],"status":"completed"})"),
      "rejected\nserver_list[0]: is a list; it must be an object");
  EXPECT_EQ(
      verdict(R"({"version":"1.0","server_count":"1","server_list":{"a":1},"status":"completed"})"),
      "rejected\nserver_list: is an object; it must be a list of objects");
}

// Every problem at once, problems of types and problems of rules.
TEST(Read, AllProblemsAreNamed) {
  std::string text = with(kSound, R"("rank_id":"0")", R"("rank_id":"7")");
  text = with(text, R"("device_ip":"1.1.1.2")", R"("device_ip":2)");
  text = with(text, R"("server_id":"b")", R"("server_id":"a")");
  EXPECT_EQ(verdict(text),
            "rejected\nserver_list[1].device[0].device_ip: is the number 2; every value of a rank "
            "table is a string: write \"2\"\n"
            "server_list[1].server_id: 'a' is there twice, first at server_list[0]\n"
            "server_list[0].device[0].rank_id: '7': the table has 2 ranks, so they are 0 to 1");
}

TEST(Read, OptionalKeys) {
  const auto device = [](std::string_view more) {
    return changed(R"("rank_id":"1")", fmt::format(R"("rank_id":"1",{})", more));
  };
  EXPECT_EQ(
      device(
          R"("device_port":"16667","host_port":"1","backup_device_port":"65535","backup_device_ip":"1.1.1.1")"),
      "acceptable");
  EXPECT_EQ(device(R"("device_port":"0")"),
            "rejected\nserver_list[1].device[0].device_port: '0' is not a port (1 to 65535)");
  EXPECT_EQ(device(R"("host_port":"65536")"),
            "rejected\nserver_list[1].device[0].host_port: '65536' is not a port (1 to 65535)");
  EXPECT_EQ(device(R"("backup_device_ip":"x")"),
            "rejected\nserver_list[1].device[0].backup_device_ip: 'x' is not an IPv4 or IPv6 "
            "address of a card");
  EXPECT_EQ(device(R"("colour":{"red":[1,2,null]})"), "acceptable");
  EXPECT_EQ(changed(R"("server_id":"b")", R"("server_id":"b","host_ip":"")"),
            "rejected\nserver_list[1].host_ip: is empty; leave the key out where there is none");
}

TEST(Read, Versions) {
  EXPECT_EQ(changed(R"("version":"1.0")", R"("version":"2.0")"),
            "rejected\nversion: '2.0', which only A5 reads: 910, 910b and 910_93 read 1.0 and 1.2");
  EXPECT_EQ(changed(R"("version":"1.0")", R"("version":"1.1")"),
            "rejected\nversion: '1.1', which mixes hosts and cards: 910, 910b and 910_93 read 1.0 "
            "and 1.2");
  EXPECT_EQ(changed(R"("version":"1.0")", R"("version":"")"),
            "rejected\nversion: '': 910, 910b and 910_93 read 1.0 and 1.2");
  EXPECT_EQ(changed(R"("version":"1.0",)", ""),
            "rejected\nversion: is missing: HCCL then takes the table for a group list; add "
            "\"version\": \"1.0\"");
  EXPECT_EQ(
      changed(R"("version":"1.0")", R"("version":"1.2")"),
      "acceptable\nnote: super_pod_list: is missing: the table is then read without super-pods");
}

// Readers check the status first, and nothing else until it is "completed".
TEST(Read, NotCompletedYet) {
  EXPECT_EQ(changed(R"("status":"completed")", R"("status":"initializing")"), "not completed");
  EXPECT_EQ(
      verdict(R"({"status":"initializing","server_list":[],"server_count":"0","version":"1.0"})"),
      "not completed");
  EXPECT_EQ(verdict(R"({"status":"initializing","server_list":7})"), "not completed");
  EXPECT_EQ(verdict(R"({"status":""})"), "not completed");
  const auto table = load_table(R"({"status":"initializing"})");
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, ErrorCode::Unsatisfiable);
}

TEST(Read, SuperPods) {
  const std::string sound = table_text(sample(2, 1, Version::SuperPods));
  EXPECT_EQ(verdict(sound), "acceptable");
  const auto pods = [&](std::string_view list) {
    const std::size_t at = sound.find("\"super_pod_list\"");
    return verdict(sound.substr(0, at) + "\"super_pod_list\": " + std::string(list) + "}");
  };
  EXPECT_EQ(
      pods(
          R"([{"super_pod_id":"0","server_list":[{"server_id":"10.20.0.0"},{"server_id":"10.20.0.1"}]}])"),
      "acceptable");
  EXPECT_EQ(
      pods(R"([{"super_pod_id":"0","server_list":[{"server_id":"10.20.0.0"},{"server_id":"x"}]}])"),
      "rejected\nsuper_pod_list[0].server_list[1].server_id: 'x' is not in "
      "server_list\nserver_list[1]: '10.20.0.1' is in no super-pod; every server is "
      "in one");
  EXPECT_EQ(
      pods(
          R"([{"super_pod_id":"0","server_list":[{"server_id":"10.20.0.0"}]},{"super_pod_id":"0","server_list":[{"server_id":"10.20.0.1"}]}])"),
      "rejected\nsuper_pod_list[1].super_pod_id: '0' is there twice, first at super_pod_list[0]");
  EXPECT_EQ(
      pods(
          R"([{"super_pod_id":"0","server_list":[{"server_id":"10.20.0.0"},{"server_id":"10.20.0.0"},{"server_id":"10.20.0.1"}]}])"),
      "rejected\nsuper_pod_list[0].server_list[1].server_id: '10.20.0.0' is in super-pod '0' "
      "already");
  EXPECT_EQ(
      pods(
          R"([{"super_pod_id":0,"server_list":[{"server_id":"10.20.0.0"},{"server_id":"10.20.0.1"}]}])"),
      "rejected\nsuper_pod_list[0].super_pod_id: is the number 0; every value of a rank table is a "
      "string: write \"0\"\nnote: super_pod_list: is missing: the table is then read without "
      "super-pods");
  EXPECT_EQ(pods("[]"),
            "rejected\nsuper_pod_list: is empty\nnote: super_pod_list: is missing: the table is "
            "then read without super-pods");
}

TEST(Json, WhatIsNoneIsReportedWithItsPosition) {
  const auto problem_text = [](std::string_view text) {
    const auto json = read_json(text);
    return json ? "read" : json.error().message;
  };
  EXPECT_EQ(problem_text(""), "it is empty");
  EXPECT_EQ(problem_text(" \n"), "it is empty");
  EXPECT_EQ(problem_text("{\n  \"a\": \n"),
            "this is not JSON: line 3, column 1: syntax error while parsing value - unexpected end "
            "of input; expected '[', '{', or a literal");
  EXPECT_EQ(problem_text("{\"a\": NaN}"),
            "this is not JSON: line 1, column 7: syntax error while parsing value - invalid "
            "literal; last read: '\"a\": N'");
  EXPECT_EQ(problem_text("[1e999]"), "this is not JSON: number overflow parsing '1e999'");
  EXPECT_EQ(problem_text("{\"a\": 1, \"a\": 2}"),
            "key 'a' is twice in one object, and readers disagree on which of them counts");
  EXPECT_EQ(problem_text("[1] []").substr(0, 36), "this is not JSON: line 1, column 5: ");
  EXPECT_EQ(problem_text("[\"\xff\"]").substr(0, 17), "this is not JSON:");
  EXPECT_EQ(problem_text(std::string(16, '[') + std::string(16, ']')), "read");
  EXPECT_EQ(problem_text(std::string(17, '[') + std::string(17, ']')),
            "it is nested deeper than 16 levels");
  EXPECT_EQ(problem_text(std::string(1 << 20, '[')), "it is nested deeper than 16 levels");
  EXPECT_EQ(problem_text(std::string(kTextBytesMax + 1, ' ')), "it is longer than 32 MiB");
  std::string many = "[1";
  for (std::size_t i = 1; i < kJsonValuesMax; ++i) many += ",1";
  EXPECT_EQ(problem_text(many + "]"), "it has more than 1000000 values");
  std::string keys = "{\"k\":1";
  for (int i = 0; i < 256; ++i) keys += fmt::format(",\"k{}\":1", i);
  EXPECT_EQ(problem_text(keys + "}"), "one object has more than 256 keys");
  EXPECT_EQ(problem_text("[" + std::string(100'000, '9') + "]"),
            "this is not JSON: number overflow parsing '" + std::string(175, '9') + "...");
}

TEST(Json, WritesAsPythonDoes) {
  std::string out;
  append_json_string(out, "a\"\\\b\f\n\r\t\x01\x7f/\u00e9\u4e2d\U0001F600\xff");
  EXPECT_EQ(out, R"("a\"\\\b\f\n\r\t\u0001\u007f/\u00e9\u4e2d\ud83d\ude00\ufffd")");
  EXPECT_EQ(json_text(*read_json(R"({"a":[],"b":{},"c":[1,-2,1.50,true,null,"x"]})")),
            "{\n    \"a\": [],\n    \"b\": {},\n    \"c\": [\n        1,\n        -2,\n        "
            "1.50,\n        true,\n        null,\n        \"x\"\n    ]\n}");
}

// HCCL searches for the first ".json" in a path, and it must be the end.
TEST(Words, Paths) {
  EXPECT_EQ(path_problem("/a/hccl_2s_16p.json"), "");
  EXPECT_EQ(path_problem("/a/hccl.txt"), "HCCL opens only files whose name ends in '.json'");
  EXPECT_EQ(path_problem("/a/hccl.json.bak"), "HCCL opens only files whose name ends in '.json'");
  EXPECT_EQ(
      path_problem("/a/x.json.d/hccl.json"),
      "HCCL takes the first '.json' of a path for its end, and here '/a/x.json' comes before");
  EXPECT_EQ(
      path_problem("/a/x.json.json"),
      "HCCL takes the first '.json' of a path for its end, and here '/a/x.json' comes before");
  EXPECT_EQ(path_problem("/a/.json"), "HCCL wants a name before '.json'");
}

TEST(Words, ServerIds) {
  EXPECT_EQ(server_id_problem("10.20.0.11"), "");
  EXPECT_EQ(server_id_problem("node_0"), "");
  EXPECT_EQ(server_id_problem("fe80::1"), "");
  EXPECT_NE(server_id_problem(""), "");
  EXPECT_NE(server_id_problem("../x"), "");
  EXPECT_NE(server_id_problem("a b"), "");
  EXPECT_NE(server_id_problem("a\nb"), "");
  EXPECT_NE(server_id_problem(std::string(65, 'a')), "");
}

TEST(Words, ShownCutsWholeCharacters) {
  EXPECT_EQ(shown("a\tb"), "a?b");
  std::string wide;
  for (int i = 0; i < 30; ++i) wide += "\u4e2d";  // three bytes each
  EXPECT_EQ(shown(wide), wide.substr(0, 60) + "...");
  EXPECT_EQ(shown("x" + wide), "x" + wide.substr(0, 57) + "...");
}

}  // namespace
}  // namespace muster::ranktable
