// Runs of rclone against one store. It owns what such a run needs: the configuration with the key,
// in memory (memory_file.h). Thread-safe; run() blocks.
//
// A run sees nothing of the agent's environment and of rclone's own files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/io/memory_file.h"
#include "common/process/tool.h"
#include "common/store/store_url.h"
#include "muster/v1/store_service.pb.h"

namespace muster::agent {

// How long a run waits for the end itself: rclone's own defaults go on for many minutes.
enum class Patience : std::uint8_t {
  Short,  // somebody waits for the answer
  Long,   // a transfer goes on over short outages
};

class RcloneRun {
 public:
  // `key`: what the profile's secret has; empty: it names none. InvalidArgument: the key is none of
  // such a store. Io, ResourceExhausted: the node has no memory for it.
  static Result<RcloneRun> make(const v1::StoreProfile& profile, const store::Url& url,
                                const std::string& key);

  // The store has a CA of its own: all nodes trust the same one.
  [[nodiscard]] bool has_own_ca() const { return has_ca_; }
  // "store:bucket/dir": the URL, for an argument.
  [[nodiscard]] const std::string& source() const { return source_; }
  // "store:bucket/": the directory that the URL is in.
  [[nodiscard]] std::string source_above() const;
  // `verb`: "lsjson", with its own options and arguments behind. Its log and its output come
  // together. `absent`: the node has no rclone. The runner remembers an rclone that does not die.
  // rclone ends with this process, however that ends, where there is setpriv (util-linux 2.33).
  process::ToolAnswer run(process::ToolRunner& runner, std::string_view verb,
                          std::vector<std::string> words, Patience patience,
                          const process::ToolLimits& limits) const;

 private:
  RcloneRun(io::MemoryFile config, io::MemoryFile known_hosts, io::MemoryFile ca)
      : config_(std::move(config)), known_hosts_(std::move(known_hosts)), ca_(std::move(ca)) {}

  io::MemoryFile config_, known_hosts_, ca_;
  bool has_ca_ = false;
  std::string source_, proxy_;
};

// Why a run failed. An end may say anything, also the key.
struct RunFailure {
  std::string text;     // its last error, as a part of a sentence: "rclone: a/b: 403 Forbidden"
  std::string message;  // the same without the name of an object; empty: rclone says nothing
};
RunFailure why_failed(const process::ToolAnswer& answer);

}  // namespace muster::agent
