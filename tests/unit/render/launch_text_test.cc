#include "client/render/launch_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster::render {
namespace {

v1::GetRankLaunchResponse answer() {
  v1::GetRankLaunchResponse answer;
  answer.set_attempt(2);
  v1::RankLaunch& launch = *answer.mutable_launch();
  launch.set_rank(3);
  launch.set_node("n1");
  launch.set_cwd("/w");
  for (const auto& [word, source] : {std::pair{"/usr/bin/python3", "runtime.python"},
                                     {"-u", "runtime.python"},
                                     {"a.py", "launch.script"},
                                     {"--lr", "launch.args[0]"},
                                     {"1 e", "launch.args[1]"},
                                     {"--save", "engine x"}}) {
    launch.add_argv(word);
    launch.add_argv_sources(source);
  }
  v1::EnvValue& value = *launch.add_env();
  value.set_name("RANK");
  value.set_value("3");
  value.set_source("engine x");
  v1::LaunchedFile& file = *answer.add_files();
  file.set_node("n1");
  file.set_path("/out/hccl.json");
  file.set_mode(0644);
  file.set_size(4);
  file.set_sha256("ab");
  file.set_source("rank table");
  file.set_content("{\n\x1b}");
  v1::LaunchedAuxiliary& auxiliary = *answer.add_auxiliaries();
  auxiliary.set_name("scheduler");
  auxiliary.set_node("n1");
  auxiliary.set_cwd("/s");
  auxiliary.add_argv("python3");
  *auxiliary.add_env() = value;
  return answer;
}

TEST(LaunchText, SaysWhereEveryWordComesFrom) {
  EXPECT_EQ(launch_text(answer().launch(), Style()),
            "# rank 3 on n1\n"
            "cd /w\n"
            "export RANK=3  # engine x\n"
            "# runtime.python: /usr/bin/python3 -u\n"
            "# launch.script: a.py\n"
            "# launch.args: --lr '1 e'\n"
            "# engine x: --save\n"
            "/usr/bin/python3 -u a.py --lr '1 e' --save\n");
}

// Regression: of a script whose number a rank inside another script has, too, only the script was
// named, as "rank 3 on n1".
TEST(LaunchText, AScriptNamesTheRankOfItsNumber) {
  v1::GetRankLaunchResponse shown = answer();
  shown.mutable_launch()->set_training_node("n\x1b[0");
  EXPECT_TRUE(launch_text(shown.launch(), Style())
                  .starts_with("# rank 3 on n1\n"
                               "# rank 3 of the training is inside of the script on n?[0: "
                               "--training-rank 3 shows it\n"
                               "cd /w\n"));
  const auto document = nlohmann::json::parse(launch_document(shown, Format::Json));
  EXPECT_EQ(document["rank"], 3);
  EXPECT_EQ(document["trainingNode"], "n\x1b[0");
}

TEST(LaunchText, WhatTheNodeAloneKnowsIsMarkedSo) {
  v1::RankLaunch launch = answer().launch();
  launch.mutable_env(0)->set_value("(run directory)/plog/rank-3");
  EXPECT_NE(launch_text(launch, Style())
                .find("export RANK='(run directory)/plog/rank-3'  # engine x; the node reports its "
                      "run directory when it has started\n"),
            std::string::npos);
}

TEST(LaunchText, OneSourceIsNotShown) {
  v1::RankLaunch launch = answer().launch();
  for (std::string& source : *launch.mutable_argv_sources()) source = "launch.run[7]";
  EXPECT_EQ(launch_text(launch, Style()).find("# launch.run"), std::string::npos);
  launch.clear_argv_sources();  // no word's source is known
  EXPECT_TRUE(launch_text(launch, Style())
                  .ends_with("# engine x\n/usr/bin/python3 -u a.py --lr '1 e' --save\n"));
}

TEST(LaunchText, FilesWithTheirContentWhenItIsAskedFor) {
  const std::string head = "# rank table on n1: /out/hccl.json, mode 0644, 4 bytes, sha256 ab\n";
  EXPECT_EQ(files_text(answer().files(), Contents::No, Style()), head);
  EXPECT_EQ(files_text(answer().files(), Contents::Yes, Style()), head + "{\n?}\n")
      << "no control character reaches the terminal";
}

TEST(LaunchText, AAuxiliaryIsAProcessLikeARank) {
  EXPECT_EQ(
      auxiliary_text(answer().auxiliaries(0), Style()),
      "# scheduler on n1, started before the ranks\ncd /s\nexport RANK=3  # engine x\npython3\n");
}

TEST(LaunchText, SetupIsShownAsItStands) {
  v1::JobSpec spec;
  EXPECT_EQ(setup_text(spec, Style()), "");
  spec.mutable_code()->set_at("/srv");
  spec.mutable_runtime()->add_setup("source a.sh");
  spec.mutable_runtime()->add_setup("if true; then\n  b\nfi\n");
  spec.mutable_runtime()->mutable_setup_timeout()->set_seconds(90);
  EXPECT_EQ(setup_text(spec, Style()),
            "# runtime.setup, once on every node, within 1m30s\ncd /srv\nsource a.sh\nif true; "
            "then\n  b\nfi\n");
}

// The launch's own keys stay where programs expect them.
TEST(LaunchText, TheDocumentHasAllOfIt) {
  const auto document = nlohmann::json::parse(launch_document(answer(), Format::Json));
  EXPECT_EQ(document["kind"], "RankLaunch");
  EXPECT_EQ(document["rank"], 3);
  EXPECT_EQ(document["argvSources"][2], "launch.script");
  EXPECT_EQ(document["attempt"], 2);
  EXPECT_EQ(document["files"][0]["path"], "/out/hccl.json");
  EXPECT_EQ(document["auxiliaries"][0]["name"], "scheduler");
  EXPECT_NE(launch_document(answer(), Format::Yaml).find("kind: \"RankLaunch\""),
            std::string::npos);
}

}  // namespace
}  // namespace muster::render
