#include "agent/code/code_patches.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <map>
#include <optional>
#include <system_error>
#include <vector>

#include "agent/launch/now_preparing.h"
#include "common/base/controls.h"
#include "common/compat/code_patch/builtin.h"
#include "common/compat/code_patch/unified.h"
#include "common/io/file.h"
#include "common/io/unique_fd.h"
#include "common/process/tool.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using code_patch::DiffFile;

constexpr auto kEach = std::chrono::seconds(60);
constexpr std::size_t kOutputMost = 600;

std::string doing(const v1::CodeCopyPatch& patch, const PatchGround& ground) {
  return fmt::format("code.patches: putting '{}' on a copy of '{}'", without_controls(patch.name()),
                     ground.source);
}

// git gets none of the user's settings, and no repository around the tree. In a repository git
// would silently skip files outside the repository's directory.
std::vector<std::string> git_environment(const PatchGround& ground) {
  auto environment = process::tool_environment();
  std::erase_if(environment, [](const std::string& variable) {
    return variable.starts_with("GIT_") || variable.starts_with("HOME=");
  });
  for (const char* variable : {"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
                               "GIT_DIR=/dev/null", "GIT_TERMINAL_PROMPT=0", "HOME=/"})
    environment.emplace_back(variable);
  environment.push_back(
      fmt::format("GIT_CEILING_DIRECTORIES={}", ground.tree.parent_path().string()));
  return environment;
}

// Joins the lines into one: "error: patch failed: x.py:3; error: x.py: patch does not apply".
std::string output_text(std::string_view output) {
  std::string text;
  while (!output.empty() && text.size() < kOutputMost) {
    const std::size_t end = std::min(output.find('\n'), output.size());
    std::string_view line = output.substr(0, end);
    output.remove_prefix(std::min(end + 1, output.size()));
    for (const std::string_view word : {"error: ", "fatal: "})
      if (line.starts_with(word)) line.remove_prefix(word.size());
    if (line.empty() || line.starts_with("Checking patch") || line.starts_with("warning: "))
      continue;
    text += fmt::format("{}{}", text.empty() ? "" : "; ",
                        without_controls(line.substr(0, kOutputMost)));
  }
  return text;
}

// Returns an errno if the node is the cause and not the patch: "failed to write to 'x.py': No space
// left on device". 0: it is not.
int nodes_trouble(std::string_view output) {
  for (const int error : {ENOSPC, EDQUOT, EIO, EROFS, ESTALE, ENOMEM, EMFILE, ENFILE})
    if (output.find(fmt::format(": {}\n", std::generic_category().message(error))) !=
        std::string_view::npos)
      return error;
  return 0;
}

// "patch failed: x.py:3" -> "'x.py', hunk 2 of 4 (line 3)"; empty: the output has another form.
std::string failed_part(std::string_view output, const std::vector<DiffFile>& files) {
  constexpr std::string_view kFailed = "patch failed: ";
  const std::size_t at = output.find(kFailed);
  if (at == std::string_view::npos) return {};
  std::string_view place = output.substr(at + kFailed.size());
  place = place.substr(0, place.find('\n'));
  const std::size_t colon = place.rfind(':');
  std::uint64_t line = 0;
  if (colon == std::string_view::npos ||
      std::from_chars(place.data() + colon + 1, place.data() + place.size(), line).ec !=
          std::errc())
    return {};
  const std::string_view name = place.substr(0, colon);
  const auto file = std::ranges::find_if(
      files, [&](const DiffFile& one) { return one.name == name || one.old_name == name; });
  if (file == files.end()) return {};
  const auto hunk = std::ranges::find(file->hunks, line);
  if (hunk == file->hunks.end()) return fmt::format("'{}'", name);
  return fmt::format("'{}', hunk {} of {} (line {})", name, hunk - file->hunks.begin() + 1,
                     file->hunks.size(), line);
}

class Git {
 public:
  Git(std::string program, const PatchGround& ground)
      : program_(std::move(program)), ground_(ground) {}

  process::ToolAnswer apply(const fs::path& patch, std::initializer_list<const char*> options) {
    process::ToolRequest request{
        .program = "/bin/sh",
        .args = {"-c", "exec \"$0\" \"$@\" 2>&1", program_, "-C", ground_.tree.string(), "apply",
                 "-p1", "--whitespace=nowarn"}};
    request.args.insert(request.args.end(), options.begin(), options.end());
    request.args.insert(request.args.end(), {"--", patch.string()});
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        ground_.until - std::chrono::steady_clock::now());
    const auto most =
        std::clamp<std::chrono::milliseconds>(left, std::chrono::milliseconds(1), kEach);
    return std::move(runner_
                         .run({request}, git_environment(ground_),
                              {.each = most, .total = most, .parallel = 1, .bytes = 1U << 20U})
                         .front());
  }

 private:
  std::string program_;
  const PatchGround& ground_;
  process::ToolRunner runner_;
};

// git writes a file anew and keeps only the executable bit of its mode.
class Modes {
 public:
  Modes(const fs::path& tree, const std::vector<DiffFile>& files) : tree_(tree) {
    for (const DiffFile& file : files) {
      struct stat info{};
      const std::string& old_name = file.old_name.empty() ? file.name : file.old_name;
      if (::lstat((tree / old_name).c_str(), &info) == 0 && S_ISREG(info.st_mode))
        modes_[file.name] = info.st_mode & 0777U;
    }
  }
  void restore() const {
    for (const auto& [name, mode] : modes_) {
      const io::UniqueFd fd(
          ::open((tree_ / name).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
      struct stat info{};
      if (fd && ::fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode) &&
          (info.st_mode & 0100U) == (mode & 0100U))
        ::fchmod(fd.get(), mode);
    }
  }

 private:
  const fs::path& tree_;
  std::map<std::string, unsigned> modes_;
};

Result<void> apply_diff(const v1::CodeCopyPatch& patch, const PatchGround& ground,
                        std::size_t number) {
  const auto files = code_patch::read_diff(patch.content());
  if (!files)
    return fail(ErrorCode::InvalidArgument,
                fmt::format("{}: {}", doing(patch, ground), files.error().message));
  const auto program = process::find_program("git", ground.path);
  if (!program)
    return fail(ErrorCode::Unsatisfiable,
                fmt::format("{}: there is no git on the agent's PATH '{}', which puts patches on; "
                            "install it on this node (package git)",
                            doing(patch, ground), ground.path));
  const fs::path kept = ground.scratch / fmt::format("patch-{}.diff", number);
  if (auto written = io::replace_file(kept, patch.content(), io::Durable::No); !written)
    return fail(std::move(written.error()).in(doing(patch, ground)));
  const Modes modes(ground.tree, *files);
  Git git(*program, ground);
  const process::ToolAnswer answer = git.apply(kept, {});
  if (answer.why.empty()) {
    modes.restore();
  } else if (!answer.status) {
    ::unlink(kept.c_str());
    return fail(ErrorCode::TimedOut, fmt::format("{}: git: {}", doing(patch, ground), answer.why));
  } else {
    if (const int error = nodes_trouble(answer.output); error != 0) {
      ::unlink(kept.c_str());
      return fail_errno(
          fmt::format("{}: git: {}", doing(patch, ground), output_text(answer.output)), error);
    }
    const bool there_already = git.apply(kept, {"--reverse", "--check"}).why.empty();
    ::unlink(kept.c_str());
    if (there_already)
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("{}: the code has it already; leave it out of code.patches",
                              doing(patch, ground)));
    const std::string part = failed_part(answer.output, *files);
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format("{}: it does not apply{}: git: {}; the code is another one than it was made "
                    "for: make the patch anew",
                    doing(patch, ground), part.empty() ? "" : ": " + part,
                    output_text(answer.output)));
  }
  ::unlink(kept.c_str());
  return {};
}

// Opens a file below the tree without following a link in its path. The name is muster's own, but
// the tree is not. Returns -1 and sets errno on failure.
int open_below(const fs::path& tree, const std::string& name, int flags) {
  io::UniqueFd dir(::open(tree.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  std::string_view rest = name;
  for (std::size_t slash = rest.find('/'); dir && slash != std::string_view::npos;
       slash = rest.find('/')) {
    const std::string part(rest.substr(0, slash));
    if (struct stat info{}; ::fstatat(dir.get(), part.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                            S_ISLNK(info.st_mode)) {
      errno = ELOOP;
      return -1;
    }
    dir.reset(::openat(dir.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    rest.remove_prefix(slash + 1);
  }
  if (!dir) return -1;
  return ::openat(dir.get(), std::string(rest).c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                  0644);
}

Result<std::optional<std::string>> read_below(const fs::path& tree, const std::string& name) {
  const io::UniqueFd fd(open_below(tree, name, O_RDONLY));
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) return std::optional<std::string>();
  if (!fd && errno == ELOOP)
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format(
            "'{}' is, or is behind, a symbolic link; link no part of the tree from elsewhere",
            name));
  if (!fd) return fail_errno(fmt::format("opening '{}'", name), errno);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return fail_errno(fmt::format("checking '{}'", name), errno);
  if (!S_ISREG(info.st_mode))
    return fail(ErrorCode::InvalidArgument, fmt::format("'{}' is not a file", name));
  std::string text;
  std::array<char, 64U << 10U> piece{};
  for (;;) {
    const ssize_t got = ::read(fd.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(fmt::format("reading '{}'", name), errno);
    if (got == 0) return std::optional(std::move(text));
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() > code_patch::kSourceBytesMax)
      return fail(ErrorCode::InvalidArgument, fmt::format("'{}' has more than {} MiB", name,
                                                          code_patch::kSourceBytesMax >> 20U));
  }
}

Result<void> apply_builtin(const v1::CodeCopyPatch& patch, const PatchGround& ground) {
  const code_patch::Builtin* builtin = code_patch::find_builtin(
      std::string_view(patch.name()).substr(code_patch::kBuiltinScheme.size()));
  if (builtin == nullptr)
    return fail(
        ErrorCode::Unsatisfiable,
        fmt::format("{}: this node's agent does not have it; upgrade it", doing(patch, ground)));
  auto changed =
      builtin->make([&](const std::string& name) { return read_below(ground.tree, name); });
  if (!changed) return fail(std::move(changed.error()).in(doing(patch, ground)));
  for (const code_patch::ChangedSource& file : *changed) {
    // the files of a tree may be read-only
    if (const io::UniqueFd there(open_below(ground.tree, file.name, O_RDONLY)); there) {
      struct stat info{};
      if (::fstat(there.get(), &info) == 0) ::fchmod(there.get(), (info.st_mode & 0777U) | 0200U);
    }
    const io::UniqueFd fd(open_below(ground.tree, file.name, O_WRONLY | O_CREAT | O_TRUNC));
    std::size_t written = 0;
    const int error = fd ? io::write_all(fd.get(), file.text, written) : errno;
    if (error != 0)
      return fail_errno(fmt::format("{}: writing '{}'", doing(patch, ground), file.name), error);
  }
  return {};
}

}  // namespace

Result<void> apply_patches(const google::protobuf::RepeatedPtrField<v1::CodeCopyPatch>& patches,
                           const PatchGround& ground) {
  for (int i = 0; i < patches.size(); ++i) {
    now_preparing(doing(patches[i], ground));
    const bool own = patches[i].name().starts_with(code_patch::kBuiltinScheme);
    auto done = own ? apply_builtin(patches[i], ground)
                    : apply_diff(patches[i], ground, static_cast<std::size_t>(i));
    if (!done) return done;
  }
  return {};
}

}  // namespace muster::agent
