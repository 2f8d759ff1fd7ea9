// A spec that comes as text: what is refused before the text is read, and that a chain keeps its
// numbers when a part of it is done.
#include "controller/api/yaml_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/spec/keys/values.h"

namespace muster::controller {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kJob =
    "name: j\nengine: command\nlaunch: {run: 'true'}\n"
    "resources: {nodes: 1, devices: 1, type: cpu}\n";
constexpr const char* kChain =
    "name: c\nengine: command\nresources: {nodes: 1, devices: 1, type: cpu}\n"
    "stages:\n  one: {launch: {run: 'true'}}\n  two: {launch: {run: 'true'}}\n";

v1::SubmitJobRequest text(const char* yaml) {
  v1::SubmitJobRequest request;
  request.mutable_yaml()->set_text(yaml);
  return request;
}

template <class Request>
std::string refused(const Request& request) {
  const auto made = with_specs(request);
  if (made) return "taken";
  EXPECT_EQ(made.error().code, ErrorCode::InvalidArgument);
  return made.error().message;
}

TEST(YamlSpec, TakesTheTextsPlace) {
  v1::SubmitJobRequest request = text(kJob);
  (*request.mutable_yaml()->mutable_env())["WHO"] = "me";
  const auto made = with_specs(request);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE(made->has_yaml());
  EXPECT_EQ(made->spec().name(), "j");
  EXPECT_EQ(made->spec().runtime().env().at("WHO"), "me");
}

TEST(YamlSpec, BoundsWhatItReads) {
  v1::SubmitJobRequest request = text(kJob);
  for (int i = 0; i < 4097; ++i)
    (*request.mutable_yaml()->mutable_env())["E" + std::to_string(i)] = "1";
  EXPECT_THAT(refused(request), HasSubstr("set and env have 4097 entries, at most 4096"));

  request = text(kJob);
  (*request.mutable_yaml()->mutable_set())["name"] = std::string(spec::kSpecBytesMax, 'x');
  EXPECT_THAT(refused(request), StartsWith("reading the spec: with set and env it has"));

  request = text(kJob);
  request.mutable_yaml()->set_base_dir("here");
  EXPECT_THAT(refused(request), HasSubstr("base_dir 'here' is not absolute"));
}

TEST(YamlSpec, TwoFilesOfOneName) {
  v1::SubmitJobRequest request = text(kJob);
  request.mutable_yaml()->set_base_dir("/d");
  (*request.mutable_yaml()->mutable_files())["a.diff"] = "x";
  (*request.mutable_yaml()->mutable_files())["/d/a.diff"] = "y";
  EXPECT_THAT(refused(request), HasSubstr("two of its files are '/d/a.diff'"));
}

TEST(YamlSpec, WhatANewerMusterAdded) {
  v1::SubmitJobRequest request = text(kJob);
  v1::YamlSpec* yaml = request.mutable_yaml();
  yaml->GetReflection()->MutableUnknownFields(yaml)->AddVarint(77, 1);
  EXPECT_THAT(refused(request), HasSubstr("does not know yaml.field 77"));
}

TEST(YamlSpec, AChainIsNumberedWhole) {
  v1::SubmitJobRequest request = text(kChain);
  request.add_done()->set_stage("one");
  const auto made = with_specs(request);
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->stages_size(), 1);
  EXPECT_EQ(made->stages(0).stage().name(), "two");
  EXPECT_EQ(made->stages(0).stage().number(), 2U);
  EXPECT_EQ(made->stages(0).stage().count(), 2U);
  request.add_done()->set_stage("two");
  EXPECT_THAT(refused(request), HasSubstr("all stages of the chain are done"));
}

TEST(YamlSpec, AStageOfNoChain) {
  v1::PlanJobRequest request;
  request.mutable_yaml()->set_text(kJob);
  EXPECT_TRUE(with_specs(request));
  request.set_stage("one");
  EXPECT_THAT(refused(request), HasSubstr("it is no chain, and has no stage 'one'"));
}

}  // namespace
}  // namespace muster::controller
