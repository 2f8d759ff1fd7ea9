// A file view in memory, and files as the engines' savers write them, for tests of layouts. A test
// owns the view. It runs on the test's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/engine/model/layout.h"

namespace muster::engine {

// A tree of files in memory.
class MemoryView final : public FileView {
 public:
  std::map<std::string, std::string> files;
  std::map<std::string, std::uint32_t> modes;  // of the files whose mode the view knows
  bool parts = true;                           // it can read from the middle of a file

  [[nodiscard]] std::vector<Entry> list(const std::string& dir) const override {
    std::map<std::string, Entry> entries;
    for (const auto& [path, content] : files) {
      if (!path.starts_with(dir + "/")) continue;
      const std::string rest = path.substr(dir.size() + 1);
      const std::size_t slash = rest.find('/');
      Entry entry{.name = rest.substr(0, slash), .directory = slash != std::string::npos};
      if (!entry.directory) {
        entry.bytes = content.size();
        if (const auto mode = modes.find(path); mode != modes.end()) entry.mode = mode->second;
      }
      if (!entry.name.empty()) entries[entry.name] = entry;
    }
    std::vector<Entry> result;
    for (auto& [name, entry] : entries) result.push_back(entry);
    return result;
  }
  [[nodiscard]] std::string head(const std::string& file, std::size_t most) const override {
    const auto found = files.find(file);
    return found == files.end() ? "" : found->second.substr(0, most);
  }
  [[nodiscard]] std::string tail(const std::string& file, std::size_t most) const override {
    const auto found = files.find(file);
    if (found == files.end()) return "";
    return found->second.substr(found->second.size() - std::min(most, found->second.size()));
  }
  [[nodiscard]] std::string part(const std::string& file, std::uint64_t from,
                                 std::size_t most) const override {
    const auto found = files.find(file);
    return !parts || found == files.end() || from >= found->second.size()
               ? ""
               : found->second.substr(from, most);
  }
};

// As the controller judges it.
inline bool complete(const FoundCheckpoint& found) {
  return found.sealed && found.expected > 0 && found.shards.size() == found.expected &&
         std::ranges::all_of(found.shards, &FoundShard::finished);
}

inline void little(std::string& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

// An archive of one stored file, as torch.save writes it; with zip64 as its writer does for large
// files.
inline std::string zip(std::size_t payload, bool zip64 = false) {
  std::string text;
  little(text, 0x04034b50, 4);
  text.append(26, '\0');
  text.append(payload, 'x');
  const std::size_t directory = text.size();
  little(text, 0x02014b50, 4);
  text.append(42, '\0');
  const std::size_t bytes = text.size() - directory;
  if (zip64) {
    const std::size_t end64 = text.size();
    little(text, 0x06064b50, 4);
    little(text, 44, 8);
    text.append(12, '\0');
    little(text, 1, 8);
    little(text, 1, 8);
    little(text, bytes, 8);
    little(text, directory, 8);
    little(text, 0x07064b50, 4);
    little(text, 0, 4);
    little(text, end64, 8);
    little(text, 1, 4);
  }
  little(text, 0x06054b50, 4);
  little(text, 0, 4);
  little(text, 1, 2);
  little(text, 1, 2);
  little(text, bytes, 4);
  little(text, zip64 ? 0xffffffff : directory, 4);
  little(text, 0, 2);
  return text;
}

// One value of a MindSpore .ckpt: Checkpoint{value{tag, tensor{dims, type, content}}}
// (checkpoint.proto; written by serialization.py).
inline std::string varint(std::uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text.push_back(static_cast<char>((value & 0x7f) | 0x80));
  text.push_back(static_cast<char>(value));
  return text;
}
inline std::string field(char key, std::string_view bytes) {
  return key + varint(bytes.size()) + std::string(bytes);
}
inline std::string ckpt_value(std::string_view tag, std::string_view type, std::string_view content,
                              std::uint64_t dims) {
  const std::string tensor = '\x08' + varint(dims) + field('\x12', type) + field('\x1a', content);
  return field('\x0a', field('\x0a', tag) + field('\x12', tensor));
}
inline std::string scalar(std::int64_t value, int bytes) {
  std::string text;
  little(text, static_cast<std::uint64_t>(value), bytes);
  return text;
}
// Weights and optimizer, then what MindFormers appends (r0.8 and later: the batch size last).
inline std::string ckpt(std::int64_t epoch, std::int64_t step, std::size_t weights = 300,
                        bool closing = true) {
  std::string text =
      ckpt_value("model.layers.0.w", "Float16", std::string(weights, 'w'), weights / 2);
  text += ckpt_value("adam_m.model.layers.0.w", "Float32", std::string(weights, 'm'), weights / 4);
  if (!closing) return text;
  text += ckpt_value("epoch_num", "Int64", scalar(epoch, 8), 0);
  text += ckpt_value("step_num", "Int64", scalar(step, 8), 0);
  text += ckpt_value("global_step", "Int32", scalar(step, 4), 1);
  text += ckpt_value("loss_scale", "Float32", std::string("\0\0\x80\x47", 4), 0);
  text += ckpt_value("global_batch_size", "Int64", scalar(64, 8), 0);
  return text;
}
// Two weights and MindFormers' counters; `pad` is the number of blanks after the JSON.
inline std::string safetensors(std::int64_t epoch, std::int64_t step, std::size_t weights = 300,
                               std::size_t pad = 0) {
  const auto entry = [](std::string_view name, std::string_view type, std::size_t from,
                        std::size_t to) {
    return "\"" + std::string(name) + "\":{\"dtype\":\"" + std::string(type) + "\",\"shape\":[" +
           std::to_string(to - from) + "],\"data_offsets\":[" + std::to_string(from) + "," +
           std::to_string(to) + "]}";
  };
  std::string json = "{\"__metadata__\":{\"format\":\"ms\"}," + entry("w", "F32", 0, weights) +
                     "," + entry("epoch_num", "I32", weights, weights + 4) + "," +
                     entry("step_num", "I32", weights + 4, weights + 8) + "," +
                     entry("w \\\" data_offsets", "F16", weights + 8, 2 * weights + 8) + "}";
  json.append(pad, ' ');
  std::string text;
  little(text, json.size(), 8);
  return text + json + std::string(weights, 'w') + scalar(epoch, 4) + scalar(step, 4) +
         std::string(weights, 'v');
}

}  // namespace muster::engine
