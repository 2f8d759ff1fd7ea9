// Files of `muster ranktable`: input may be hostile, and output is never half-written.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "client/commands/ranktable/ranktable.h"
#include "common/engine/ranktable/words.h"
#include "common/io/file.h"
#include "common/io/unique_fd.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;

Error write_error(const fs::path& path, int error) {
  const std::string folder = path.parent_path().string();
  if (error == ENOENT)
    return {ErrorCode::InvalidArgument,
            fmt::format("writing the rank table '{}': there is no directory '{}'; make it first",
                        path.string(), folder)};
  if (error == EISDIR)
    return {ErrorCode::InvalidArgument,
            fmt::format("writing the rank table '{}': it is a directory", path.string())};
  return {ErrorCode::Io, fmt::format("writing the rank table '{}': {}", path.string(),
                                     fail_errno("", error).error().message.substr(2))};
}

// Writes a temporary file in the same directory, then renames it, because HCCL does not read again
// after half a file. The mode is 0644 whatever the umask is, because ranks may run as other users.
Result<void> publish(const fs::path& path, std::string_view bytes) {
  const fs::path temporary =
      path.parent_path() / fmt::format(".{}.{}", path.filename().string(), ::getpid());
  ::unlink(temporary.c_str());
  io::UniqueFd fd(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail(write_error(path, errno));
  std::size_t written = 0;
  int error = io::write_all(fd.get(), bytes, written);
  if (error == 0 && (::fchmod(fd.get(), 0644) != 0 || ::fsync(fd.get()) != 0)) error = errno;
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    return fail(write_error(path, error));
  }
  return {};
}

}  // namespace

Result<std::string> read_input(const std::string& path, std::string_view what, std::size_t most) {
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("reading the {} '{}': {}", what, path, why));
  };
  std::error_code ignored;
  if (path != "-" && fs::is_directory(path, ignored))
    return wrong("it is a directory; name the file in it");
  auto text = io::read_file(path == "-" ? "/dev/stdin" : path, most);
  if (text) return std::move(*text);
  if (text.error().code == ErrorCode::NotFound) return wrong("there is no such file");
  if (text.error().code == ErrorCode::ResourceExhausted)
    return wrong(fmt::format("it is longer than {} MiB", most >> 20));
  const std::size_t cause = text.error().message.rfind(": ");
  return wrong(cause == std::string::npos ? text.error().message
                                          : text.error().message.substr(cause + 2));
}

void add_table_output(CLI::App& command, std::string& into) {
  command
      .add_option("-o,--output", into,
                  "DIR, FILE.json, or - for standard output (default: a file in the current "
                  "directory, named as the vendor's tool names it)")
      ->type_name("PATH");
}

int put_table(const Context& context, const std::string& output, const std::string& name,
              std::string_view bytes) {
  if (output == "-") {
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);  // main() reports a failed write
    return kOk;
  }
  std::error_code error;
  fs::path path = output.empty() ? fs::path(name) : fs::path(output);
  if (!output.empty() && (output.ends_with('/') || fs::is_directory(path, error))) path /= name;
  path = fs::absolute(path, error).lexically_normal();
  if (error)
    return report(
        context,
        {ErrorCode::Io,
         fmt::format(
             "writing the rank table '{}': the current directory is gone; give -o an absolute path",
             output)});
  if (const std::string problem = ranktable::path_problem(path.string()); !problem.empty()) {
    return report(context, {ErrorCode::InvalidArgument,
                            fmt::format("writing the rank table '{}': {}; choose another place, or "
                                        "-o - and put it there yourself",
                                        path.string(), problem)});
  }
  if (auto done = publish(path, bytes); !done) return report(context, done.error());
  fmt::print("{}\n", path.string());
  return kOk;
}

void print_notes(const Context& context, const std::vector<ranktable::Finding>& notes) {
  for (const auto& note : notes) {
    fmt::print(stderr, "{} {}{}{}\n", context.err.paint(render::Tint::Warn, "muster: note:"),
               note.where, note.where.empty() ? "" : ": ", note.message);
  }
}

Error with_problems(std::string_view doing, std::string_view problems) {
  const auto lines = static_cast<std::size_t>(std::ranges::count(problems, '\n'));
  if (lines == 0) return {ErrorCode::InvalidArgument, fmt::format("{}: {}", doing, problems)};
  return {ErrorCode::InvalidArgument, fmt::format("{}: several problems:\n{}", doing, problems)};
}

}  // namespace muster::client
