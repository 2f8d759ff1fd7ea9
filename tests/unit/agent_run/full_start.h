// FullStart is an order that has every step of a start (agent/start/start_step.h), and what a node
// needs for it: a script instead of podman, the code, a store, a fetch. A test owns it; everything
// lies in the test's directory. Its ranks end with status 0.
#pragma once

#include <sys/stat.h>

#include <map>
#include <utility>

#include "tests/unit/agent_run/support.h"

namespace muster::agent {

class FullStart {
 public:
  explicit FullStart(std::filesystem::path dir) : dir_(std::move(dir)) {
    write("podman", kTool);
    ::chmod(at("podman").c_str(), 0755);
    write("code/train.py", "print('x')\n");
    write("code/lib/util.py", "X = 1\n");
    write("store/wiki/a.txt", "text\n");
  }
  [[nodiscard]] std::string at(const std::string& name) const { return (dir_ / name).string(); }
  [[nodiscard]] v1::NodeLaunch order(AttemptNo attempt = kRun.second) const {
    v1::NodeLaunch order = shell_launch(dir_, "true");
    order.set_attempt(attempt.value);
    order.set_job_name("full");
    for (const char* made : {"out", "out/code", "out/saves"}) order.add_make_dirs(at(made));
    order.mutable_scan_first()->set_dir(at("out/saves"));
    order.mutable_code()->set_source(at("code"));
    order.mutable_code()->set_path(at("out/code/node-0/code"));
    order.mutable_code()->set_sha256("s1");
    v1::LaunchFile& table = *order.add_files();
    table.set_path(at("out/table.json"));
    table.set_content("table\n");
    table.set_sha256("7ed9ac3831f7d8525696b390cde2ece4c1df132a433268072a47b4d42a6e8931");
    order.add_fetches()->set_node("n2");
    order.mutable_fetches(0)->set_path(at("out/fetched"));
    order.mutable_resume()->set_dir(at("out/resume"));
    order.mutable_resume()->set_layout("none");
    order.mutable_container()->set_image("img:1");
    v1::StagedInput& input = *order.add_staged();
    input.set_name("data");
    input.set_url("dir://store/wiki");
    input.set_root(at("inputs"));
    input.set_path(at("inputs/jobs/" + order.job_id() + "/data/wiki"));
    input.mutable_profile()->set_url("dir://store");
    input.mutable_profile()->set_endpoint(at("store"));
    order.add_secrets()->set_variable("TOKEN");
    order.mutable_secrets(0)->set_secret("hf");
    return order;
  }
  void prepare(HostOptions& options) const {
    options.container.tool = at("podman");
    options.fetch = [](const v1::NodeLaunch& wanted, int number, const UserEntry*) -> Result<void> {
      const std::filesystem::path dir = wanted.fetches(number).path();
      std::filesystem::create_directories(dir);
      std::ofstream(dir / "shard") << "bytes\n";
      return {};
    };
    options.fetch_secrets = [](const v1::NodeLaunch&) -> Result<SecretsByName> {
      return SecretsByName{{"hf", "value"}};
    };
  }
  // What lies below `out`: path -> content, or what it is instead.
  [[nodiscard]] std::map<std::string, std::string> made() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(at("out"))) {
      const std::string name = std::filesystem::relative(entry.path(), at("out")).string();
      files[name] = entry.is_directory() ? "(directory)" : read_text(entry.path());
    }
    return files;
  }

 private:
  static constexpr const char* kTool = R"sh(#!/bin/sh
verb=$1
shift
case $verb in
  image) printf 'sha256:01\n[]\n' ;;
  run) while test "$1" != --entrypoint; do test "$1" = --env && export "$2"; shift; done
       worker=$2
       shift 3
       exec "$worker" "$@" ;;
esac
)sh";
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((dir_ / name).parent_path());
    std::ofstream(dir_ / name) << text;
  }

  const std::filesystem::path dir_;
};

}  // namespace muster::agent
