// A launch as text: what `muster env` and `muster plan` print. Pure.
#pragma once

#include <string>
#include <vector>

#include "client/render/json_text.h"
#include "client/render/style.h"
#include "muster/v1/job_service.pb.h"

namespace muster::render {

// Quoted so that a POSIX shell reads the same words back.
std::string shell_quote(const std::string& word);
std::string command_text(const v1::RankLaunch& launch);
std::string launch_text(const v1::RankLaunch& launch, const Style& style);
std::string auxiliary_text(const v1::LaunchedAuxiliary& auxiliary, const Style& style);

// What is written on nodes before a start, a line each.
// Yes: also what is in them, as far as the answer has it
enum class Contents : std::uint8_t { No, Yes };
template <class Files>
std::string files_text(const Files& files, Contents contents, const Style& style);
std::string file_text(const v1::LaunchedFile& file, Contents contents, const Style& style);

// What runtime.setup runs on every node. Empty: nothing.
std::string setup_text(const v1::JobSpec& spec, const Style& style);

// A rank's launch with the files and auxiliary processes of its node as one document, for Json,
// Jsonl and
// Yaml.
std::string launch_document(const v1::GetRankLaunchResponse& answer, Format format);

template <class Files>
std::string files_text(const Files& files, Contents contents, const Style& style) {
  std::string out;
  for (const v1::LaunchedFile& file : files) out += file_text(file, contents, style);
  return out;
}

}  // namespace muster::render
