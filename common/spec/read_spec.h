// A SpecReader fills a JobSpec from a YAML tree by the key table: types, positions, names. The
// functions that parse a spec create one for each spec, on the stack. One thread at a time.
//
// complete() (parse.h) checks what a value means together with others.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/spec/key_table.h"
#include "common/spec/yaml_tree.h"

namespace muster::spec {

class SpecReader {
 public:
  SpecReader(const ParseOptions& options, v1::JobSpec& spec) : options_(options), spec_(spec) {}

  void read(const Node& root);

  [[nodiscard]] std::vector<Problem>& problems() { return problems_; }
  // Adds a position to a problem that complete() found: that of the key, or of the nearest section
  // around it.
  [[nodiscard]] Problem placed(Problem problem) const;
  // True if this key, or one above it, already has a problem. Another problem would only follow
  // from the first.
  [[nodiscard]] bool spoiled(const std::string& key) const;

  // True if a Special row has a reader of its own; a test checks that every row has one.
  static bool has_reader(std::string_view key);

 private:
  using Special = void (SpecReader::*)(const Node&, const KeyRow&);
  static const std::map<std::string_view, Special>& specials();

  void problem(const Node& at, std::string key, std::string message);
  // Reports a problem of one list element, which is then left out. The numbers of the other
  // elements are those that complete() sees.
  void item_problem(const Node& at, std::string key, std::string message);
  // Accepts one text or a list of texts, and calls `add` for each.
  void one_or_list(const Node& node, const KeyRow& row, const std::string& item_must,
                   const std::function<void(const Node&)>& add);
  void section(const Node& node, const std::string& prefix);
  void unknown(const Node& key, const Node& value, const std::string& section_key);
  // Reads the values of misspelt keys as values of the intended keys, so that problems inside are
  // reported in the same pass.
  void read_meant();
  void row(const Node& node, const KeyRow& row);
  void later(const Node& node, const KeyRow& row);
  void choice(const Node& node, const KeyRow& row);
  void text_map(const Node& node, const KeyRow& row);
  // Returns the text of a scalar. Otherwise reports a problem and returns nothing.
  const std::string* text(const Node& node, const KeyRow& row);
  void not_accepted(const Node& node, const KeyRow& row, std::string_view value);

  // read_code.cc
  void code_patches(const Node& node, const KeyRow& row);
  // read_table.cc
  void rank_table(const Node& node, const KeyRow& row);
  // read_observe.cc
  void profile(const Node& node, const KeyRow& row);
  void profile_step(const Node& node, const KeyRow& row);
  void profile_ranks(const Node& node, const KeyRow& row);
  void dump(const Node& node, const KeyRow& row);
  // read_schedule.cc
  void schedule_after(const Node& node, const KeyRow& row);
  // read_start.cc
  void start(const Node& node);
  void start_from(const Node& node, const KeyRow& row);
  void start_as(const Node& node, const KeyRow& row);
  void start_step(const Node& node, const KeyRow& row);
  void inputs(const Node& node, const KeyRow& row);
  void input(const std::string& name, const Node& node, const std::string& key);
  void no_stages(const Node& node, const KeyRow& row);
  // read_limits.cc
  v1::LimitSpec& limits();
  void nofile(const Node& node, const KeyRow& row);
  void memlock(const Node& node, const KeyRow& row);
  void memory(const Node& node, const KeyRow& row);
  void cpus(const Node& node, const KeyRow& row);
  // read_special.cc
  std::vector<std::string> words(const Node& node, const KeyRow& row, bool map_too);
  void code_from(const Node& node, const KeyRow& row);
  void code_at(const Node& node, const KeyRow& row);
  void setup(const Node& node, const KeyRow& row);
  void setup_run(const Node& node, const KeyRow& row);
  void launch_run(const Node& node, const KeyRow& row);
  void launch_args(const Node& node, const KeyRow& row);
  void launch_config(const Node& node, const KeyRow& row);
  void launch_lockstep(const Node& node, const KeyRow& row);
  void devices(const Node& node, const KeyRow& row);
  void hosts(const Node& node, const KeyRow& row);
  void master_port(const Node& node, const KeyRow& row);
  void checkpoint_dir(const Node& node, const KeyRow& row);
  void checkpoint_storage(const Node& node, const KeyRow& row);
  void resume(const Node& node, const KeyRow& row);
  void resume_args(const Node& node, const KeyRow& row);
  // read_patch.cc
  void config_patch(const Node& node, const KeyRow& row);
  void resume_drop(const Node& node, const KeyRow& row);
  // read_container.cc
  void image(const Node& node, const KeyRow& row);
  void mounts(const Node& node, const KeyRow& row);
  void mount(const Node& node, const std::string& key);
  // read_special.cc
  void plog(const Node& node, const KeyRow& row);
  void progress(const Node& node, const KeyRow& row);
  void progress_part(const Node& node, const KeyRow& row);
  void success(const Node& node, const KeyRow& row);
  void success_part(const Node& node, const KeyRow& row);

  const ParseOptions& options_;
  v1::JobSpec& spec_;
  std::vector<Problem> problems_;
  std::map<std::string, std::pair<std::uint32_t, std::uint32_t>> places_;
  std::set<std::string> spoiled_;
  struct Meant {
    const Node* value = nullptr;
    const KeyRow* row = nullptr;
  };
  std::vector<Meant> meant_;  // read after all correctly spelt keys, which have priority
};

// Puts --set and --env into the tree. Their problems have no position.
void apply_overrides(Node& root, const ParseOptions& options, std::vector<Problem>& problems);

}  // namespace muster::spec
