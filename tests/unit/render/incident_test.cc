// The timeline of a broken attempt, as people read it.
#include "client/render/incident.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::render {
namespace {

google::protobuf::Timestamp at(int milliseconds) {
  google::protobuf::Timestamp stamp;
  stamp.set_seconds(1'700'000'000);
  stamp.set_nanos(milliseconds * 1'000'000);
  return stamp;
}

void add_node(v1::Attempt& attempt, const std::string& name, const std::string& failed_step) {
  v1::NodePlacement& node = *attempt.add_nodes();
  node.set_node(name);
  node.set_failed_start_step(failed_step);
}

// Regression: a rank's first step arrived before the last node had reported its start. The line of
// the start was above it, with the later time.
TEST(Incident, IsInTheOrderOfTime) {
  v1::Incident incident;
  *incident.mutable_detected() = at(100);
  *incident.mutable_decided() = at(90);  // by another machine's clock
  *incident.mutable_swept() = at(110);
  *incident.mutable_started() = at(193);
  *incident.mutable_first_step() = at(182);
  EXPECT_THAT(incident_text(incident, {}, Style()),
              testing::HasSubstr("        0  detected\n          0  decided\n      +10ms  swept\n"
                                 "      +82ms  first step\n      +93ms  started\n"));
}

TEST(Incident, SaysThatTheProgramDidNotGoOn) {
  v1::Incident incident;
  *incident.mutable_detected() = at(100);
  *incident.mutable_placed() = at(110);
  *incident.mutable_first_step() = at(182);
  incident.set_resumed_from(20);
  incident.set_began_at(21);
  EXPECT_THAT(incident_text(incident, {}, Style()), testing::HasSubstr("+82ms  first step\n"));
  incident.set_began_at(2);
  EXPECT_THAT(incident_text(incident, {}, Style()),
              testing::HasSubstr("+82ms  first step: did not go on from step 20, began at 2\n"));
  incident.clear_resumed_from();
  EXPECT_THAT(incident_text(incident, {}, Style()), testing::HasSubstr("+82ms  first step\n"));
}

TEST(Incident, NamesTheStepsThatFailed) {
  v1::Incident incident;
  incident.set_attempt(2);
  incident.mutable_verdict()->set_reason("node 'n0' could not start its part: no");
  google::protobuf::RepeatedPtrField<v1::Attempt> attempts;
  attempts.Add()->set_number(1);
  attempts.Add()->set_number(2);
  for (const auto& [node, step] : {std::pair("n0", "code"),
                                   {"n1", "check"},
                                   {"n2", ""},
                                   {"n3",
                                    "ch\x1b"
                                    "eck"}})
    add_node(attempts[1], node, step);
  for (int i = 4; i < 9; ++i) add_node(attempts[1], "n" + std::to_string(i), "check");
  const std::string head = "attempt 2 broke: node 'n0' could not start its part: no\n";
  EXPECT_EQ(incident_text(incident, attempts, Style()),
            head +
                "  step 'ch?eck' of the start failed on 'n3'\n"
                "  step 'check' of the start failed on 'n1', 'n4', 'n5', 'n6' and 2 more\n"
                "  step 'code' of the start failed on 'n0'\n");
  incident.set_attempt(1);
  EXPECT_EQ(incident_text(incident, attempts, Style()),
            "attempt 1 broke: node 'n0' could not start its part: no\n")
      << "that of another attempt";
}

}  // namespace
}  // namespace muster::render
