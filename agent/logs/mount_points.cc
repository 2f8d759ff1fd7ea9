#include "agent/logs/mount_points.h"

#include <charconv>
#include <filesystem>

#include "common/io/file.h"

namespace muster::agent {
namespace {

constexpr std::size_t kMountinfoMost = 16U << 20U;

std::string_view next(std::string_view& rest, char end) {
  const std::size_t at = rest.find(end);
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return part;
}

// The kernel writes space, tab, new line and backslash as three octal digits: "\040".
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned byte = 0;
    const char* const digits = text.data() + at + 1;
    if (text[at] == '\\' && text.size() - at > 3 &&
        std::from_chars(digits, digits + 3, byte, 8).ptr == digits + 3) {
      plain += static_cast<char>(byte);
      at += 3;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

bool is_above(std::string_view mount_point, std::string_view path) {
  if (mount_point == "/") return path.starts_with('/');
  return path.starts_with(mount_point) &&
         (path.size() == mount_point.size() || path[mount_point.size()] == '/');
}

// "254:3". 0: not of this form.
std::uint64_t number_of(std::string_view device) {
  std::uint32_t major = 0, minor = 0;
  const char* const end = device.data() + device.size();
  const char* const colon = std::from_chars(device.data(), end, major).ptr;
  if (colon == end || *colon != ':' || std::from_chars(colon + 1, end, minor).ptr != end) return 0;
  return std::uint64_t{major} << 32U | minor;
}

}  // namespace

std::uint64_t mount_in(std::string_view mountinfo, std::string_view path) {
  std::uint64_t found = 0;
  std::size_t longest = 0;
  while (!mountinfo.empty()) {
    // id, parent, major:minor, root, mount point, and more
    std::string_view line = next(mountinfo, '\n');
    (void)next(line, ' ');
    (void)next(line, ' ');
    const std::string_view device = next(line, ' ');
    (void)next(line, ' ');
    const std::string mount_point = unescaped(next(line, ' '));
    // Of several mounts at one point the last one covers the others.
    if (mount_point.empty() || mount_point.size() < longest || !is_above(mount_point, path))
      continue;
    longest = mount_point.size();
    found = number_of(device);
  }
  return found;
}

std::uint64_t mount_of(const std::string& path) {
  const auto mountinfo = io::read_file("/proc/self/mountinfo", kMountinfoMost);
  if (!mountinfo) return 0;
  return mount_in(*mountinfo, std::filesystem::path(path).lexically_normal().string());
}

}  // namespace muster::agent
