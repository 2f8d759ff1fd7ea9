// Reads resources.rank_table of a YAML spec: a file whose bytes travel with the spec.
#include <fmt/format.h>

#include <filesystem>

#include "common/spec/complete_table.h"
#include "common/spec/read_spec.h"
#include "common/spec/values.h"

namespace muster::spec {

void SpecReader::rank_table(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Null) return;
  const std::string* value = text(node, row);
  if (value == nullptr) return;
  const std::string key(row.key);
  if (value->empty()) return problem(node, key, fmt::format("is empty ({})", row.accepted));
  if (!options_.read_file)
    return problem(node, key, fmt::format("'{}': no file can be read here", shown(*value)));
  const std::string path =
      (std::filesystem::path(options_.base_dir) / *value).lexically_normal().string();
  auto content = options_.read_file(path, kRankTableBytesMax);
  if (!content)
    return problem(node, key, fmt::format("'{}': {}", shown(*value), content.error().message));
  v1::RankTableFile& file = *spec_.mutable_resources()->mutable_rank_table();
  file.set_name(*value);
  file.set_content(*std::move(content));
}

}  // namespace muster::spec
