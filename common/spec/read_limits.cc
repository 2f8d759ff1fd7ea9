// Reads runtime.limits.
#include <fmt/format.h>

#include <limits>

#include "common/spec/complete_limits.h"
#include "common/spec/read_spec.h"
#include "common/spec/values.h"

namespace muster::spec {

// Limits that the file does not name keep their defaults; null sets 0.
v1::LimitSpec& SpecReader::limits() {
  const bool first = !spec_.runtime().has_limits();
  v1::LimitSpec& limits = *spec_.mutable_runtime()->mutable_limits();
  if (first) set_default_limits(limits);
  return limits;
}

void SpecReader::nofile(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Null) return limits().set_nofile(0);
  const std::string* value = text(node, row);
  if (value == nullptr) return;
  if (auto number = parse_number(*value, 1, kNofileMax))
    limits().set_nofile(*number);
  else
    problem(node, std::string(row.key), number.error().message);
}

void SpecReader::memlock(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Null) return limits().set_memlock(0);
  const std::string* value = text(node, row);
  if (value == nullptr) return;
  if (*value == "unlimited") return limits().set_memlock(std::numeric_limits<std::uint64_t>::max());
  auto size = parse_size(*value);
  if (size && *size > 0)
    limits().set_memlock(*size);
  else
    problem(node, std::string(row.key),
            size ? "must be more than 0 (a size | unlimited | null)" : size.error().message);
}

void SpecReader::memory(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Null) return limits().set_memory(0);
  const std::string* value = text(node, row);
  if (value == nullptr) return;
  auto size = parse_size(*value);
  if (size && *size > 0)
    limits().set_memory(*size);
  else
    problem(node, std::string(row.key),
            size ? fmt::format("must be more than 0 ({})", row.accepted) : size.error().message);
}

void SpecReader::cpus(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Null) return limits().set_millicpus(0);
  const std::string* value = text(node, row);
  if (value == nullptr) return;
  if (const auto thousandths = parse_thousandths(*value);
      thousandths && *thousandths > 0 && *thousandths <= kMillicpusMax)
    limits().set_millicpus(static_cast<std::uint32_t>(*thousandths));
  else
    problem(node, std::string(row.key),
            fmt::format("'{}' is not a number of processors ({})", shown(*value), row.accepted));
}

}  // namespace muster::spec
