#include "deploy/ssh/known_hosts.h"

#include <algorithm>
#include <array>

#include "common/base/controls.h"
#include "common/base/utf8.h"
#include "deploy/ssh/host_key.h"
#include "deploy/ssh/host_names.h"

namespace muster::ssh {
namespace {

constexpr std::size_t kRecordedNameMost = 255;
constexpr std::string_view kBlanks = " \t\r";

std::string_view take_word(std::string_view& line) {
  const std::size_t from = std::min(line.find_first_not_of(kBlanks), line.size());
  const std::size_t to = std::min(line.find_first_of(kBlanks, from), line.size());
  const std::string_view word = line.substr(from, to - from);
  line.remove_prefix(to);
  return word;
}

}  // namespace

std::string_view to_string(KeyState state) {
  switch (state) {
    case KeyState::Known: return "known";
    case KeyState::Unknown: return "unknown";
    case KeyState::Changed: return "changed";
    case KeyState::Revoked: return "revoked";
  }
  return "";
}

void KnownHosts::add(const std::string& file, std::string_view text) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    add_line(file, number, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void KnownHosts::add_line(const std::string& file, std::size_t number, std::string_view line) {
  std::string_view rest = line;
  std::string_view names = take_word(rest);
  if (names.empty() || names.starts_with('#')) return;
  if (line.size() > kLineBytesMost) return problem(file, number, "the line has more than 64 KiB");
  bool revoked = false;
  if (names.starts_with('@')) {
    if (names == "@cert-authority")
      return problem(file, number, "certificates of hosts are not used");
    if (names != "@revoked") return problem(file, number, "the marker is unknown");
    revoked = true;
    names = take_word(rest);
  }
  const std::string_view type = take_word(rest), key = take_word(rest);
  if (key.empty()) return problem(file, number, "the line has no key");
  if (!sound_names(names)) return problem(file, number, "the hashed name cannot be read");
  auto blob = from_base64(key);
  if (!blob || blob->size() > kKeyBytesMost || key_type(*blob).empty())
    return problem(file, number, "the key cannot be read");
  if (key_type(*blob) != type) return problem(file, number, "the key is not of the type named");
  lines_.push_back({.place = {.file = file, .line = number},
                    .names = std::string(names),
                    .blob = std::move(*blob),
                    .revoked = revoked});
}

void KnownHosts::problem(const std::string& file, std::size_t number, std::string_view why) {
  if (problems_.size() >= kProblemsMost) {
    ++more_problems_;
    return;
  }
  const std::string place = KnownPlace{.file = file, .line = number}.text();
  problems_.push_back(without_controls(place) + ": " + std::string(why) + "; it is skipped");
}

std::vector<std::string> KnownHosts::problems() const {
  auto all = problems_;
  if (more_problems_ > 0) all.push_back(std::to_string(more_problems_) + " more lines are skipped");
  return all;
}

KeyAnswer KnownHosts::check(std::string_view name, std::uint16_t port,
                            std::string_view blob) const {
  const std::string entry = host_entry(name, port), plain = host_entry(name, kSshPort);
  KeyAnswer found;
  const Line* other = nullptr;
  for (const Line& line : lines_) {
    const bool same = line.blob == blob;
    if (!matches_names(line.names, entry)) {
      // The key of the name without its port. A revoked key is revoked for all ports.
      if (!same || entry == plain || !matches_names(line.names, plain)) continue;
    }
    if (line.revoked) {
      if (same) return {.state = KeyState::Revoked, .at = line.place, .recorded_type = {}};
    } else if (same) {
      if (found.state != KeyState::Known)
        found = {.state = KeyState::Known, .at = line.place, .recorded_type = {}};
    } else if (other == nullptr ||
               (key_type(other->blob) != key_type(blob) && key_type(line.blob) == key_type(blob))) {
      other = &line;
    }
  }
  if (found.state == KeyState::Unknown && other != nullptr)
    return {.state = KeyState::Changed, .at = other->place, .recorded_type = key_type(other->blob)};
  return found;
}

std::vector<std::string> KnownHosts::types(std::string_view name, std::uint16_t port) const {
  std::vector<std::string> found;
  const auto collect = [&](const std::string& entry) {
    for (const Line& line : lines_) {
      const std::string type = key_type(line.blob);
      if (!line.revoked && std::ranges::find(found, type) == found.end() &&
          matches_names(line.names, entry))
        found.push_back(type);
    }
  };
  collect(host_entry(name, port));
  if (found.empty() && port != kSshPort) collect(host_entry(name, kSshPort));
  return found;
}

Result<std::string> known_hosts_line(std::string_view name, std::uint16_t port,
                                     std::string_view blob, std::string_view salt) {
  const auto fits = [](char c) {
    return static_cast<unsigned char>(c) > ' ' && c != 0x7f &&
           std::string_view(",*?!|#@").find(c) == std::string_view::npos;
  };
  if (name.empty() || name.size() > kRecordedNameMost || !is_utf8(name) || has_controls(name) ||
      !std::ranges::all_of(name, fits))
    return fail(ErrorCode::InvalidArgument,
                "recording the key of host '" +
                    (is_utf8(name) ? without_controls(name) : std::string("?")) +
                    "': the name cannot stand in known_hosts");
  std::string entry = host_entry(name, port);
  if (!salt.empty()) entry = hashed_entry(entry, salt);
  if (entry.empty() || key_type(blob).empty())
    return fail(ErrorCode::InvalidArgument,
                "recording the key of host '" + std::string(name) + "': it is no key");
  return entry + " " + key_type(blob) + " " + to_base64(blob) + "\n";
}

}  // namespace muster::ssh
