#include "worker/shim/earlier.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "common/io/file.h"

namespace muster::shim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTracker = "latest_checkpointed_iteration.txt";

std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

std::string steps_text(const std::vector<Earlier::Checkpoint>& checkpoints) {
  std::string text;
  for (const Earlier::Checkpoint& one : checkpoints)
    text += (text.empty() ? "" : ", ") + std::to_string(one.step);
  return text;
}

// Other nodes of a shared file system create the same links at the same time.
Result<void> make_links(const Earlier& earlier, const std::string& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error) return fail_errno("making the directory of links '" + dir + "'", error.value());
  for (const Earlier::Checkpoint& one : earlier.checkpoints) {
    struct stat info{};
    if (::stat(one.path.c_str(), &info) != 0)
      return fail(ErrorCode::NotFound, "its checkpoint '" + one.path +
                                           "' is not there on this node; keep checkpoints on a "
                                           "file system that every node sees");
    const std::string link = dir + "/" + fs::path(one.path).filename().string();
    if (::symlink(one.path.c_str(), link.c_str()) != 0 && errno != EEXIST)
      return fail_errno("linking '" + link + "' to '" + one.path + "'", errno);
  }
  auto written = io::replace_file(
      dir + "/" + kTracker, std::to_string(earlier.checkpoints.front().step), io::Durable::No);
  if (written && ::chmod((dir + "/" + kTracker).c_str(), 0644) != 0 && errno != ENOENT)
    return fail_errno("opening the tracker in '" + dir + "'", errno);
  return written;
}

}  // namespace

std::string absolute_path(const std::string& path) {
  // Without fs::absolute, a relative path whose first part does not exist would stay relative.
  std::error_code error;
  const fs::path below_here = fs::absolute(path, error),
                 canonical = fs::weakly_canonical(below_here, error);
  std::string text = (error ? below_here.lexically_normal() : canonical).string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

Earlier saved_in(std::string_view lines, std::string_view dir) {
  Earlier earlier;
  while (!lines.empty()) {
    std::string_view line = take_until(lines, '\n');
    if (take_until(line, '\t') != dir) continue;
    earlier.job = take_until(line, '\t');
    const std::string_view number = take_until(line, '\t');
    Earlier::Checkpoint one;
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), one.step);
    if (error != std::errc() || end != number.data() + number.size() || line.empty()) continue;
    one.path = line;
    earlier.checkpoints.push_back(std::move(one));
  }
  std::ranges::stable_sort(earlier.checkpoints, std::ranges::greater(), &Earlier::Checkpoint::step);
  return earlier;
}

Result<LoadAnswer> answer_load(const ScriptOptions& given, std::string_view lines,
                               const std::string& links_dir) {
  if (given.load.empty() || lines.empty() || links_dir.empty()) return LoadAnswer();
  const std::string dir = absolute_path(given.load);
  const Earlier earlier = saved_in(lines, dir);
  if (earlier.job.empty()) return LoadAnswer();
  const std::string doing = "--load " + given.load + ": job " + earlier.job +
                            " would have saved there, and saved in a directory of its own";
  const bool own = !given.save.empty() && absolute_path(given.save) == dir;
  if (own && earlier.checkpoints.empty()) return LoadAnswer();
  if (own)
    return LoadAnswer{.dir = {},
                      .notice = doing +
                                ". This launch saves there as well, and would go on from what it "
                                "has saved itself: it begins without that job's; to go on from "
                                "them write start: {from: 'job:" +
                                earlier.job + "', as: resume}"};
  if (earlier.checkpoints.empty())
    return fail(ErrorCode::NotFound, doing +
                                         "; it has no whole checkpoint to begin with: take --load "
                                         "out to begin from the beginning");
  const std::string links = links_dir + "/" + earlier.job;
  if (auto made = make_links(earlier, links); !made) return fail(std::move(made).error().in(doing));
  return LoadAnswer{.dir = links,
                    .notice = doing + "; loaded are its checkpoints, by links in '" + links +
                              "' (step " + steps_text(earlier.checkpoints) + ")"};
}

}  // namespace muster::shim
