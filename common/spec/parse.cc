#include "common/spec/parse.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>

#include "common/base/controls.h"
#include "common/spec/keys/values.h"
#include "common/spec/read_spec.h"
#include "common/spec/stages.h"

namespace muster::spec {
namespace {

Parsed finished(Parsed result) {
  std::ranges::stable_sort(result.problems, {}, [](const Problem& problem) {
    return std::pair(problem.line, problem.column);
  });
  if (result.problems.size() > kProblemsMax) result.problems.resize(kProblemsMax);
  for (Problem& problem : result.problems) problem.message = readable(problem.message);
  return result;
}

}  // namespace

Parsed parse_yaml(std::string_view text, const ParseOptions& options) {
  Parsed result;
  Tree tree = read_tree(text, true);
  result.problems = std::move(tree.problems);
  // A syntax error makes everything after it a guess.
  if (tree.root.kind == Node::Kind::Null && !result.problems.empty())
    return finished(std::move(result));
  apply_overrides(tree.root, options, result.problems);
  if (has_stages(tree.root)) {
    read_stages(std::move(tree.root), options, result);
    return finished(std::move(result));
  }

  SpecReader reader(options, result.spec);
  reader.read(tree.root);
  if (tree.root.kind == Node::Kind::Map) {
    // This is the default of code.from.
    if (result.spec.code().at().empty()) result.spec.mutable_code()->set_at(options.base_dir);
    for (Problem& problem : complete(result.spec))
      if (!reader.spoiled(problem.key))
        result.problems.push_back(reader.placed(std::move(problem)));
  }
  std::ranges::move(reader.problems(), std::back_inserter(result.problems));
  return finished(std::move(result));
}

std::string format(std::span<const Problem> problems, std::string_view file) {
  std::string text;
  for (const Problem& problem : problems) {
    if (problem.line > 0) text += fmt::format("{}:{}:{}: ", file, problem.line, problem.column);
    // The key of the user's own mapping may have any characters.
    if (!problem.key.empty()) text += fmt::format("{}: ", without_controls(problem.key));
    text += problem.message;
    text += '\n';
  }
  return text;
}

std::string spec_bytes(const v1::JobSpec& spec) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // maps in key order
    spec.SerializeToCodedStream(&coded);
  }
  return bytes;
}

std::string spec_hash(const v1::JobSpec& spec) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : spec_bytes(spec))
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

}  // namespace muster::spec
