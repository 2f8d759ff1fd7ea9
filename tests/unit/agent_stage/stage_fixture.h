// Inputs are brought to a node by a real rclone, from a directory that plays the store.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "agent/stage/input_tree.h"
#include "agent/stage/stage_input.h"

namespace muster::agent {

namespace fs = std::filesystem;

inline std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return (std::ostringstream() << in.rdbuf()).str();
}
inline ino_t inode_of(const fs::path& file) {
  struct stat status{};
  return ::stat(file.c_str(), &status) == 0 ? status.st_ino : 0;
}

// dir://d is a directory that plays the store. Inputs come from it to a node.
class StageInput : public testing::Test {
 protected:
  StageInput() {
    std::string pattern = (fs::temp_directory_path() / "muster-stage-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    fs::create_directories(store());
  }
  ~StageInput() override { fs::remove_all(dir_); }

  [[nodiscard]] fs::path store() const { return dir_ / "store"; }
  [[nodiscard]] fs::path root() const { return dir_ / "inputs"; }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((store() / name).parent_path());
    std::ofstream(store() / name, std::ios::binary) << text;
  }
  [[nodiscard]] fs::path tree(const std::string& name, const std::string& job = "j1") const {
    return root() / "jobs" / job / "data" / name;
  }
  Result<v1::InputState> stage(const std::string& path, const std::string& job = "j1") {
    v1::StagedInput input;
    input.set_name("data");
    input.set_url("dir://d" + (path.empty() ? "" : "/" + path));
    input.set_root(root());
    input.set_path(tree(path.empty() ? "d" : path.substr(path.rfind('/') + 1), job));
    *input.mutable_include() = {include_.begin(), include_.end()};
    input.set_contents_sha256(began_with_);
    if (step_) input.set_step(*step_);
    input.set_layout("megatron");
    *input.mutable_profile() = profile_;
    input.mutable_profile()->set_url("dir://d");
    input.mutable_profile()->set_endpoint(store());
    fetched_ = 0;
    const StageCalls calls{.fetch = {.abandoned = *now_abandoned_,
                                     .progress = {},
                                     .now = [] { return system_clock().now().wall; },
                                     .away_most = away_most_},
                           .at =
                               [this](const std::string& what) {
                                 if (at_) at_(what);
                               },
                           .news = [this](const StageNews& news) { fetched_ = news.missing; }};
    if (auto used = use_trees(root() / "jobs", job, "n1." + job + ".1", dir_ / (job + ".inputs"),
                              *now_abandoned_);
        !used)
      return fail(Error(used.error()));
    return stage_input(input, job, "", nullptr, 0, calls);
  }
  Result<void> leave(const std::string& job = "j1") {
    return leave_trees(dir_ / (job + ".inputs"), "n1." + job + ".1");
  }

  // The cache's file of an object with this text.
  [[nodiscard]] fs::path only_object(const std::string& text) const {
    for (const auto& one : fs::recursive_directory_iterator(root() / "cache/objects"))
      if (one.is_regular_file() && text_of(one.path()) == text) return one.path();
    return {};
  }

  fs::path dir_;
  v1::StoreProfile profile_;
  Abandoned abandoned_;
  Abandoned* now_abandoned_ = &abandoned_;
  std::function<void(const std::string&)> at_;
  std::vector<std::string> include_;
  std::string began_with_;  // the order's contents_sha256
  std::optional<std::int64_t> step_;
  std::chrono::milliseconds away_most_ = kStoreAwayMost;
  std::uint64_t fetched_ = 0;
};

}  // namespace muster::agent
