// A rank table's bytes: the same table gives the same bytes everywhere, and for tables of the
// vendor's tools the very same bytes as theirs (key order, four blanks an indent, no line end
// behind the last brace, ASCII only). Pure.
#pragma once

#include <cstdint>
#include <string>

#include "common/engine/ranktable/rank_table.h"

namespace muster::ranktable {

enum class Layout : std::uint8_t {
  // hccl_tools.py and merge_hccl.py; version 1.2 as the vendor's documents order its keys
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
// From servers and devices in rank order to what every node of an attempt gets: numbers the ranks,
// checks, writes, hashes. Errors: InvalidArgument with every problem a line.
Result<TableFile> make_table_file(RankTable table);

}  // namespace muster::ranktable
