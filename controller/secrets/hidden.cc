#include "controller/secrets/hidden.h"

#include <openssl/evp.h>

#include <algorithm>

namespace muster::controller {
namespace {

constexpr std::string_view kLeftOut =
    "[a line that is not shown: a secret of the job has had other values]";

std::string base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size = ::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  while (text.ends_with('=')) text.pop_back();  // many programs leave it out
  return text;
}

std::string mark(const std::string& name) { return "[secret " + name + "]"; }

// The length of the longest proper end of `needle` that `line` begins with; 0: none.
std::size_t suffix_at_begin(std::string_view needle, std::string_view line) {
  for (std::size_t part = std::min(needle.size() - 1, line.size()); part >= Hidden::kLeastPart;
       --part)
    if (line.starts_with(needle.substr(needle.size() - part))) return part;
  return 0;
}

std::size_t prefix_at_end(std::string_view needle, std::string_view line) {
  for (std::size_t part = std::min(needle.size() - 1, line.size()); part >= Hidden::kLeastPart;
       --part)
    if (line.ends_with(needle.substr(0, part))) return part;
  return 0;
}

void replace(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

std::string for_urls(std::string text) {
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

}  // namespace

void Hidden::add_needle(const std::string& name, std::string_view bytes) {
  if (bytes.size() < kLeastBytes) return;
  const auto longer = [](const Needle& one, const Needle& other) {
    return one.bytes.size() != other.bytes.size() ? one.bytes.size() > other.bytes.size()
                                                  : one.bytes < other.bytes;
  };
  Needle needle{.bytes = std::string(bytes), .name = name};
  const auto at = std::ranges::lower_bound(needles_, needle, longer);
  if (at != needles_.end() && at->bytes == needle.bytes) return;
  needles_.insert(at, std::move(needle));
}

void Hidden::add(const std::string& name, std::string_view value) {
  add_needle(name, value);
  if (value.size() < kLeastBytes) return;
  const std::string encoded = base64(value);
  add_needle(name, encoded);
  add_needle(name, for_urls(encoded));
  if (!value.contains('\n')) return;
  std::size_t lines = 0;
  for (std::size_t at = 0; at < value.size() && lines < kLinesMost;) {
    const std::size_t end = std::min(value.find('\n', at), value.size());
    std::string_view line = value.substr(at, end - at);
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    while (line.starts_with(' ')) line.remove_prefix(1);
    if (line.size() >= kLeastPart) {
      add_needle(name, line);
      ++lines;
    }
    at = end + 1;
  }
}

std::string Hidden::hide(std::string_view line) const {
  if (line.empty()) return {};
  if (all_) return std::string(kLeftOut);
  // What the line begins with, and what it ends with, may be a part.
  std::string head, tail;
  for (const Needle& needle : needles_) {
    if (head.empty()) {
      if (const std::size_t part = suffix_at_begin(needle.bytes, line); part > 0) {
        head = mark(needle.name);
        line.remove_prefix(part);
      }
    }
    if (tail.empty()) {
      if (const std::size_t part = prefix_at_end(needle.bytes, line); part > 0) {
        tail = mark(needle.name);
        line.remove_suffix(part);
      }
    }
  }
  std::string shown(line);
  for (const Needle& needle : needles_) replace(shown, needle.bytes, mark(needle.name));
  return head + shown + tail;
}

}  // namespace muster::controller
