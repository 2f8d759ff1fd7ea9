#include "controller/api/log_sources.h"

#include <gtest/gtest.h>

namespace muster::controller {
namespace {

// Attempt 1 on a and b with four ranks each, attempt 2 on a and c.
LogSources two_attempts() {
  LogSources sources{.job = JobId("01h"), .name = "llama"};
  sources.attempts[AttemptNo(1)] = {{.node = NodeName("a"), .first = RankNo(0), .count = 4},
                                    {.node = NodeName("b"), .first = RankNo(4), .count = 4}};
  sources.attempts[AttemptNo(2)] = {{.node = NodeName("a"), .first = RankNo(0), .count = 4},
                                    {.node = NodeName("c"), .first = RankNo(4), .count = 4}};
  return sources;
}

std::string problem_text(const std::vector<AttemptNo>& chosen, const v1::ReadLogsRequest& request,
                         const LogSources& sources = two_attempts()) {
  return missing_logs(sources, chosen, request).value_or("");
}

TEST(LogChoice, RanksUnlessOthersAreNamed) {
  const auto choice = [](const std::vector<std::string>& auxiliaries,
                         const std::vector<std::uint32_t>& ranks = {}) {
    v1::ReadLogsRequest request;
    for (const std::string& name : auxiliaries) request.add_node_logs(name);
    for (const std::uint32_t rank : ranks) request.add_ranks(rank);
    return LogChoice(request);
  };
  EXPECT_TRUE(choice({}).ranks);
  EXPECT_FALSE(choice({}).any_auxiliaries());
  EXPECT_FALSE(choice({"setup"}).ranks);
  EXPECT_FALSE(choice({"*"}).ranks);
  EXPECT_TRUE(choice({"*"}).auxiliary("anything"));
  EXPECT_TRUE(choice({"setup"}, {3}).ranks);
  EXPECT_FALSE(choice({"setup"}).auxiliary("scheduler"));
  EXPECT_TRUE(choice({"setup:failed"}).ranks) << "beside what else is asked for";
  EXPECT_TRUE(choice({"setup:failed"}).failed_setups);
  EXPECT_FALSE(choice({"setup:failed"}).any_auxiliaries());
  EXPECT_FALSE(choice({"setup:failed", "scheduler"}).ranks);
}

TEST(MissingAuxiliaries, ANameSaysWhichThereAre) {
  LogSources sources = two_attempts();
  const auto problem_text = [&](const std::vector<std::string>& names,
                                const std::set<std::string>& there) {
    v1::ReadLogsRequest request;
    for (const std::string& name : names) request.add_node_logs(name);
    return missing_auxiliaries(sources, there, LogChoice(request)).value_or("");
  };
  EXPECT_EQ(problem_text({"*", "setup:failed"}, {}), "");
  EXPECT_EQ(problem_text({"setup"}, {}),
            "reading the logs of job 'llama' (01h): it has no log of 'setup'; apart from its "
            "ranks' there is none");
  EXPECT_EQ(problem_text({"scheduler", "setup", "\x1b[2J\n"}, {"setup"}),
            "reading the logs of job 'llama' (01h): it has no log of '?[2J?', 'scheduler'; apart "
            "from its ranks' there is that of 'setup'");
  sources.node_logs = {"scheduler", "setup"};
  EXPECT_EQ(problem_text({"setup"}, {}), "") << "it may not have begun";
  EXPECT_EQ(problem_text({"schedulr"}, {}),
            "reading the logs of job 'llama' (01h): it has no log of 'schedulr'; apart from its "
            "ranks' there are those of 'scheduler', 'setup'");
  EXPECT_LT(problem_text(std::vector<std::string>(1, std::string(1 << 20, 'x')), {}).size(), 300u);
}

TEST(MissingLogs, WhatIsThereIsNotMissing) {
  v1::ReadLogsRequest request;
  EXPECT_EQ(problem_text({AttemptNo(2)}, request), "");
  request.add_ranks(7);
  EXPECT_EQ(problem_text({AttemptNo(2)}, request), "");
  request.set_node("c");
  EXPECT_EQ(problem_text({AttemptNo(2)}, request), "");
  request.set_node("b");
  EXPECT_EQ(problem_text({AttemptNo(1), AttemptNo(2)}, request), "")
      << "in one of the chosen attempts is enough";
}

TEST(MissingLogs, ARankSaysWhichThereAre) {
  v1::ReadLogsRequest request;
  for (const std::uint32_t rank : {3U, 8U, 9U, 12U}) request.add_ranks(rank);
  EXPECT_EQ(problem_text({AttemptNo(2)}, request),
            "reading the logs of job 'llama' (01h): it has no ranks 8-9, 12; there are ranks 0-7 "
            "on nodes 'a', 'c' in attempt 2");
}

TEST(MissingLogs, ANodeSaysWhichThereAre) {
  v1::ReadLogsRequest request;
  request.set_node("b");
  EXPECT_EQ(problem_text({AttemptNo(2)}, request),
            "reading the logs of job 'llama' (01h): it has no node 'b'; there are ranks 0-7 on "
            "nodes 'a', 'c' in attempt 2");
  request.set_node("d");
  request.add_ranks(99);
  EXPECT_EQ(problem_text({AttemptNo(1), AttemptNo(2)}, request),
            "reading the logs of job 'llama' (01h): it has no node 'd' and no rank 99; there are "
            "ranks 0-7 on nodes 'a', 'b', 'c' in attempts 1-2");
}

// Regression: `muster logs JOB --rank 5` of a script with eight ranks inside printed that there is
// no rank 5.
TEST(LogChoice, ARankInsideOfAScriptIsTheLogOfThatName) {
  LogSources sources{.job = JobId("01h"), .name = "gpt"};
  sources.attempts[AttemptNo(1)] = {{.node = NodeName("a"),
                                     .first = RankNo(0),
                                     .count = 1,
                                     .training_first = 0,
                                     .training_count = 8},
                                    {.node = NodeName("b"),
                                     .first = RankNo(1),
                                     .count = 1,
                                     .training_first = 8,
                                     .training_count = 8}};
  v1::ReadLogsRequest request;
  for (const std::uint32_t rank : {1U, 5U, 15U, 16U}) request.add_ranks(rank);
  find_training_ranks(sources, std::vector{AttemptNo(1)}, request);
  EXPECT_EQ(std::vector<std::uint32_t>(request.ranks().begin(), request.ranks().end()),
            (std::vector<std::uint32_t>{1, 16}))
      << "1 is the script of node b";
  const LogChoice choice(request);
  EXPECT_EQ(choice.auxiliaries, (std::set<std::string>{"rank-5", "rank-15"}));
  EXPECT_TRUE(choice.ranks);
  EXPECT_EQ(missing_auxiliaries(sources, {}, choice), std::nullopt) << "it may not have begun";
  EXPECT_EQ(problem_text({AttemptNo(1)}, request, sources),
            "reading the logs of job 'gpt' (01h): it has no rank 16; there are ranks 0-1 on nodes "
            "'a', 'b' in attempt 1, and inside their scripts ranks 0-15 of "
            "the training");
  v1::ReadLogsRequest one;
  one.add_ranks(5);
  find_training_ranks(sources, std::vector{AttemptNo(1)}, one);
  EXPECT_FALSE(LogChoice(one).ranks) << "not the scripts' besides";
  v1::ReadLogsRequest plain;
  plain.add_ranks(9);
  LogSources ranks = two_attempts();
  find_training_ranks(ranks, std::vector{AttemptNo(1), AttemptNo(2)}, plain);
  EXPECT_EQ(plain.ranks(0), 9U);
}

// Regression: on two nodes with two ranks each, `muster logs JOB --rank 1` printed only the script
// of node b. Rank 1 of the training, which `muster why` named, is inside the script of node a.
TEST(LogChoice, ANumberOfAScriptAndOfARankInsideAnotherScript) {
  LogSources sources{.job = JobId("01h"), .name = "two"};
  sources.attempts[AttemptNo(1)] = {{.node = NodeName("a"),
                                     .first = RankNo(0),
                                     .count = 1,
                                     .training_first = 0,
                                     .training_count = 2},
                                    {.node = NodeName("b"),
                                     .first = RankNo(1),
                                     .count = 1,
                                     .training_first = 2,
                                     .training_count = 2}};
  // The second attempt has one node.
  sources.attempts[AttemptNo(2)] = {sources.attempts[AttemptNo(1)].front()};
  const std::vector<AttemptNo> first{AttemptNo(1)}, second{AttemptNo(2)},
      both{AttemptNo(1), AttemptNo(2)};
  // "1 rank-1": the numbers and the names that are requested after that.
  const auto found = [&](const std::vector<AttemptNo>& chosen, std::uint32_t rank,
                         const std::string& node = "", bool training_ranks = true) {
    v1::ReadLogsRequest request;
    request.add_ranks(rank);
    request.set_node(node);
    request.set_training_ranks(training_ranks);
    find_training_ranks(sources, chosen, request);
    EXPECT_EQ(missing_auxiliaries(sources, {}, LogChoice(request)), std::nullopt);
    std::string text;
    for (const std::uint32_t number : request.ranks()) text += std::to_string(number) + " ";
    for (const std::string& name : request.node_logs()) text += name + " ";
    return text;
  };
  EXPECT_EQ(found(first, 1), "1 rank-1 ");
  EXPECT_EQ(found(first, 0), "0 ") << "rank 0 of the training is inside script 0";
  EXPECT_EQ(found(first, 2), "rank-2 ");
  EXPECT_EQ(found(first, 4), "4 ") << "there is none";
  EXPECT_EQ(found(first, 1, "", false), "1 ") << "as with --raw";
  EXPECT_EQ(found(second, 1), "rank-1 ") << "the attempt has one script";
  EXPECT_EQ(found(both, 1), "1 rank-1 ");
  EXPECT_EQ(found(first, 1, "a"), "rank-1 ") << "it was refused: 'no rank 1 on node a'";
  EXPECT_EQ(found(first, 1, "b"), "1 ");
  EXPECT_EQ(found(first, 2, "a"), "2 ") << "refused later, with what node a has";
  EXPECT_EQ(found(first, 2, "x"), "rank-2 ") << "only the node is refused later";

  v1::ReadLogsRequest together;
  together.add_ranks(0);
  together.add_ranks(1);
  together.set_training_ranks(true);
  find_training_ranks(sources, first, together);
  EXPECT_TRUE(together.node_logs().empty()) << "script 0 has the output of rank 1";
}

TEST(MissingLogs, ARankOfAnotherNode) {
  v1::ReadLogsRequest request;
  request.set_node("a");
  request.add_ranks(5);
  EXPECT_EQ(problem_text({AttemptNo(1)}, request),
            "reading the logs of job 'llama' (01h): it has no rank 5 on node 'a'; there are ranks "
            "0-3 in attempt 1");
}

TEST(MissingLogs, AnAttemptSaysWhichThereAre) {
  v1::ReadLogsRequest request;
  request.set_attempt(7);
  EXPECT_EQ(problem_text({}, request),
            "reading the logs of job 'llama' (01h): it has no attempt 7; there are attempts 1-2");
  LogSources one = two_attempts();
  one.attempts.erase(AttemptNo(2));
  EXPECT_EQ(problem_text({}, request, one),
            "reading the logs of job 'llama' (01h): it has no attempt 7; there is attempt 1");
  EXPECT_EQ(problem_text({}, request, {.job = JobId("01h"), .name = "llama"}),
            "reading the logs of job 'llama' (01h): it has no attempt 7; it was not placed yet");
}

TEST(MissingLogs, AThousandNodesFitOnOneLine) {
  LogSources sources{.job = JobId("01h"), .name = "big"};
  for (std::uint32_t i = 0; i < 1000; ++i)
    sources.attempts[AttemptNo(1)].push_back(
        {.node = NodeName("n" + std::to_string(i)), .first = RankNo(i * 2), .count = 1});
  v1::ReadLogsRequest request;
  request.set_node("x");
  const std::string text = problem_text({AttemptNo(1)}, request, sources);
  EXPECT_LT(text.size(), 400u) << text;
  EXPECT_NE(text.find("and 984 more"), std::string::npos) << text;
  EXPECT_NE(text.find("and more, up to 1998"), std::string::npos) << text;
}

}  // namespace
}  // namespace muster::controller
