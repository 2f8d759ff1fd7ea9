// The layouts' own parts, one file each (layout_megatron.cc, layout_mindformers.cc), and what they
// share.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/engine/layout.h"

namespace muster::engine {

std::unique_ptr<CheckpointLayout> megatron_layout(const LayoutOptions& options);
std::unique_ptr<CheckpointLayout> mindformers_layout(const LayoutOptions& options);

using Entries = std::vector<FileView::Entry>;

// Megatron's name, and MindFormers' from master on
inline constexpr const char* kTracker = "latest_checkpointed_iteration.txt";

// A file of that name; nullptr: there is none.
const FileView::Entry* find_file(const Entries& entries, std::string_view name);
// The step of PREFIX%0WIDTHd, the directory's whole name.
std::optional<std::int64_t> step_of_directory(const FileView::Entry& entry, std::string_view prefix,
                                              std::size_t width);
std::string step_directory(std::string_view prefix, std::size_t width, std::int64_t step);
// The step that the tracker of `dir` has reached. It is written in place: empty or garbled, it says
// nothing. One that names a step which is not there was not written by these saves (a copied
// directory) and says nothing either. `steps`: newest first.
std::optional<std::int64_t> tracker_step(const FileView& files, const std::string& dir,
                                         const std::vector<std::int64_t>& steps);
// A JSON object to its end that holds this key; a few hundred bytes, written in place.
bool json_with_key(std::string_view text, std::string_view key);

}  // namespace muster::engine
