// A job spec in preparation, and the writer of its YAML. Plain values and pure functions.
//
// A draft contains what was read from a launcher's command line, or from a script's launch. Its
// texts are as in a spec: "${save.dir}" is a template. A text without templates must go through
// literal().
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::launcher {

struct Draft {
  std::string name, engine;
  std::string code;                        // absolute directory
  std::string python;                      // empty: the node's own
  std::map<std::string, std::string> env;  // runtime.env
  bool per_node = false;
  std::vector<std::string> run;  // the whole command; otherwise script and args
  std::string script;
  std::vector<std::string> args;
  std::string config, mode, launcher, cwd;  // empty: not given
  std::uint32_t nodes = 1, devices = 1;
  std::vector<std::uint32_t> device_ids;  // used instead of a number
  std::string rank_table;                 // path of a file
  // Comments above a key ("launch.script"; "": the head of the file). The comments of a map's key
  // are above the map.
  std::map<std::string, std::vector<std::string>, std::less<>> remarks;
};

// YAML of docs/job-spec.md. Every text of the draft remains a value or a comment.
std::string to_yaml(const Draft& draft);

// The text as a value of a spec: a '$' is a plain dollar and begins no template.
std::string literal(std::string_view text);
std::vector<std::string> literal(const std::vector<std::string>& words);

// A job's name from the last part of a path without its ending: "run_GPT 7b.sh" gives "run_gpt-7b".
std::string job_name(std::string_view path);

}  // namespace muster::launcher
