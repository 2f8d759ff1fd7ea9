// Documents for programs. Regression: a job without a verdict's class had "class": "unspecified"; a
// job without steps had "step": -1; and an unlimited memlock was 18446744073709551615, which
// readers that use doubles change to another number.
#include "client/render/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "muster/v1/job.pb.h"
#include "muster/v1/job_service.pb.h"
#include "muster/v1/node.pb.h"

namespace muster::render {
namespace {

nlohmann::json of(const google::protobuf::Message& message) {
  return nlohmann::json::parse(document(message, "Thing", Format::Json));
}

TEST(JsonText, WhatIsAbsentIsAbsent) {
  v1::Progress progress;
  progress.set_attempt(1);
  nlohmann::json json = of(progress);
  for (const char* key : {"step", "total", "loss", "stepSeconds", "at"})
    EXPECT_FALSE(json.contains(key)) << key;
  EXPECT_EQ(json["attempt"], 1);
  progress.set_step(0);
  progress.set_total(10);
  progress.set_loss(0);
  json = of(progress);
  EXPECT_EQ(json["step"], 0);
  EXPECT_EQ(json["total"], 10);
  EXPECT_EQ(json["loss"], 0);
}

TEST(JsonText, RankAndStepZeroAreThere) {
  v1::Job job;
  job.mutable_verdict()->set_failure_class(v1::FAILURE_CLASS_OOM);
  job.mutable_verdict()->set_rank(0);
  job.add_attempts()->set_best_step(0);
  job.add_incidents()->set_resumed_from(0);
  const nlohmann::json json = of(job);
  EXPECT_EQ(json["verdict"]["class"], "oom");
  EXPECT_EQ(json["verdict"]["rank"], 0);
  EXPECT_EQ(json["attempts"][0]["bestStep"], 0);
  EXPECT_EQ(json["incidents"][0]["resumedFrom"], 0);
}

TEST(JsonText, NothingIsUnspecified) {
  v1::Job job;
  job.mutable_verdict()->set_reason("x");
  job.add_attempts();
  v1::RankExit& exit = *job.mutable_attempts(0)->add_exits();
  exit.set_code(-1);
  exit.set_signal(9);
  job.mutable_attempts(0)->add_exits()->set_code(0);
  job.mutable_spec()->mutable_launch()->set_script("a.py");
  const std::string text = document(job, "Job", Format::Json);
  EXPECT_EQ(text.find("unspecified"), std::string::npos) << text;
  EXPECT_EQ(text.find("waitsFor"), std::string::npos) << text;
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_FALSE(json["verdict"].contains("rank"));
  EXPECT_FALSE(json["attempts"][0].contains("bestStep"));
  EXPECT_FALSE(json["attempts"][0]["exits"][0].contains("code"));
  EXPECT_EQ(json["attempts"][0]["exits"][0]["signal"], 9);
  EXPECT_EQ(json["attempts"][0]["exits"][1]["code"], 0);
  EXPECT_FALSE(json["attempts"][0]["exits"][1].contains("signal"));
}

// Regression: a job had "evidence": "", "tableSha256": "" and "checkpoint": {"dir": ""}; a node's
// CPU devices had a busId "" and memoryMib 0.
TEST(JsonText, NoTextIsEmptyAndNoZeroMeansNone) {
  v1::Job job;
  job.mutable_verdict()->set_reason("x");
  job.add_attempts()->add_exits()->set_rank(0);
  job.mutable_spec()->mutable_checkpoint();
  job.mutable_spec()->mutable_observe();
  job.mutable_spec()->mutable_network();
  job.mutable_spec()->mutable_runtime()->mutable_limits();
  const std::string text = document(job, "Job", Format::Json);
  EXPECT_EQ(text.find("\"\""), std::string::npos) << text;
  nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_FALSE(json.contains("attempt")) << "a queued job had attempt 0";
  EXPECT_FALSE(json["verdict"].contains("evidence"));
  EXPECT_FALSE(json["spec"]["network"].contains("masterPort"));
  for (const char* key : {"memory", "millicpus"})
    EXPECT_FALSE(json["spec"]["runtime"]["limits"].contains(key)) << key;
  EXPECT_EQ(json["attempts"][0]["exits"][0]["rank"], 0) << "a number that says something";
  EXPECT_EQ(json["attempts"][0]["exits"][0]["stopRequested"], false);
  job.mutable_spec()->mutable_network()->set_master_port(29500);
  EXPECT_EQ(of(job)["spec"]["network"]["masterPort"], 29500);

  v1::Inventory inventory;
  inventory.add_devices()->set_type("cpu");
  json = of(inventory)["devices"][0];
  for (const char* key : {"model", "busId", "uuid", "memoryMib"})
    EXPECT_FALSE(json.contains(key)) << key;
  EXPECT_EQ(json["id"], 0);
}

TEST(JsonText, MemoryOfDevicesIsInMib) {
  v1::Node node;
  node.mutable_inventory()->add_devices()->set_memory_bytes(std::uint64_t{65'536} << 20U);
  v1::DeviceReading& reading = *node.add_readings();
  reading.set_memory_used_bytes(0);
  reading.add_occupants()->set_memory_bytes(std::uint64_t{3'390} << 20U);
  reading.add_occupants();
  const nlohmann::json json = of(node);
  EXPECT_EQ(json["inventory"]["devices"][0]["memoryMib"], 65'536);
  EXPECT_EQ(json["readings"][0]["memoryUsedMib"], 0);
  EXPECT_EQ(json["readings"][0]["occupants"][0]["memoryMib"], 3'390);
  EXPECT_FALSE(json["readings"][0]["occupants"][1].contains("memoryMib"));
}

TEST(JsonText, NamesAreThoseOfTheDocumentsNotOfTheProtocol) {
  v1::Node node;
  v1::UnknownAttempt& unknown = *node.add_unknown_attempts();
  unknown.set_job_id("0j5c2p8q3r1ab");
  unknown.set_attempt(2);
  EXPECT_EQ(of(node)["unknownAttempts"], nlohmann::json({"0j5c2p8q3r1ab.2"}));
  v1::LimitSpec limits;
  limits.set_memory_bytes(1'024);
  EXPECT_EQ(of(limits)["memory"], 1'024);
  v1::FileChange change;
  change.set_at("model.layers");
  EXPECT_EQ(of(change)["place"], "model.layers");
}

// In a list and in a map, an empty text is one element among others. A variable may be set to
// nothing, and `muster env` must show this.
TEST(JsonText, AnEmptyTextThatSaysSomethingStays) {
  v1::JobSpec spec;
  spec.mutable_launch()->add_args("--name");
  spec.mutable_launch()->add_args("");
  (*spec.mutable_runtime()->mutable_env())["EMPTY"] = "";
  const nlohmann::json json = of(spec);
  EXPECT_EQ(json["launch"]["args"], nlohmann::json({"--name", ""}));
  EXPECT_EQ(json["runtime"]["env"]["EMPTY"], "");
  v1::EnvValue variable;
  variable.set_name("EMPTY");
  EXPECT_EQ(of(variable)["value"], "");
}

TEST(JsonText, UnlimitedIsAWord) {
  v1::JobSpec spec;
  spec.mutable_runtime()->mutable_limits()->set_memlock(UINT64_MAX);
  EXPECT_EQ(of(spec)["runtime"]["limits"]["memlock"], "unlimited");
  spec.mutable_runtime()->mutable_limits()->set_memlock(65536);
  EXPECT_EQ(of(spec)["runtime"]["limits"]["memlock"], 65536);
}

TEST(JsonText, LabelsAndDescriptionAreThere) {
  v1::Job job;
  job.mutable_spec()->set_description("a sentence");
  (*job.mutable_spec()->mutable_labels())["team"] = "llm";
  const nlohmann::json json = of(job);
  EXPECT_EQ(json["spec"]["description"], "a sentence");
  EXPECT_EQ(json["spec"]["labels"]["team"], "llm");
}

}  // namespace
}  // namespace muster::render
