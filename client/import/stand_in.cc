#include "client/import/stand_in.h"

#include <fmt/format.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "client/import/captured.h"
#include "common/compat/launcher/launch.h"
#include "common/io/file.h"
#include "common/process/spawn.h"
#include "common/process/tool.h"

namespace muster::import {
namespace {

namespace fs = std::filesystem;

constexpr int kCannotExecute = 126, kNotFound = 127;

// If there is no '/', npos + 1 is 0.
std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_python(std::string_view name) {
  return name.starts_with("python") &&
         name.find_first_not_of("0123456789.", 6) == std::string_view::npos;
}

// Finds the directory by the variable. If the script has emptied the environment (env -i PATH=...
// torchrun), it uses the path by which this program was executed. Returns an empty path if neither
// works.
fs::path import_directory() {
  if (const char* named = std::getenv(kDirectoryVariable); named != nullptr && *named == '/')
    return named;
  const auto* executed = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  if (executed == nullptr || *executed != '/') return {};
  const fs::path folder = fs::path(executed).parent_path();
  std::error_code error;
  return folder == programs_dir(folder.parent_path()) &&
                 fs::is_directory(calls_dir(folder.parent_path()), error) &&
                 fs::is_regular_file(environment_file(folder.parent_path()), error)
             ? folder.parent_path()
             : fs::path();
}

// Returns PATH without our own directory, in any spelling ("bin/", or by a link). Otherwise this
// program would execute itself again and again.
std::string path_of_others(std::string_view path, const fs::path& own) {
  std::string others;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find(':'), path.size());
    const fs::path folder(path.substr(0, end));
    std::error_code error;
    if (folder != own && !fs::equivalent(folder, own, error))
      others += (others.empty() ? "" : ":") + std::string(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return others;
}

// Executes the program by its whole path, because a python finds its own prefix, and that of a
// venv, by its path.
int become(std::string_view name, const fs::path& directory, const Variables& env, char** argv) {
  std::optional<std::string> program =
      process::find_program(name, path_of_others(value_of(env, "PATH"), programs_dir(directory)));
  if (!program) {
    fmt::print(stderr, "{}: command not found\n", name);
    return kNotFound;
  }
  argv[0] = program->data();
  ::execv(program->c_str(), argv);
  const int error = errno;
  fmt::print(stderr, "{}: {}\n", *program, std::strerror(error));
  return error == ENOENT ? kNotFound : kCannotExecute;
}

Variables before(const fs::path& directory) {
  const auto bytes = io::read_file(environment_file(directory), kRecordMost);
  std::vector<std::string> texts;
  for (std::string_view rest = bytes ? std::string_view(*bytes) : std::string_view();
       !rest.empty();) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    texts.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return variables_of(texts);
}

int record(const fs::path& directory, const Captured& call) {
  const std::string bytes = to_bytes(call);
  for (std::size_t number = 0; number < kCallsMost; ++number) {
    const auto made =
        io::create_file(calls_dir(directory) / std::to_string(number), bytes, io::Durable::No);
    if (made && !*made) continue;  // another call has this number
    if (made) return 0;
    fmt::print(stderr, "muster import: {}\n", made.error().message);
    return 1;
  }
  fmt::print(
      stderr,
      "muster import: the script has called launchers {} times; this one is not written down\n",
      kCallsMost);
  return 1;
}

}  // namespace

bool is_stand_in(std::string_view program) {
  const std::string_view name = base_name(program);
  return (name == "torchrun" || name == "msrun" || is_python(name)) && !import_directory().empty();
}

int run_stand_in(int argc, char** argv) {
  const fs::path directory = import_directory();
  const std::string name(base_name(argv[0]));
  Captured call{.directory = {}, .words = {name}, .env = variables_of(process::own_environment())};
  call.words.insert(call.words.end(), argv + 1, argv + argc);
  std::error_code error;
  call.directory = fs::current_path(error).string();
  const bool launches = launcher::is_launch(call.words);
  if (!launches && !is_rank(call.env, before(directory)))
    return become(name, directory, call.env, argv);
  return record(directory, call);
}

}  // namespace muster::import
