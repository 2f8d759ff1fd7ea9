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

#include "common/spec/keys/key_table.h"
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

  // --- for the types (key_type.h) ----------------------------------------------------------------
  [[nodiscard]] v1::JobSpec& spec() { return spec_; }
  void problem(const Node& at, std::string key, std::string message);
  // Reports a problem of one list element, which is then left out. The numbers of the other
  // elements are those that complete() sees.
  void item_problem(const Node& at, std::string key, std::string message);
  void not_accepted(const Node& node, const KeyRow& row, std::string_view value);
  void spoil(const std::string& key) { spoiled_.insert(key); }
  // Sets the position of a key, of a map's entry or of a list's element.
  void place(const std::string& key, const Node& at) { places_[key] = {at.line, at.column}; }
  // Returns the text of a scalar. Otherwise reports a problem and returns nothing.
  const std::string* text(const Node& node, const KeyRow& row);
  // Accepts one text or a list of texts, and calls `add` for each.
  void one_or_list(const Node& node, const KeyRow& row, const std::string& item_must,
                   const std::function<void(const Node&)>& add);
  void section(const Node& node, const std::string& prefix);
  // Returns the absolute path of one that is relative to the spec.
  [[nodiscard]] std::string below_base(const std::string& path) const;
  // Returns the content of a file that the spec names, at most `most` bytes.
  [[nodiscard]] Result<std::string> file(const std::string& path, std::size_t most) const;

 private:
  void unknown(const Node& key, const Node& value, const std::string& section_key);
  // Reads the values of misspelt keys as values of the intended keys, so that problems inside are
  // reported in the same pass.
  void read_meant();
  void row(const Node& node, const KeyRow& row);

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
