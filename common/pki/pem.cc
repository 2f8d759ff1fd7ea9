#include "common/pki/pem.h"

#include <optional>
#include <string>

#include "common/pki/printable.h"

namespace muster::pki {
namespace {

// "CERTIFICATE" for the line "-----BEGIN CERTIFICATE-----" where `begin` is "-----BEGIN ".
std::optional<std::string_view> label_behind(std::string_view begin, std::string_view line) {
  constexpr std::string_view kDashes = "-----";
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  if (!line.starts_with(begin) || !line.ends_with(kDashes) ||
      line.size() < begin.size() + kDashes.size())
    return std::nullopt;
  return line.substr(begin.size(), line.size() - begin.size() - kDashes.size());
}

}  // namespace

Result<std::vector<PemBlock>> pem_blocks(std::string_view text) {
  std::vector<PemBlock> blocks;
  std::optional<PemBlock> open;
  const auto no_end = [&] {
    return fail(ErrorCode::InvalidArgument,
                "the PEM block '" + printable(open->label) + "' has no end");
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t line_end = text.find('\n', at);
    const std::size_t next = line_end == std::string_view::npos ? text.size() : line_end + 1;
    const std::string_view line = text.substr(at, next - at - (line_end != text.npos ? 1 : 0));
    if (const auto begins = label_behind("-----BEGIN ", line)) {
      if (open) return no_end();
      open = PemBlock{.label = *begins, .text = text.substr(at)};
    } else if (const auto ends = label_behind("-----END ", line); ends && open) {
      if (*ends != open->label) return no_end();
      open->text = open->text.substr(0, next - (text.size() - open->text.size()));
      blocks.push_back(*open);
      open.reset();
    }
    at = next;
  }
  if (open) return no_end();
  return blocks;
}

bool is_private_key(const PemBlock& block) { return block.label.ends_with("PRIVATE KEY"); }

}  // namespace muster::pki
