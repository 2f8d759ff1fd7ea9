#include "deploy/rollout/bundle.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace muster::rollout {
namespace {

constexpr std::size_t kBlock = 512;

struct CloseGz {
  void operator()(gzFile file) const { ::gzclose_r(file); }
};
using GzFile = std::unique_ptr<std::remove_pointer_t<gzFile>, CloseGz>;

// A number of a header: octal digits, with blanks or a NUL at its end.
std::optional<std::uint64_t> octal(std::string_view field) {
  std::uint64_t value = 0;
  bool any = false;
  for (const char c : field) {
    if (c == ' ' && !any) continue;
    if (c == ' ' || c == '\0') break;
    if (c < '0' || c > '7' || value >> 60U != 0) return std::nullopt;
    value = value * 8 + static_cast<std::uint64_t>(c - '0');
    any = true;
  }
  return value;
}

std::string_view text_field(std::string_view header, std::size_t at, std::size_t size) {
  const std::string_view field = header.substr(at, size);
  return field.substr(0, field.find('\0'));
}

bool sum_is_right(std::string_view header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i)
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
  const auto stated = octal(header.substr(148, 8));
  return stated && *stated == sum;
}

}  // namespace

Result<void> read_bundle(
    const std::filesystem::path& file,
    const std::function<Result<void>(std::string_view name, std::string bytes)>& take) {
  const std::string doing = fmt::format("reading the release '{}'", file.string());
  const auto broken = [&](std::string_view why) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("{}: {}; it must be a muster-VERSION-ARCH.tar.gz", doing, why));
  };
  const GzFile stream(::gzopen(file.c_str(), "rb"));
  if (!stream) return fail_errno(doing, errno);
  std::uint64_t total = 0;
  const auto read = [&](char* into, std::size_t size) {
    total += size;
    return total <= kArchiveBytesMost &&
           ::gzread(stream.get(), into, static_cast<unsigned>(size)) == static_cast<int>(size);
  };
  std::string header(kBlock, '\0');
  while (read(header.data(), kBlock)) {
    if (std::ranges::all_of(header, [](char c) { return c == '\0'; })) return {};
    const auto size = octal(std::string_view(header).substr(124, 12));
    if (!sum_is_right(header) || !size || *size > kArchiveBytesMost - total)
      return broken("a header in it is damaged");
    std::string bytes(*size, '\0');
    constexpr std::size_t kPiece = 1 << 20;
    for (std::size_t at = 0; at < bytes.size(); at += kPiece)
      if (!read(bytes.data() + at, std::min(kPiece, bytes.size() - at)))
        return broken("it ends in the middle of a file");
    if (const std::size_t rest = *size % kBlock; rest != 0) {
      std::string padding(kBlock - rest, '\0');
      if (!read(padding.data(), padding.size())) return broken("it ends in the middle of a file");
    }
    const char type = header[156];
    if (type != '0' && type != '\0') continue;
    const std::string_view before = text_field(header, 345, 155);
    std::string name(before);
    if (!name.empty()) name += '/';
    name += text_field(header, 0, 100);
    if (auto taken = take(name, std::move(bytes)); !taken) return taken;
  }
  return broken("it has no end");
}

}  // namespace muster::rollout
