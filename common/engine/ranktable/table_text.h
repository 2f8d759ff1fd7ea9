// Writes a rank table. Pure. The same table gives the same bytes everywhere.
//
// Tables of the vendor's tools give exactly the tools' bytes: key order, four blanks for each
// indent, no line end after the last brace, ASCII only.
#pragma once

#include <cstdint>
#include <string>

#include "common/engine/ranktable/rank_table.h"

namespace muster::ranktable {

enum class Layout : std::uint8_t {
  // hccl_tools.py and merge_hccl.py; for version 1.2 with the key order of the vendor's documents
  Tool,
  // the cloud launcher's conversion of a group list: one line; a server has only server_id and
  // device
  Launcher,
};

std::string table_text(const RankTable& table, Layout layout = Layout::Tool);

struct TableFile {
  std::string bytes;
  std::string hash;  // SHA-256
};
// Turns servers and devices in rank order into the file for every node of an attempt: numbers the
// ranks, checks, writes and hashes. Errors: InvalidArgument with one line for each problem.
Result<TableFile> make_table_file(RankTable table);

}  // namespace muster::ranktable
