// Formats a launch as text, for `muster env` and `muster plan`. Pure.
#pragma once

#include <string>
#include <vector>

#include "client/render/json_text.h"
#include "client/render/style.h"
#include "muster/v1/job_service.pb.h"

namespace muster::render {

// Quotes a word so that a POSIX shell reads the same word back.
std::string shell_quote(const std::string& word);
std::string command_text(const v1::RankLaunch& launch);
std::string launch_text(const v1::RankLaunch& launch, const Style& style);
std::string auxiliary_text(const v1::LaunchedAuxiliary& auxiliary, const Style& style);

// Lists the files that are written on nodes before a start, a line each. With Contents::Yes it adds
// their content, as far as the answer has it.
enum class Contents : std::uint8_t { No, Yes };
template <class Files>
std::string files_text(const Files& files, Contents contents, const Style& style);
std::string file_text(const v1::LaunchedFile& file, Contents contents, const Style& style);

// Returns what runtime.setup runs on every node, or an empty text.
std::string setup_text(const v1::JobSpec& spec, const Style& style);

// Returns one document with a rank's launch and the files and auxiliary processes of its node, for
// Json, Jsonl and Yaml.
std::string launch_document(const v1::GetRankLaunchResponse& answer, Format format);

template <class Files>
std::string files_text(const Files& files, Contents contents, const Style& style) {
  std::string out;
  for (const v1::LaunchedFile& file : files) out += file_text(file, contents, style);
  return out;
}

}  // namespace muster::render
