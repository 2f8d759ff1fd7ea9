#include "common/engine/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/engine/layout_rows.h"
#include "common/engine/line_fields.h"

namespace muster::engine {
namespace {

class NoLayout final : public CheckpointLayout {
 public:
  [[nodiscard]] std::vector<FoundCheckpoint> scan(const FileView&, const std::string&, std::size_t) const override { return {}; }
  [[nodiscard]] LinkPlan links(const std::string&, std::int64_t) const override { return {}; }
};

}  // namespace

std::string FileView::part(const std::string&, std::uint64_t, std::size_t) const { return {}; }

LinkPlan CheckpointLayout::resume_links(const FileView&, const std::string& save_dir, std::int64_t step) const { return links(save_dir, step); }

Result<std::unique_ptr<CheckpointLayout>> make_layout(std::string_view name, const LayoutOptions& options) {
  // MindSpeed-MM's FSDP2 back end writes what Megatron's torch_dcp writes, and a directory more, which the layout knows.
  if (name == "megatron" || name == "mindspeed-mm") return megatron_layout(options);
  if (name == "mindformers") return mindformers_layout(options);
  if (name == "none" || name.empty()) return std::unique_ptr<CheckpointLayout>(std::make_unique<NoLayout>());
  return fail(ErrorCode::Unsupported, fmt::format("looking for checkpoints: layout '{}' is not known (mindformers | megatron | mindspeed-mm | none)", name));
}

std::string resume_problem(std::string_view path) {
  for (std::string_view rest = path; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    if (part == "checkpoint_network" || part == "checkpoint_trainable") {
      return fmt::format("'{}' holds weights alone, without optimizer and counters; resume from its neighbour 'checkpoint'", part);
    }
    if (part == "release") return "'release' holds converted weights alone: training starts from iteration 0";
  }
  return {};
}

const FileView::Entry* find_file(const Entries& entries, std::string_view name) {
  const auto found = std::ranges::find_if(entries, [&](const FileView::Entry& entry) { return !entry.directory && entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

std::string step_directory(std::string_view prefix, std::size_t width, std::int64_t step) { return fmt::format("{}{:0{}d}", prefix, step, width); }

std::optional<std::int64_t> step_of_directory(const FileView::Entry& entry, std::string_view prefix, std::size_t width) {
  if (!entry.directory || !entry.name.starts_with(prefix)) return std::nullopt;
  const auto step = whole_number(std::string_view(entry.name).substr(prefix.size()));
  if (!step || entry.name != step_directory(prefix, width, *step)) return std::nullopt;  // not a name that the engine writes
  return step;
}

std::optional<std::int64_t> tracker_step(const FileView& files, const std::string& dir, const std::vector<std::int64_t>& steps) {
  const std::string text = files.head(fmt::format("{}/{}", dir, kTracker), 64);
  const auto step = whole_number(trimmed(text));
  if (!step || !std::ranges::binary_search(steps, *step, std::greater{})) return std::nullopt;
  return step;
}

bool json_with_key(std::string_view text, std::string_view key) {
  text = trimmed(text);
  return text.size() > 2 && text.front() == '{' && text.back() == '}' && std::ranges::count(text, '"') % 2 == 0 &&
         text.find(fmt::format("\"{}\"", key)) != std::string_view::npos;
}

}  // namespace muster::engine
