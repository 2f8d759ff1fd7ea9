// The parts that the layouts share. Each engine has its own (../megatron/checkpoints.cc, ...).
// Pure, except that the functions read files through the caller's FileView.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/engine/model/layout.h"

namespace muster::engine {

using Entries = std::vector<FileView::Entry>;

// Megatron's name; also MindFormers' from master on
inline constexpr const char* kTracker = "latest_checkpointed_iteration.txt";

// The file of that name; nullptr: there is none.
const FileView::Entry* find_file(const Entries& entries, std::string_view name);
// The step, if the directory's whole name is PREFIX%0WIDTHd.
std::optional<std::int64_t> step_of_directory(const FileView::Entry& entry, std::string_view prefix,
                                              std::size_t width);
std::string step_directory(std::string_view prefix, std::size_t width, std::int64_t step);
// The step that the tracker of `dir` has reached. `steps`: newest first.
//
// The engine writes the tracker in place, so an empty or garbled tracker gives nothing. A tracker
// with a step that does not exist gives nothing either: these saves did not write it (a copied
// directory).
std::optional<std::int64_t> tracker_step(const FileView& files, const std::string& dir,
                                         const std::vector<std::int64_t>& steps);
// Whether the text is a complete JSON object with this key. The object has a few hundred bytes and
// is written in place.
bool json_with_key(std::string_view text, std::string_view key);

}  // namespace muster::engine
