#include "worker/shim/find_program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace muster::shim {

std::string find_program(std::string_view name, std::string_view path) {
  struct stat own{};
  const bool own_known = ::stat("/proc/self/exe", &own) == 0;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string candidate =
        (end == begin ? std::string(".") : std::string(path.substr(begin, end - begin))) + "/" +
        std::string(name);
    struct stat info{};
    const bool there = ::stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
                       ::access(candidate.c_str(), X_OK) == 0;
    if (there && !(own_known && info.st_dev == own.st_dev && info.st_ino == own.st_ino))
      return candidate;
    begin = end + 1;
  }
  return {};
}

std::string find_python(std::string_view python_exec, std::string_view path) {
  if (!python_exec.empty()) return std::string(python_exec);
  for (const char* name : {"python3", "python"}) {
    if (std::string found = find_program(name, path); !found.empty()) return found;
  }
  return "/usr/bin/python3";
}

}  // namespace muster::shim
