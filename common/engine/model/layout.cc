#include "common/engine/model/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/engine/files/line_fields.h"
#include "common/engine/model/engine.h"
#include "common/engine/model/layout_rows.h"

namespace muster::engine {
namespace {

class NoLayout final : public CheckpointLayout {
 public:
  [[nodiscard]] std::vector<FoundCheckpoint> scan(const FileView&, const std::string&,
                                                  std::size_t) const override {
    return {};
  }
  [[nodiscard]] LinkPlan links(const std::string&, std::int64_t) const override { return {}; }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> marks(
      std::int64_t) const override {
    return {};
  }
};

// Whether a path looks like a file that a program would resume from. A configuration, a log or a
// curve in the same directory does not.
bool seems_saved(std::string_view path) {
  constexpr std::array<std::string_view, 10> kEndings = {
      ".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".distcp", ".npz", ".h5", ".msgpack", ".pkl"};
  constexpr std::array<std::string_view, 9> kWords = {
      "ckpt", "checkpoint", "step", "epoch", "iter", "model", "optim", "state", "weights"};
  constexpr std::array<std::string_view, 6> kOthers = {".log", ".txt", ".yaml",
                                                       ".yml", ".csv", ".tmp"};
  if (std::ranges::any_of(kOthers, [&](std::string_view end) { return path.ends_with(end); }))
    return false;
  return std::ranges::any_of(kEndings, [&](std::string_view end) { return path.ends_with(end); }) ||
         std::ranges::any_of(kWords, [&](std::string_view word) {
           return path.find(word) != std::string_view::npos;
         });
}

}  // namespace

std::string unknown_file(const CheckpointLayout& layout, const FileView& files,
                         const std::string& save_dir, const std::vector<FoundCheckpoint>& found) {
  constexpr std::size_t kDirsMost = 16;  // subdirectories that are scanned
  if (std::ranges::any_of(
          found, [](const FoundCheckpoint& checkpoint) { return !checkpoint.shards.empty(); }))
    return {};
  std::string largest;
  std::uint64_t bytes = 0;
  const auto take = [&](std::string path, const FileView::Entry& entry) {
    if (entry.directory || entry.bytes <= bytes || entry.name.starts_with('.') ||
        !seems_saved(path))
      return;
    largest = std::move(path);
    bytes = entry.bytes;
  };
  std::size_t scanned = 0;
  for (const FileView::Entry& entry : files.list(save_dir)) {
    if (layout.is_own(entry.name)) continue;
    take(entry.name, entry);
    if (!entry.directory || scanned++ >= kDirsMost) continue;
    for (const FileView::Entry& inside : files.list(fmt::format("{}/{}", save_dir, entry.name)))
      take(fmt::format("{}/{}", entry.name, inside.name), inside);
  }
  return largest;
}

std::string FileView::part(const std::string&, std::uint64_t, std::size_t) const { return {}; }

bool CheckpointLayout::is_own(std::string_view name) const { return name == kTracker; }

bool CheckpointLayout::is_mark(std::string_view name) const { return name == kTracker; }

std::vector<std::pair<std::string, std::string>> CheckpointLayout::marks(std::int64_t step) const {
  return {{kTracker, std::to_string(step)}};
}

LinkPlan CheckpointLayout::resume_links(const FileView&, const std::string& save_dir,
                                        std::int64_t step) const {
  return links(save_dir, step);
}

namespace {

// Nullptr: no engine has a layout of this name.
const Engine* engine_of(std::string_view layout) {
  for (const Engine& engine : engine_table())
    if (engine.layout == layout) return &engine;
  return nullptr;
}

}  // namespace

bool same_files(std::string_view one, std::string_view other) {
  const Engine *first = engine_of(one), *second = engine_of(other);
  return first == second ||
         (first != nullptr && second != nullptr && first->checkpoints == second->checkpoints);
}

bool has_rank_dirs(std::string_view name) {
  const Engine* engine = engine_of(name);
  return engine != nullptr && engine->rank_dirs;
}

Result<std::unique_ptr<CheckpointLayout>> make_layout(std::string_view name,
                                                      const LayoutOptions& options) {
  if (const Engine* engine = engine_of(name); engine != nullptr)
    return engine->checkpoints(options);
  if (name == "none" || name.empty())
    return std::unique_ptr<CheckpointLayout>(std::make_unique<NoLayout>());
  std::string known;
  for (const Engine& engine : engine_table()) known += fmt::format("{} | ", engine.layout);
  return fail(
      ErrorCode::Unsupported,
      fmt::format("looking for checkpoints: layout '{}' is not known ({}none)", name, known));
}

std::string resume_problem(std::string_view path) {
  for (std::string_view rest = path; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    if (part == "checkpoint_network" || part == "checkpoint_trainable") {
      return fmt::format(
          "'{}' holds weights alone, without optimizer and counters; resume from its neighbour "
          "'checkpoint'",
          part);
    }
    if (part == "release")
      return "'release' holds converted weights alone: training starts from iteration 0";
  }
  return {};
}

const FileView::Entry* find_file(const Entries& entries, std::string_view name) {
  const auto found = std::ranges::find_if(entries, [&](const FileView::Entry& entry) {
    return !entry.directory && entry.name == name;
  });
  return found == entries.end() ? nullptr : &*found;
}

std::string step_directory(std::string_view prefix, std::size_t width, std::int64_t step) {
  return fmt::format("{}{:0{}d}", prefix, step, width);
}

std::optional<std::int64_t> step_of_directory(const FileView::Entry& entry, std::string_view prefix,
                                              std::size_t width) {
  if (!entry.directory || !entry.name.starts_with(prefix)) return std::nullopt;
  const auto step = whole_number(std::string_view(entry.name).substr(prefix.size()));
  // the engine does not write such a name
  if (!step || entry.name != step_directory(prefix, width, *step)) return std::nullopt;
  return step;
}

std::optional<std::int64_t> tracker_step(const FileView& files, const std::string& dir,
                                         const std::vector<std::int64_t>& steps) {
  const std::string text = files.head(fmt::format("{}/{}", dir, kTracker), 64);
  const auto step = whole_number(trimmed(text));
  if (!step || !std::ranges::binary_search(steps, *step, std::greater{})) return std::nullopt;
  return step;
}

bool json_with_key(std::string_view text, std::string_view key) {
  text = trimmed(text);
  return text.size() > 2 && text.front() == '{' && text.back() == '}' &&
         std::ranges::count(text, '"') % 2 == 0 &&
         text.find(fmt::format("\"{}\"", key)) != std::string_view::npos;
}

}  // namespace muster::engine
