#include "controller/core/hello.h"

#include <gtest/gtest.h>

#include "controller/core/journal_end/lost_end.h"

namespace muster::core {
namespace {

Ledger ledger() {
  Ledger made;
  made.cluster = ClusterId("c");
  made.epoch = Epoch(3);
  made.nodes[NodeName("n1")] = {.name = NodeName("n1"), .instance = InstanceId("i")};
  return made;
}
v1::Hello hello() {
  v1::Hello made;
  made.set_protocol_min(1);
  made.set_protocol_max(2);
  made.set_node("n1");
  made.set_instance("i");
  made.set_incarnation("one");
  made.set_boot_id("b");
  made.mutable_uptime()->set_seconds(60);
  return made;
}
// The journal had row 8 when epoch 3 began, and has row 10 now.
Judged judged(const v1::Hello& one, bool welcomed = false) {
  return judge_hello(one, ledger(), JournalIndex(8), JournalIndex(10), welcomed);
}

TEST(Hello, AnAgentThatFitsIsTaken) {
  v1::Hello one = hello();
  EXPECT_FALSE(judged(one).refusal);
  one.set_cluster_id("c");
  EXPECT_FALSE(judged(one).refusal);
}

TEST(Hello, WithoutWhatEveryAgentSendsItIsRefused) {
  const auto refused = [](auto change) {
    v1::Hello one = hello();
    change(one);
    const Error refusal = judged(one).refusal.value_or(Error{ErrorCode::InvalidArgument, ""});
    EXPECT_EQ(refusal.code, ErrorCode::InvalidArgument);
    return refusal.message;
  };
  EXPECT_EQ(refused([](v1::Hello& one) { one.clear_instance(); }),
            "connecting node 'n1': its Hello has no instance");
  EXPECT_EQ(refused([](v1::Hello& one) { one.clear_boot_id(); }),
            "connecting node 'n1': its Hello has no boot id");
  EXPECT_EQ(refused([](v1::Hello& one) { one.clear_incarnation(); }),
            "connecting node 'n1': its Hello has no incarnation");
  EXPECT_EQ(refused([](v1::Hello& one) { one.clear_uptime(); }),
            "connecting node 'n1': its Hello has no uptime");
  EXPECT_EQ(refused([](v1::Hello& one) { one.mutable_uptime()->set_seconds(-1); }),
            "connecting node 'n1': its Hello has a negative uptime");
  EXPECT_EQ(refused([](v1::Hello& one) { one.mutable_uptime()->set_seconds(0); }), "")
      << "a machine that has just started";
}

// Regression: they became part of sentences and lines of the log, a line end in them, too.
TEST(Hello, ControlCharactersAreNoPartOfAWord) {
  const auto refused = [](auto change) {
    v1::Hello one = hello();
    change(one);
    return judged(one).refusal.value_or(Error{ErrorCode::Internal, "taken"}).message;
  };
  constexpr const char* kWords =
      "connecting node 'n1': its Hello has an id or version with control characters in it";
  EXPECT_EQ(refused([](v1::Hello& one) { one.set_instance("i\nn1"); }), kWords);
  EXPECT_EQ(refused([](v1::Hello& one) { one.set_boot_id("\x1b[2J"); }), kWords);
  EXPECT_EQ(refused([](v1::Hello& one) { one.set_version("1\t2"); }), kWords);
  EXPECT_EQ(refused([](v1::Hello& one) { one.set_incarnation("\r"); }), kWords);
  EXPECT_EQ(refused([](v1::Hello& one) { one.set_cluster_id("c\n"); }), kWords);
  const std::string name = std::string(63, 'n') + "\u4e2d";  // the bound is within the character
  EXPECT_TRUE(refused([&](v1::Hello& one) {
                one.set_node(name);
              }).starts_with("connecting node '" + std::string(63, 'n') + "': not a node name"));
  EXPECT_TRUE(refused([](v1::Hello& one) {
                one.set_node("a\nb");
              }).starts_with("connecting node 'a?b': not a node name"));
}

// An agent of another protocol may send another Hello.
TEST(Hello, OfAnotherProtocolTheProtocolIsTheReason) {
  v1::Hello one = hello();
  one.set_protocol_min(kProtocolMax + 1);
  one.set_protocol_max(kProtocolMax + 1);
  one.clear_incarnation();
  ASSERT_TRUE(judged(one).refusal);
  EXPECT_EQ(judged(one).refusal->code, ErrorCode::Unsatisfiable);
  EXPECT_NE(judged(one).refusal->message.find("upgrade the older one"), std::string::npos)
      << judged(one).refusal->message;
}

// An older copy of the whole directory is sound; only its agents know more. What the controller has
// written since hides nothing.
TEST(Hello, WhoKnowsMoreThanTheJournalHasGivesItAway) {
  struct Case {
    std::uint64_t epoch, acked;
    bool welcomed, behind;
  };
  constexpr Case kCases[] = {
      {.epoch = 2, .acked = 8, .welcomed = false, .behind = false},
      // row 9 is of this epoch; the agent was sent another row 9
      {.epoch = 2, .acked = 9, .welcomed = false, .behind = true},
      {.epoch = 2, .acked = 11, .welcomed = false, .behind = true},
      // It was connected a moment ago.
      {.epoch = 3, .acked = 10, .welcomed = true, .behind = false},
      {.epoch = 3, .acked = 11, .welcomed = true, .behind = true},
      {.epoch = 3, .acked = 8, .welcomed = false, .behind = true},  // there was another epoch 3
      {.epoch = 4, .acked = 0, .welcomed = false, .behind = true},
      {.epoch = 4, .acked = 0, .welcomed = true, .behind = true},
  };
  for (const Case& one : kCases) {
    SCOPED_TRACE("epoch " + std::to_string(one.epoch) + ", row " + std::to_string(one.acked) +
                 (one.welcomed ? ", welcomed" : ""));
    v1::Hello says = hello();
    says.set_cluster_id("c");
    says.set_highest_epoch(one.epoch);
    says.set_acked_index(one.acked);
    const Judged found = judged(says, one.welcomed);
    EXPECT_EQ(found.refusal.has_value(), one.behind);
    EXPECT_EQ(!found.behind.empty(), one.behind);
    if (!one.behind) continue;
    EXPECT_EQ(found.refusal->code, ErrorCode::Unreachable) << "it tries again soon";
    EXPECT_NE(found.refusal->message.find("restart the controller once with --accept-loss"),
              std::string::npos)
        << found.refusal->message;
    EXPECT_NE(found.behind.find("up to journal row " + std::to_string(one.acked) +
                                " and controller epoch " + std::to_string(one.epoch)),
              std::string::npos)
        << found.behind;
    // From an agent of another cluster, or of none, it proves nothing.
    says.set_cluster_id("d");
    const Judged stranger = judged(says, one.welcomed);
    EXPECT_EQ(stranger.refusal->code, ErrorCode::NotAllowed)
        << "a code of its own: the agent must know this refusal from the others";
    EXPECT_EQ(stranger.behind, "");
  }
}

// Epochs and rows compare only within one lineage of the journal.
TEST(Hello, TheLineageIsComparedBeforeTheEpoch) {
  Ledger second = ledger();
  second.lineage = {.generation = 2, .id = "two"};
  const auto judge = [&](std::uint64_t generation, const std::string& id, std::uint64_t epoch,
                         std::uint64_t acked) {
    v1::Hello says = hello();
    says.set_cluster_id("c");
    says.set_highest_epoch(epoch);
    says.set_acked_index(acked);
    says.mutable_lineage()->set_generation(generation);
    says.mutable_lineage()->set_id(id);
    return judge_hello(says, second, JournalIndex(8), JournalIndex(10), /*welcomed=*/false);
  };
  // What an agent has seen of an earlier one was given up with it.
  EXPECT_FALSE(judge(0, "", 50, 5'000).refusal);
  EXPECT_FALSE(judge(1, "one", 50, 5'000).refusal);
  EXPECT_FALSE(judge(2, "two", 2, 8).refusal);
  EXPECT_NE(judge(2, "two", 4, 0).behind, "") << "within the lineage the epoch decides";
  EXPECT_EQ(judge(2, "other", 1, 0).behind,
            "the controller's journal is older than what node 'n1' has seen: that was generation 2 "
            "of its lineage (other), but this journal is generation 2 of its lineage (two); its "
            "directory is an older copy, or another controller went on from it")
      << "two losses were accepted on copies of one journal";
  EXPECT_NE(judge(3, "three", 1, 0).behind, "");
  EXPECT_NE(judge(2 + kGenerationsBeyondMost, "far", 1, 0).behind, "");
  const Judged beyond = judge(3 + kGenerationsBeyondMost, "far", 1, 0);
  EXPECT_EQ(beyond.behind, "");
  ASSERT_TRUE(beyond.refusal);
  EXPECT_NE(beyond.refusal->message.find("which no controller of this cluster"), std::string::npos)
      << beyond.refusal->message;
}

TEST(Hello, AMalformedLineageIsRefusedAlone) {
  const auto judge = [](std::uint64_t generation, const std::string& id) {
    v1::Hello says = hello();
    says.set_cluster_id("c");
    says.mutable_lineage()->set_generation(generation);
    says.mutable_lineage()->set_id(id);
    return judged(says);
  };
  for (const auto& [generation, id] : {std::pair<std::uint64_t, std::string>{0, "x"},
                                       {1, ""},
                                       {1, std::string(65, 'a')},
                                       {1, "a\x1b[2J"},
                                       {1, "A"}}) {
    const Judged found = judge(generation, id);
    EXPECT_EQ(found.behind, "");
    ASSERT_TRUE(found.refusal) << id;
    EXPECT_EQ(found.refusal->code, ErrorCode::InvalidArgument);
    EXPECT_EQ(found.refusal->message.find('\x1b'), std::string::npos);
  }
  EXPECT_NE(judge(1, "0af-9").behind, "");
}

// Regression: one Hello of anybody with the token ended the controller, at every start.
TEST(Hello, WhoIsNotKnownHereEndsNothing) {
  v1::Hello says = hello();
  says.set_cluster_id("c");
  says.set_highest_epoch(4);
  ASSERT_NE(judged(says).behind, "");
  for (const std::string_view stranger : {"name", "instance"}) {
    v1::Hello other = says;
    if (stranger == "name") other.set_node("n2");
    if (stranger == "instance") other.set_instance("j");
    const Judged found = judged(other);
    EXPECT_EQ(found.behind, "") << stranger;
    EXPECT_EQ(found.refusal->code, ErrorCode::Unsatisfiable);
    for (const char* text :
         {"knows no such agent", "--accept-loss", "a new, empty state directory"})
      EXPECT_NE(found.refusal->message.find(text), std::string::npos) << found.refusal->message;
  }
}

// No accepted loss reaches so far: otherwise the agent would end every start.
TEST(Hello, WhatNoControllerCanHaveReachedIsNotBelieved) {
  const auto says = [](std::uint64_t epoch, std::uint64_t acked) {
    v1::Hello one = hello();
    one.set_cluster_id("c");
    one.set_highest_epoch(epoch);
    one.set_acked_index(acked);
    return judged(one);
  };
  for (const std::uint64_t far :
       {std::uint64_t{1} << 63, ~std::uint64_t{0}, kRowsBeyondMost + 1'000}) {
    for (const Judged& found : {says(far, 0), says(2, far)}) {
      EXPECT_EQ(found.behind, "") << far;
      EXPECT_EQ(found.refusal->code, ErrorCode::Unsatisfiable);
      EXPECT_NE(found.refusal->message.find("which no controller of this cluster"),
                std::string::npos)
          << found.refusal->message;
    }
  }
  EXPECT_NE(says(3 + kEpochsBeyondMost, 0).behind, "");
  EXPECT_EQ(says(4 + kEpochsBeyondMost, 0).behind, "");
  EXPECT_NE(says(2, 10 + kRowsBeyondMost).behind, "");
}

// It is kept for ever, and every answer that shows the node contains it.
TEST(Hello, AnInventoryHasBounds) {
  const auto refused = [](auto change) {
    v1::Hello one = hello();
    change(one);
    const Error refusal = judged(one).refusal.value_or(Error{ErrorCode::InvalidArgument, ""});
    EXPECT_EQ(refusal.code, ErrorCode::InvalidArgument);
    return refusal.message;
  };
  const auto devices = [](int count) {
    return [count](v1::Hello& one) {
      for (int i = 0; i < count; ++i)
        one.mutable_inventory()->add_devices()->set_id(static_cast<std::uint32_t>(i));
    };
  };
  EXPECT_EQ(refused(devices(1'024)), "");
  EXPECT_EQ(refused(devices(1'025)),
            "connecting node 'n1': its inventory has 1025 devices, at most 1024 are taken");
  EXPECT_NE(refused([](v1::Hello& one) {
              one.mutable_inventory()->set_hostname(std::string(300'000, 'h'));
            }).find("bytes, at most 262144 are taken"),
            std::string::npos);
  EXPECT_NE(refused([](v1::Hello& one) {
              for (int i = 0; i < 257; ++i)
                (*one.mutable_inventory()->mutable_labels())[std::to_string(i)] = "";
            }).find("257 labels"),
            std::string::npos);
  EXPECT_NE(refused([](v1::Hello& one) {
              one.set_boot_id(std::string(257, 'b'));
            }).find("of 257 bytes, at most 256"),
            std::string::npos);
}

TEST(Hello, ALowerEpochThanAnAgentWithoutAClusterHasSeenIsRefused) {
  v1::Hello one = hello();
  one.set_highest_epoch(4);
  EXPECT_EQ(judged(one).refusal->code, ErrorCode::Unsatisfiable);
  EXPECT_EQ(judged(one).behind, "");
}

}  // namespace
}  // namespace muster::core
