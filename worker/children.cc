#include "worker/children.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "common/io/file.h"

namespace muster::worker {
namespace {

constexpr std::size_t kEnvironmentMost = 4U << 20U;
constexpr std::size_t kNumberMost = 10;

}  // namespace

std::vector<pid_t> children() {
  const auto own = std::to_string(::getpid());
  const auto text = io::read_file("/proc/" + own + "/task/" + own + "/children", 16U << 20U);
  std::vector<pid_t> found;
  if (!text) return found;
  for (const char *at = text->data(), *end = at + text->size(); at < end;) {
    pid_t pid = 0;
    const auto parsed = std::from_chars(at, end, pid);
    at = parsed.ptr + 1;
    if (pid > 0) found.push_back(pid);
  }
  return found;
}

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

std::string rank_of_process(pid_t pid) {
  const auto environment = io::read_file("/proc/" + std::to_string(pid) + "/environ", kEnvironmentMost);
  if (!environment) return {};
  for (const std::string_view name : {"RANK_ID=", "RANK="}) {
    std::size_t at = environment->starts_with(name) ? 0 : environment->find(std::string(1, '\0') + std::string(name));
    if (at == std::string::npos) continue;
    at += name.size() + (at == 0 && environment->starts_with(name) ? 0 : 1);
    const std::string number = environment->substr(at, std::min(environment->find('\0', at), at + kNumberMost) - at);
    if (!number.empty() && number.find_first_not_of("0123456789") == std::string::npos) return "rank " + number;
  }
  return {};
}

}  // namespace muster::worker
