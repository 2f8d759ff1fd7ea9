// Why a spec from the API is refused, in addition to the checks of common/spec. A key that this
// controller does not know would be ignored here, and would make the journal unreadable. A launch
// that does not fit a message would end its nodes' streams at every connection, including all
// stops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/engine/model/engine.h"
#include "common/rpc/channel.h"
#include "common/spec/parse.h"
#include "controller/api/complete_spec.h"
#include "controller/api/unknown_fields.h"
#include "controller/launch/bounds.h"

namespace muster::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void add_unknown(google::protobuf::Message& message, int number) {
  message.GetReflection()->MutableUnknownFields(&message)->AddVarint(number, 1);
}

v1::JobSpec command(std::uint32_t devices) {
  v1::JobSpec spec;
  spec.set_name("wide");
  spec.set_engine("command");
  spec.mutable_code()->set_at("/srv");
  spec.mutable_launch()->add_run("true");
  spec.mutable_resources()->set_devices(devices);
  return spec;
}
// Adds words of 64 KiB each, `bytes` in total.
void add_words(v1::JobSpec& spec, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes >> 16U; ++i)
    spec.mutable_launch()->add_run(std::string(1U << 16U, 'x'));
}
std::string refused(const v1::JobSpec& spec) {
  const auto done = complete_spec(spec, {});
  if (done) return "";
  EXPECT_EQ(done.error().code, ErrorCode::InvalidArgument);
  return done.error().message;
}

TEST(UnknownFields, AreFoundAtEveryDepth) {
  v1::JobSpec spec = command(1);
  (*spec.mutable_labels())["a"] = "b";
  EXPECT_THAT(unknown_fields(spec), IsEmpty());
  add_unknown(spec, 100);
  add_unknown(spec, 100);
  add_unknown(*spec.mutable_launch(), 100);
  add_unknown(*spec.mutable_recovery()->mutable_window(), 9);
  EXPECT_THAT(unknown_fields(spec),
              ElementsAre("field 100", "launch.field 100", "recovery.window.field 9"));
  v1::Inventory inventory;
  inventory.add_devices();
  add_unknown(*inventory.add_devices(), 50);
  EXPECT_THAT(unknown_fields(inventory), ElementsAre("devices.field 50"));
  // proto3 keeps unknown values of enums, too.
  v1::JobSpec values = command(1);
  values.mutable_start()->set_as(static_cast<v1::StartAs>(9));
  values.mutable_launch()->set_per(static_cast<v1::LaunchPer>(-1));
  EXPECT_THAT(unknown_fields(values), ElementsAre("launch.per value -1", "start.as value 9"));
  EXPECT_THAT(refused(values), HasSubstr("this controller does not know launch.per value -1"));
}

TEST(CompleteSpec, AKeyOfANewerMusterIsRefusedByAName) {
  v1::JobSpec spec = command(1);
  add_unknown(*spec.mutable_launch(), 100);
  EXPECT_EQ(refused(spec),
            "checking the spec: this controller does not know launch.field 100; leave out what "
            "came with a newer muster, or upgrade the controller");
  for (int number = 100; number < 108; ++number) add_unknown(spec, number);
  EXPECT_THAT(
      refused(spec),
      HasSubstr("field 100, field 101, field 102, field 103, field 104, field 105 and 3 more;"));
  v1::JobSpec over_the_wire;
  ASSERT_TRUE(over_the_wire.ParseFromString(spec.SerializeAsString()));
  EXPECT_THAT(refused(over_the_wire), HasSubstr("does not know field 100"));
  EXPECT_EQ(refused(command(1)), "");
}

TEST(CompleteSpec, WhatOneNodeCannotBeSentIsRefusedByItsKey) {
  v1::JobSpec spec = command(16);
  add_words(spec, 960U << 10U);
  EXPECT_EQ(refused(spec),
            "planning job 'wide': launch.run: the arguments of a node's 16 ranks come to 16 MiB, "
            "at most 12 MiB; put what is long into a file that the ranks read");
  // The same only by a resume's arguments, and by variables that differ from rank to rank.
  v1::JobSpec resume = command(16);
  for (int i = 0; i < 15; ++i) resume.mutable_resume()->add_args(std::string(1U << 16U, 'x'));
  EXPECT_THAT(
      refused(resume),
      HasSubstr(
          "planning job 'wide': resume.args: the arguments of a node's 16 ranks come to 16 MiB"));
  v1::JobSpec variables = command(16);
  for (int i = 0; i < 15; ++i)
    (*variables.mutable_runtime()->mutable_env())["V" + std::to_string(i)] =
        "${rank}" + std::string((1U << 16U) - 16, 'x');
  EXPECT_THAT(
      refused(variables),
      HasSubstr(
          "planning job 'wide': runtime.env: the variables of a node's 16 ranks come to 16 MiB"));
}

TEST(CompleteSpec, WhatIsCommonToANodesRanksIsSentOnceAndCountsOnce) {
  v1::JobSpec spec = command(16);
  for (int i = 0; i < 15; ++i)
    (*spec.mutable_runtime()->mutable_env())["V" + std::to_string(i)] =
        std::string((1U << 16U) - 16, 'x');
  EXPECT_EQ(refused(spec), "");
  spec.mutable_resources()->set_devices(1024);
  EXPECT_THAT(refused(spec),
              HasSubstr("runtime.env: the variables of a node's 1024 ranks come to 9"));
}

// The longest spec that is allowed, on a node of eight devices: what fits a spec fits an order.
TEST(CompleteSpec, TheLongestSpecFitsEightRanks) {
  v1::JobSpec spec = command(8);
  add_words(spec, 896U << 10U);
  spec.mutable_launch()->add_run(std::string(spec::kSpecBytesMax - spec.ByteSizeLong() - 100, 'x'));
  ASSERT_LE(spec.ByteSizeLong(), spec::kSpecBytesMax);
  EXPECT_EQ(refused(spec), "");
  static_assert(8 * engine::kProcessBytesMax < kPartBytesMax);
  static_assert(kPartBytesMax < kPartBytesSendable &&
                kPartBytesSendable + (2U << 20U) < rpc::kMessageBytesMax);
}

// Only the last node's ranks are planned, so that the answer does not take minutes and gigabytes.
TEST(CompleteSpec, AWideJobIsJudgedByOneNode) {
  v1::JobSpec spec = command(1024);
  // With a million devices, the widest job that is allowed.
  spec.mutable_resources()->set_nodes(1'024);
  spec.mutable_launch()->add_run("${rank}/${world_size}");
  EXPECT_EQ(refused(spec), "");
}

// Every node gets the whole table: for 16,384 ranks it has 3 MB.
TEST(CompleteSpec, ARankTableThatOneNodeCannotBeSentIsRefused) {
  v1::JobSpec spec = command(8);
  spec.set_engine("mindformers");
  spec.mutable_launch()->clear_run();
  spec.mutable_launch()->set_config("/srv/a.yaml");
  spec.mutable_resources()->set_type("ascend");
  spec.mutable_resources()->set_nodes(2'048);
  EXPECT_EQ(refused(spec), "");
  spec.mutable_resources()->set_nodes(8'192);
  EXPECT_EQ(refused(spec),
            "planning job 'wide': resources.nodes: the rank table of 65536 ranks comes to 16 MiB, "
            "and a node is sent at most 12 MiB; ask for fewer nodes, or use "
            "launch.launcher: msrun");
  spec.mutable_launch()->set_launcher(v1::LAUNCHER_MSRUN);
  EXPECT_EQ(refused(spec), "");
}

TEST(CompleteSpec, WhatOnlyAResumeSetsIsMissedInAFirstAttempt) {
  v1::JobSpec spec = command(2);
  spec.mutable_launch()->add_run("${env:FROM}");
  (*spec.mutable_resume()->mutable_env())["FROM"] = "there";
  EXPECT_THAT(refused(spec), HasSubstr("launch.run[1]: '${env:FROM}' has no value"));
}

}  // namespace
}  // namespace muster::controller
