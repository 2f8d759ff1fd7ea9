#include "common/name_service/getent.h"

#include <algorithm>

#include "common/io/file.h"
#include "common/process/tool.h"

namespace muster::name_service {
namespace {

constexpr std::size_t kNameMost = 255;
constexpr std::size_t kAnswerBytesMost = 256U << 10U;
// getent(1): exit codes
constexpr int kUnknownTable = 1, kNoEntry = 2;

}  // namespace

bool may_be_name(const std::string& name) {
  return !name.empty() && name.size() <= kNameMost && name.front() != '-' &&
         std::ranges::none_of(name, [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == ':';
         });
}

Result<std::optional<std::string>> ask_getent(const Tables& tables, const std::string& table,
                                              const std::string& key) {
  const auto program = process::find_program("getent", tables.path);
  if (!program) return std::optional<std::string>();
  process::ToolRunner tools;
  // musl's getent takes no "--", and may_be_name() refuses what looks like an option.
  process::ToolAnswer answer =
      tools
          .run({{.program = *program, .args = {table, key}}}, {"PATH=" + tables.path, "LC_ALL=C"},
               {.each = tables.most, .total = tables.most, .bytes = kAnswerBytesMost})
          .front();
  if (answer.absent || answer.status == kUnknownTable) return std::optional<std::string>();
  if (answer.status == kNoEntry) return fail(ErrorCode::NotFound, "the host knows no such entry");
  if (!answer.why.empty())
    return fail(ErrorCode::Unreachable, "getent gave no answer: " + answer.why);
  return std::optional(std::move(answer.output));
}

Result<std::string> read_table(const std::string& path) {
  auto text = io::read_regular_file(path, kTableBytesMost);
  if (!text && text.error().code == ErrorCode::NotFound) return std::string();
  return text;
}

}  // namespace muster::name_service
