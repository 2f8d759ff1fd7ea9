// What a unified diff would change: names stay below the code, counts stay within the diff, and
// errors are sentences with their line.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "common/compat/code_patch/unified.h"
#include "tests/fuzz/target.h"

namespace muster::fuzz {
namespace {

using code_patch::DiffFile;

bool is_below_the_code(const std::string& name) { return code_patch::wrong_name(name).empty(); }

bool same(const DiffFile& one, const DiffFile& other) {
  return one.name == other.name && one.old_name == other.old_name && one.created == other.created &&
         one.deleted == other.deleted && one.added == other.added && one.removed == other.removed &&
         one.hunks == other.hunks;
}

void check_files(std::string_view input, const std::vector<DiffFile>& files) {
  require(!files.empty() && files.size() <= code_patch::kFilesMax, "as many files as there may be");
  const auto lines = static_cast<std::uint64_t>(std::ranges::count(input, '\n')) + 1;
  std::uint64_t counted = 0;
  for (const DiffFile& file : files) {
    require(is_below_the_code(file.name), "a name is of a file below the code", file.name);
    require(file.old_name.empty() || is_below_the_code(file.old_name), "so is its old one",
            file.old_name);
    require(!file.hunks.empty() || (file.added == 0 && file.removed == 0), "lines stand in hunks",
            file.name);
    counted += file.added + file.removed + file.hunks.size();
  }
  require(counted <= lines, "no more lines than the diff has");
}

}  // namespace

void diff(std::string_view input) {
  const auto files = code_patch::read_diff(input);
  if (files) {
    check_files(input, *files);
  } else {
    const std::string& text = files.error().message;
    require(files.error().code == ErrorCode::InvalidArgument && is_message(text) &&
                text.find('\n') == std::string::npos,
            "an error is a sentence", text);
    require(text.starts_with("line ") || text.starts_with("there is no change"),
            "and names its line", text);
  }
  if (input.empty() || input.ends_with('\n')) return;
  // The end of the last line has no meaning.
  const auto ended = code_patch::read_diff(std::string(input) + "\n");
  require(files.has_value() == ended.has_value(), "with a line end behind it it is the same diff");
  require(!files || std::ranges::equal(*files, *ended, same), "with the same files");
}

}  // namespace muster::fuzz
