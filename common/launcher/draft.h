// A job spec to be: what was read of a launcher's command line, or of what a script launched, and
// how it is written down. Pure.
//
// Texts are as a spec has them: "${save.dir}" is a template. What is to be taken as it stands goes
// through literal().
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
  std::string python;                      // empty: as the node has it
  std::map<std::string, std::string> env;  // runtime.env
  bool per_node = false;
  std::vector<std::string> run;  // the whole command; else script and args
  std::string script;
  std::vector<std::string> args;
  std::string config, mode, launcher, cwd;  // empty: not said
  std::uint32_t nodes = 1, devices = 1;
  std::vector<std::uint32_t> device_ids;  // in place of a number
  std::string rank_table;                 // a file
  // Comments above a key ("launch.script"; "": the head of the file). A map's key has them above
  // the map.
  std::map<std::string, std::vector<std::string>, std::less<>> remarks;
};

// YAML of docs/job-spec.md. Whatever is in the draft's texts, it stays a value or a comment.
std::string to_yaml(const Draft& draft);

// As a value of a spec: a '$' is a dollar and begins no template.
std::string literal(std::string_view text);
std::vector<std::string> literal(const std::vector<std::string>& words);

// A job's name out of a path's last part without its ending: "run_GPT 7b.sh" gives "run_gpt-7b".
std::string job_name(std::string_view path);

}  // namespace muster::launcher
