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

// Regression: a rank's first step arrived before the last node had reported its start. The line of
// the start was above it, with the later time.
TEST(Incident, IsInTheOrderOfTime) {
  v1::Incident incident;
  *incident.mutable_detected() = at(100);
  *incident.mutable_decided() = at(90);  // by another machine's clock
  *incident.mutable_swept() = at(110);
  *incident.mutable_started() = at(193);
  *incident.mutable_first_step() = at(182);
  EXPECT_THAT(incident_text(incident, Style()),
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
  EXPECT_THAT(incident_text(incident, Style()), testing::HasSubstr("+82ms  first step\n"));
  incident.set_began_at(2);
  EXPECT_THAT(incident_text(incident, Style()),
              testing::HasSubstr("+82ms  first step: did not go on from step 20, began at 2\n"));
  incident.clear_resumed_from();
  EXPECT_THAT(incident_text(incident, Style()), testing::HasSubstr("+82ms  first step\n"));
}

}  // namespace
}  // namespace muster::render
