// observe.profile and observe.dump of a YAML spec.
#include <gtest/gtest.h>

#include "common/spec/parse.h"

namespace muster::spec {
namespace {

constexpr const char* kObserveHead =
    "name: x\nengine: mindformers\nlaunch: {config: a.yaml}\nresume: none\n";
constexpr const char* kDumpFile =
    R"({"common_dump_settings": {"net_name": "x", "iteration": "0"}})";

ParseOptions observe_options() {
  ParseOptions options{.base_dir = "/home/ada/exp"};
  options.read_file = [](const std::string& path, std::size_t most) -> Result<std::string> {
    EXPECT_EQ(most, 64U << 10U);
    if (path != "/home/ada/exp/d/dump.json")
      return fail(ErrorCode::InvalidArgument, "there is no such file");
    return std::string(kDumpFile);
  };
  return options;
}

v1::ObserveSpec read_observe(const std::string& observe) {
  const Parsed parsed = parse_yaml(kObserveHead + observe, observe_options());
  EXPECT_EQ(format(parsed.problems, "job.yaml"), "") << observe;
  v1::JobSpec again = parsed.spec;
  EXPECT_TRUE(complete(again).empty());
  return parsed.spec.observe();
}

std::string observe_problems(const std::string& observe) {
  return format(parse_yaml(kObserveHead + observe, observe_options()).problems, "job.yaml");
}

TEST(ObserveProfile, OffOnOrWhich) {
  for (const char* off : {"", "observe: {profile: false}\n", "observe: {profile: null}\n",
                          "observe: {profile: no}\n"})
    EXPECT_FALSE(read_observe(off).has_profile()) << off;
  EXPECT_TRUE(read_observe("observe: {profile: true}\n").has_profile());
  const v1::ObserveSpec observe =
      read_observe("observe: {profile: {start: 5, stop: 8, ranks: [0, 3]}}\n");
  EXPECT_EQ(observe.profile().start(), 5U);
  EXPECT_EQ(observe.profile().stop(), 8U);
  ASSERT_EQ(observe.profile().ranks_size(), 2);
  EXPECT_EQ(observe.profile().ranks(1), 3U);
  EXPECT_TRUE(read_observe("observe: {profile: {start: null, ranks: [1]}}\n").has_profile());
}

TEST(ObserveProfile, EveryProblemHasItsPlace) {
  EXPECT_EQ(observe_problems("observe: {profile: on}\n").substr(0, 52),
            "job.yaml:5:20: observe.profile: 'on' is not accepted");
  EXPECT_EQ(observe_problems("observe: {profile: {}}\n"),
            "job.yaml:5:20: observe.profile: is an empty map (false | true | {start: , stop: , "
            "ranks: })\n");
  EXPECT_EQ(observe_problems("observe:\n  profile: {start: 0, stop: 3}\n").substr(0, 37),
            "job.yaml:6:20: observe.profile.start:");
  EXPECT_EQ(observe_problems("observe:\n  profile: {start: 5, stop: 3}\n"),
            "job.yaml:6:29: observe.profile.stop: 3 is before start, 5\n");
  EXPECT_EQ(observe_problems("observe:\n  profile: {ranks: [0, 99]}\n"),
            "job.yaml:6:24: observe.profile.ranks[1]: there is no rank 99: the job has 0..7\n");
  EXPECT_EQ(observe_problems("observe:\n  profile: {ranks: [zero]}\n").substr(0, 38),
            "job.yaml:6:21: observe.profile.ranks[0");
  EXPECT_EQ(
      observe_problems("observe:\n  profile: {ranks: 0}\n"),
      "job.yaml:6:20: observe.profile.ranks: must be a list of ranks (list of ranks | null)\n");
  EXPECT_NE(observe_problems("observe:\n  profile: {stat: 5, stop: 6}\n")
                .find("job.yaml:6:13: observe.profile.stat: unknown key; did you mean '"),
            std::string::npos);
}

TEST(ObserveDump, IsReadNextToTheSpec) {
  const v1::ObserveSpec observe = read_observe("observe: {dump: d/dump.json}\n");
  EXPECT_EQ(observe.dump().name(), "d/dump.json");
  EXPECT_EQ(observe.dump().config(), kDumpFile);
  EXPECT_FALSE(read_observe("observe: {dump: null}\n").has_dump());
  EXPECT_EQ(observe_problems("observe: {dump: other.json}\n"),
            "job.yaml:5:17: observe.dump: 'other.json': there is no such file\n");
  EXPECT_EQ(
      observe_problems("observe: {dump: ''}\n"),
      "job.yaml:5:17: observe.dump: is empty (a file, relative to the spec's directory | null)\n");
}

}  // namespace
}  // namespace muster::spec
