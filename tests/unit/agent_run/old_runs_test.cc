// Run directories of version 1, as recorded bytes: version 1 stays readable for ever. These have no
// auxiliary processes, no setup and no kind of evidence.
#include <fstream>

#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

constexpr const char* kLaunchOfVersionOne =
    "500100005f0ff9aa0801120d30313233343536373839616263180322026e312a2438663063326339652d303030302d"
    "343030302d383030302d30303030303030303030303132"
    "1563312f303132333435363738396162632e33406e313a6308081a102f7573722f62696e2f707974686f6e331a0874"
    "7261696e2e707922052f646174612a0652414e4b3d3832"
    "342f7661722f6c69622f6d75737465722f72756e732f303132333435363738396162632e332f6c6f67732f72616e6b"
    "2d382e6c6f673a65080910011a102f7573722f62696e2f"
    "707974686f6e331a08747261696e2e707922052f646174612a0652414e4b3d3932342f7661722f6c69622f6d757374"
    "65722f72756e732f303132333435363738396162632e33"
    "2f6c6f67732f72616e6b2d392e6c6f674212504154483d2f7573722f62696e3a2f62696e48b0ea01508080408a0111"
    "0a0d303132333435363738396162631003";
constexpr const char* kEventsOfVersionOne =
    "3c000000bd7121b6088080a8b1e39fe7cb1710e8071a2438663063326339652d303030302d343030302d383030302d"
    "3030303030303030303030314a07080810a01f184d3c00"
    "00006eea994a088080a8b1e39fe7cb1710e9071a2438663063326339652d303030302d343030302d383030302d3030"
    "303030303030303030314a07080910a11f184d35000000"
    "bcdf6872088080a8b1e39fe7cb1710ea071a2438663063326339652d303030302d343030302d383030302d30303030"
    "3030303030303031220039000000cfc22b73088080a8b1"
    "e39fe7cb1710eb071a2438663063326339652d303030302d343030302d383030302d30303030303030303030303132"
    "040809100337000000aacec2ca088080a8b1e39fe7cb17"
    "10ec071a2438663063326339652d303030302d343030302d383030302d3030303030303030303030313a0208014600"
    "0000ea7bd112088080a8b1e39fe7cb1710ed071a243866"
    "3063326339652d303030302d343030302d383030302d3030303030303030303030313211080810ffffffffffffffff"
    "ff01180f2001370000001d361930088080a8b1e39fe7cb"
    "1710ee071a2438663063326339652d303030302d343030302d383030302d30303030303030303030303142020801";
constexpr const char* kMarkOfVersionOne =
    "46000000ca6607d8088080a8b1e39fe7cb1710d00f1a2438663063326339652d303030302d343030302d383030302d"
    "30303030303030303030303142110809120d56616c75654572726f723a2078";
constexpr const char* kClaimOfVersionOne =
    "2b00000010cc59bf089f1f104c1a2438663063326339652d303030302d343030302d383030302d3030303030303030"
    "30303031";

std::string bytes_of(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2)
    bytes += static_cast<char>(digit(hex[at]) * 16 + digit(hex[at + 1]));
  return bytes;
}

TEST(OldRuns, AreReadAsTheyWereMeant) {
  const TempDir dir;
  const RunKey run{JobId("0123456789abc"), AttemptNo(3)};
  const rundir::RunLayout layout(
      rundir::AgentLayout(dir.path() / "state").run(run.first, run.second));
  std::filesystem::create_directories(layout.logs());
  std::ofstream(layout.launch()) << bytes_of(kLaunchOfVersionOne);
  std::ofstream(layout.events()) << bytes_of(kEventsOfVersionOne);
  std::ofstream(layout.mark()) << bytes_of(kMarkOfVersionOne);
  std::ofstream(layout.claim()) << bytes_of(kClaimOfVersionOne);
  HostIncarnation agent(dir.path() / "state");
  const RunSeen seen = agent.seen(run);
  EXPECT_TRUE(seen.launch_sound);
  EXPECT_EQ(seen.worker, WorkerState::Dead);
  EXPECT_EQ(seen.ranks, (std::vector<std::uint32_t>{8, 9}));
  EXPECT_TRUE(seen.started);
  EXPECT_FALSE(seen.setting_up);
  EXPECT_TRUE(seen.auxiliary_exits.empty());
  EXPECT_TRUE(seen.swept);
  EXPECT_EQ(seen.swept_reason, "stopped");
  ASSERT_EQ(seen.exits.size(), 2U);
  EXPECT_EQ(seen.exits.at(9).code, 3);
  EXPECT_EQ(seen.exits.at(9).evidence, "ValueError: x");
  EXPECT_EQ(seen.exits.at(9).evidence_kind, v1::EVIDENCE_KIND_UNSPECIFIED);
  EXPECT_EQ(seen.exits.at(8).signal, 15);
  EXPECT_TRUE(seen.exits.at(8).stop_requested);
  std::vector<int> kinds;
  for (const v1::Fact& fact : facts_of(run, seen)) kinds.push_back(fact.what_case());
  EXPECT_EQ(kinds, (std::vector<int>{v1::Fact::kStarted, v1::Fact::kExited, v1::Fact::kExited,
                                     v1::Fact::kSwept}));
  EXPECT_TRUE(agent.troubles().empty()) << agent.troubles().front();
}

}  // namespace
}  // namespace muster::agent
