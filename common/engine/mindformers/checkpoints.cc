// The directory trees of MindFormers (mindformers/core/callback/callback.py, CheckpointMonitor,
// r0.6 to master; mindformers/checkpoint/checkpoint.py, master):
//
//   SAVE[/checkpoint]/rank_N/PREFIX_rank_N[_K]-E_S.ckpt|.safetensors
//       one file for each rank; K: the directory had older files of that prefix when a run began
//   SAVE[/checkpoint]/rank_N/meta.json
//       r1.0 and later: names the last finished file
//   SAVE[/checkpoint]/iteration_%08d/PREFIX-{model,opt}-I-OF.safetensors
//       use_legacy_format: False; with common.json, metadata.json and, next to the directory, a
//       tracker
//
// checkpoint_network and checkpoint_trainable have only weights and are never read. E is the epoch
// and S the step in it; in sink mode E is the sink and S the sink's size.
//
// MindSpore up to 2.2 writes a .ckpt in place under its final name, and makes it read-only (0400)
// at the end. Later releases rename it. Neither mark is trusted alone.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "common/engine/files/ckpt_end.h"
#include "common/engine/files/line_fields.h"
#include "common/engine/files/safetensors_end.h"
#include "common/engine/mindformers/mindformers.h"
#include "common/engine/model/layout_rows.h"

namespace muster::engine {
namespace {

constexpr std::uint32_t kReadOnly = 0400;
constexpr std::size_t kHeadMost = 1 << 20;     // bytes of a safetensors header in one read
constexpr std::size_t kHeaderMost = 32 << 20;  // bytes of one header in all reads

// What one file states about itself.
struct ShardState {
  bool finished = false;
  std::optional<std::int64_t> step;  // of the whole training, by MindFormers' own count
};

std::optional<std::int64_t> read_scalar(const FileView& files, const std::string& path,
                                        const std::optional<SafetensorsScalar>& scalar) {
  if (!scalar || !scalar->is_integer) return std::nullopt;
  const std::string text = files.part(path, scalar->at, scalar->bytes);
  if (text.size() != scalar->bytes) return std::nullopt;
  std::uint64_t bits = 0;
  for (std::size_t i = text.size(); i-- > 0;)
    bits = bits << 8 | static_cast<unsigned char>(text[i]);
  return text.size() == 4 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(bits))
                          : static_cast<std::int64_t>(bits);
}

std::optional<std::int64_t> positive(std::optional<std::int64_t> step) {
  return step && *step > 0 ? step : std::nullopt;
}

ShardState read_safetensors(const FileView& files, const std::string& path,
                            const FileView::Entry& file) {
  const auto bytes = safetensors_header_bytes(files.head(path, 8), file.bytes);
  if (!bytes) return {};
  std::string json;
  if (*bytes + 8 <= kHeadMost) {
    json = files.head(path, static_cast<std::size_t>(*bytes) + 8);
    json.erase(0, std::min<std::size_t>(json.size(), 8));
  } else if (*bytes <= kHeaderMost) {
    while (json.size() < *bytes) {
      const std::string more = files.part(
          path, 8 + json.size(),
          std::min<std::size_t>(kHeadMost, static_cast<std::size_t>(*bytes) - json.size()));
      if (more.empty()) break;
      json += more;
    }
  }
  // too large to be read here: the writer's own mark decides
  if (json.size() != *bytes) return {.finished = file.mode == kReadOnly, .step = {}};
  const SafetensorsHeader header = read_safetensors_header(json, file.bytes);
  if (!header.whole) return {};
  return {.finished = true, .step = positive(read_scalar(files, path, header.step_num))};
}

ShardState read_ckpt(const FileView& files, const std::string& path, const FileView::Entry& file) {
  const std::string tail = files.tail(path, kCkptTailBytes);
  const CkptEnd end = read_ckpt_end(tail, file.bytes);
  ShardState state{.finished = false, .step = positive(end.step_num)};
  if (end.framed) {
    // A file that ends with a weight may lack the next weight.
    state.finished = end.closed || file.mode == kReadOnly;
  } else {
    // The file is encrypted, or its last weight is larger than the tail that is read. Blocks that
    // never reached the disk are zeros.
    state.finished = file.mode == kReadOnly && tail.find_first_not_of('\0') != std::string::npos;
  }
  return state;
}

struct RankFile {
  std::uint32_t rank = 0;
  std::string dir;
  std::string prefix;        // without _rank_N
  std::int64_t renamed = 0;  // K
  std::int64_t epoch = 0, step = 0;
  bool safetensors = false;
  FileView::Entry file;

  [[nodiscard]] std::string path() const { return fmt::format("{}/{}", dir, file.name); }
  // The name that a run gives if its directory is empty at the start.
  [[nodiscard]] std::string plain_name() const {
    return fmt::format("{}_rank_{}-{}_{}.{}", prefix, rank, epoch, step,
                       safetensors ? "safetensors" : "ckpt");
  }
  [[nodiscard]] ShardState state(const FileView& files) const {
    return safetensors ? read_safetensors(files, path(), file) : read_ckpt(files, path(), file);
  }
};

// Removes the digits at the end of the text and returns them.
std::optional<std::int64_t> take_last_number(std::string_view& text) {
  std::size_t at = text.size();
  while (at > 0 && is_digit(text[at - 1])) --at;
  const auto number = whole_number(text.substr(at));
  if (!number) return std::nullopt;
  text = text.substr(0, at);
  return number;
}
bool take_last(std::string_view& text, std::string_view what) {
  if (!text.ends_with(what)) return false;
  text.remove_suffix(what.size());
  return true;
}

// Parses a name such as "llama_7b_rank_0_1-3_2.ckpt" in rank_0. Names of weights alone
// ("..._rank_0-network-3_2.ckpt") and of a save on an exception ("..._breakpoint.ckpt") are
// refused.
std::optional<RankFile> parse_name(const FileView::Entry& entry, std::uint32_t rank) {
  if (entry.directory) return std::nullopt;
  RankFile found{.rank = rank, .file = entry};
  std::string_view text = entry.name;
  if (take_last(text, ".safetensors")) {
    found.safetensors = true;
  } else if (!take_last(text, ".ckpt")) {
    return std::nullopt;
  }
  const auto step = take_last_number(text);
  if (!step || !take_last(text, "_")) return std::nullopt;
  const auto epoch = take_last_number(text);
  if (!epoch || !take_last(text, "-")) return std::nullopt;
  const std::string mine = fmt::format("_rank_{}", rank);
  std::string_view stem = text;
  if (!take_last(stem, mine)) {
    const auto renamed = take_last_number(text);
    if (!renamed || !take_last(text, "_") || !take_last(text, mine)) return std::nullopt;
    found.renamed = *renamed;
    stem = text;
  }
  if (stem.empty() || *step < 1 || *epoch < 1) return std::nullopt;
  found.prefix = stem;
  found.epoch = *epoch;
  found.step = *step;
  return found;
}

// One (epoch, step) over all ranks.
struct Save {
  std::int64_t epoch = 0, step = 0;
  std::map<std::uint32_t, RankFile> files;
};
struct RankTree {
  std::vector<Save> saves;  // newest first
  std::uint32_t ranks = 0;  // directories that must exist: the highest number and all below
};

std::optional<std::uint32_t> rank_of(const FileView::Entry& entry) {
  if (!entry.directory || !entry.name.starts_with("rank_")) return std::nullopt;
  const auto rank = whole_number(std::string_view(entry.name).substr(5));
  return rank && *rank < 1'000'000 && entry.name == fmt::format("rank_{}", *rank)
             ? std::optional(static_cast<std::uint32_t>(*rank))
             : std::nullopt;
}

// in released code, and in the first code of the new format
constexpr std::string_view kSpellings[] = {"iteration_", "iter_"};
constexpr std::size_t kWidth = 8;

class MindFormersLayout final : public CheckpointLayout {
 public:
  explicit MindFormersLayout(const LayoutOptions& options) : options_(options) {}

  [[nodiscard]] std::vector<FoundCheckpoint> scan(const FileView& files,
                                                  const std::string& save_dir,
                                                  std::size_t newest) const override {
    const auto [base, entries] = base_of(files, save_dir);
    std::vector<FoundCheckpoint> found =
        scan_ranks(files, base, read_tree(files, base, entries, true), newest);
    for (FoundCheckpoint& checkpoint : scan_iterations(files, base, entries, newest))
      found.push_back(std::move(checkpoint));
    std::ranges::stable_sort(found, std::greater{}, &FoundCheckpoint::step);
    if (found.size() > newest) found.resize(newest);
    return found;
  }

  [[nodiscard]] LinkPlan links(const std::string&, std::int64_t) const override { return {}; }

  // Links all ranks' files under the names that a first run gives. Then every release finds the
  // same step in every directory, regardless of how files were renamed.
  [[nodiscard]] LinkPlan resume_links(const FileView& files, const std::string& save_dir,
                                      std::int64_t step) const override {
    const auto [base, entries] = base_of(files, save_dir);
    LinkPlan plan;
    for (const FileView::Entry& entry : entries) {
      for (const std::string_view spelling : kSpellings) {
        if (step_of_directory(entry, spelling, kWidth) != step) continue;
        plan.links.emplace_back(entry.name, fmt::format("{}/{}", base, entry.name));
        plan.files.emplace_back(kTracker, std::to_string(step));
        return plan;
      }
    }
    const RankTree tree = read_tree(files, base, entries, false);
    const std::vector<std::optional<std::int64_t>> steps =
        count_steps(files, tree, tree.saves.size());
    const auto at = std::ranges::find(steps, std::optional(step));
    if (at == steps.end()) return plan;
    const Save& save = tree.saves[static_cast<std::size_t>(at - steps.begin())];
    for (const auto& [rank, file] : save.files) {
      const std::string name = file.plain_name();
      plan.links.emplace_back(fmt::format("rank_{}/{}", rank, name), file.path());
      plan.files.emplace_back(
          fmt::format("rank_{}/meta.json", rank),
          fmt::format(R"({{"last_epoch": {}, "last_step": {}, "last_ckpt_file": "{}"}})",
                      save.epoch, save.step, name));
    }
    return plan;
  }

  [[nodiscard]] bool is_own(std::string_view name) const override {
    return name == kTracker || name == "strategy" || name.starts_with("checkpoint") ||
           name.starts_with("transformed_checkpoint") || name.starts_with("rank_") ||
           name.starts_with(kSpellings[0]) || name.starts_with(kSpellings[1]);
  }

 private:
  // The directory that contains rank_N: the given one, or `checkpoint` below it.
  static std::pair<std::string, Entries> base_of(const FileView& files,
                                                 const std::string& save_dir) {
    Entries entries = files.list(save_dir);
    const auto holds = [](const FileView::Entry& entry) {
      return rank_of(entry) || step_of_directory(entry, kSpellings[0], kWidth) ||
             step_of_directory(entry, kSpellings[1], kWidth);
    };
    if (std::ranges::none_of(entries, holds) &&
        std::ranges::any_of(entries, [](const FileView::Entry& entry) {
          return entry.directory && entry.name == "checkpoint";
        })) {
      std::string below = save_dir + "/checkpoint";
      Entries inside = files.list(below);
      return {std::move(below), std::move(inside)};
    }
    return {save_dir, std::move(entries)};
  }

  [[nodiscard]] RankTree read_tree(const FileView& files, const std::string& base,
                                   const Entries& entries, bool own_only) const {
    RankTree tree;
    std::map<std::pair<std::int64_t, std::int64_t>, Save, std::greater<>> saves;
    for (const FileView::Entry& entry : entries) {
      const auto rank = rank_of(entry);
      if (!rank) continue;
      tree.ranks = std::max(tree.ranks, *rank + 1);
      if (own_only && options_.rank_count > 0 &&
          (*rank < options_.first_rank || *rank - options_.first_rank >= options_.rank_count))
        continue;
      const std::string dir = fmt::format("{}/{}", base, entry.name);
      for (const FileView::Entry& inside : files.list(dir)) {
        auto file = parse_name(inside, *rank);
        if (!file) continue;
        file->dir = dir;
        Save& save = saves[{file->epoch, file->step}];
        save.epoch = file->epoch;
        save.step = file->step;
        // Two runs saved this point in one directory: the later run's prefix has the higher number.
        const auto before = save.files.find(*rank);
        if (before == save.files.end() || std::pair(before->second.renamed, before->second.prefix) <
                                              std::pair(file->renamed, file->prefix)) {
          save.files.insert_or_assign(*rank, std::move(*file));
        }
      }
    }
    for (auto& [key, save] : saves) tree.saves.push_back(std::move(save));
    return tree;
  }

  // The step of the whole training for the first `count` saves: (epoch - 1) x steps of an epoch +
  // step. Nothing: the step is not known.
  //
  // Names do not show the length of an epoch. These sources do, in this order: the job's options,
  // the files' own count, and in sink mode the names, which all have the same step, the sink's
  // size.
  [[nodiscard]] std::vector<std::optional<std::int64_t>> count_steps(const FileView& files,
                                                                     const RankTree& tree,
                                                                     std::size_t count) const {
    count = std::min(count, tree.saves.size());
    std::vector<std::optional<std::int64_t>> own(count);
    std::int64_t longest = 0;
    bool uniform = true;
    for (const Save& save : tree.saves) {
      longest = std::max(longest, save.step);
      uniform = uniform && save.step == tree.saves.front().step;
    }
    std::int64_t epoch_steps = options_.steps_per_epoch;
    for (std::size_t i = 0; i < count && epoch_steps == 0; ++i) {
      const Save& save = tree.saves[i];
      for (const auto& [rank, file] : save.files) {
        const ShardState state = file.state(files);
        if (!state.finished) continue;
        own[i] = state.step;  // all ranks count alike
        break;
      }
      if (!own[i] || save.epoch < 2 || *own[i] < save.step ||
          (*own[i] - save.step) % (save.epoch - 1) != 0)
        continue;
      const std::int64_t steps = (*own[i] - save.step) / (save.epoch - 1);
      if (steps >= longest) epoch_steps = steps;
    }
    if (epoch_steps == 0 && uniform) epoch_steps = longest;
    std::vector<std::optional<std::int64_t>> steps(count);
    for (std::size_t i = 0; i < count; ++i) {
      const Save& save = tree.saves[i];
      std::int64_t step = 0;
      if (save.epoch == 1) {
        steps[i] = save.step;
      } else if (epoch_steps > 0 && !__builtin_mul_overflow(save.epoch - 1, epoch_steps, &step) &&
                 !__builtin_add_overflow(step, save.step, &step)) {
        steps[i] = step;
      } else {
        steps[i] = own[i];
      }
    }
    return steps;
  }

  [[nodiscard]] std::vector<FoundCheckpoint> scan_ranks(const FileView& files,
                                                        const std::string& base,
                                                        const RankTree& tree,
                                                        std::size_t newest) const {
    const std::vector<std::optional<std::int64_t>> steps = count_steps(files, tree, newest);
    std::vector<FoundCheckpoint> found;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!steps[i]) continue;
      FoundCheckpoint checkpoint{.step = *steps[i], .path = base};
      for (const auto& [rank, file] : tree.saves[i].files) {
        checkpoint.shards.push_back({.name = fmt::format("rank_{}", rank),
                                     .bytes = file.file.bytes,
                                     .finished = file.state(files).finished});
      }
      checkpoint.expected = std::max(
          {options_.world_size, tree.ranks, static_cast<std::uint32_t>(checkpoint.shards.size())});
      checkpoint.sealed = std::ranges::any_of(checkpoint.shards, &FoundShard::finished);
      found.push_back(std::move(checkpoint));
    }
    return found;
  }

  // use_legacy_format: False. Rank 0 writes the tracker last, after a barrier; in an asynchronous
  // save it does so at a later step. The names show how many files there will be.
  [[nodiscard]] static std::vector<FoundCheckpoint> scan_iterations(const FileView& files,
                                                                    const std::string& base,
                                                                    const Entries& entries,
                                                                    std::size_t newest) {
    std::map<std::int64_t, std::string, std::greater<>> iterations;
    for (const FileView::Entry& entry : entries) {
      for (const std::string_view spelling : kSpellings)
        if (const auto step = step_of_directory(entry, spelling, kWidth))
          iterations.try_emplace(*step, entry.name);
    }
    std::vector<std::int64_t> steps;
    for (const auto& [step, name] : iterations) steps.push_back(step);
    const std::optional<std::int64_t> reached = tracker_step(files, base, steps);
    std::vector<FoundCheckpoint> found;
    for (const auto& [step, name] : iterations) {
      if (found.size() == newest) break;
      FoundCheckpoint checkpoint{.step = step, .path = fmt::format("{}/{}", base, name)};
      const Entries inside = files.list(checkpoint.path);
      // number -> weights, optimizer
      std::map<std::int64_t, std::pair<const FileView::Entry*, const FileView::Entry*>> shards;
      std::int64_t of = 0;
      bool optimizer = false;
      for (const FileView::Entry& file : inside) {
        std::string_view text = file.name;
        if (file.directory || !take_last(text, ".safetensors")) continue;
        const auto total = take_last_number(text);
        if (!total || *total > 1'000'000 || !take_last(text, "-")) continue;
        const auto number = take_last_number(text);
        if (!number || *number >= *total || !take_last(text, "-")) continue;
        const bool second = text == "opt" || text.ends_with("-opt");
        if (!second && text != "model" && !text.ends_with("-model")) continue;
        of = std::max(of, *total);
        optimizer = optimizer || second;
        (second ? shards[*number].second : shards[*number].first) = &file;
      }
      for (const auto& [number, pair] : shards) {
        const auto whole = [&](const FileView::Entry* file) {
          return file != nullptr &&
                 read_safetensors(files, fmt::format("{}/{}", checkpoint.path, file->name), *file)
                     .finished;
        };
        FoundShard shard{.name = fmt::format("{:07d}", number)};
        for (const FileView::Entry* file : {pair.first, pair.second})
          if (file != nullptr) shard.bytes += file->bytes;
        shard.finished = whole(pair.first) && (!optimizer || whole(pair.second));
        checkpoint.shards.push_back(std::move(shard));
      }
      if (checkpoint.shards.empty()) continue;
      checkpoint.expected = static_cast<std::uint32_t>(of);
      checkpoint.sealed =
          reached && *reached >= step &&
          json_with_key(files.head(checkpoint.path + "/common.json", 4096), "global_step");
      found.push_back(std::move(checkpoint));
    }
    return found;
  }

  const LayoutOptions options_;
};

}  // namespace

std::unique_ptr<CheckpointLayout> mindformers_layout(const LayoutOptions& options) {
  return std::make_unique<MindFormersLayout>(options);
}

}  // namespace muster::engine
