// What the verbs of `muster ranktable` share: inputs read with a bound, tables put where -o says,
// and addresses of cards. Only `show` needs a controller. Blocking; the main thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "client/commands/context.h"
#include "client/commands/options.h"
#include "common/engine/ranktable/findings.h"
#include "common/engine/ranktable/rank_table.h"

namespace muster::client {

void add_ranktable_generate(CLI::App& group, Context& context, int& exit);
void add_ranktable_merge(CLI::App& group, Context& context, int& exit);
void add_ranktable_convert(CLI::App& group, Context& context, int& exit);
void add_ranktable_check(CLI::App& group, Context& context, int& exit);
void add_ranktable_show(CLI::App& group, Context& context, int& exit);

// --- ranktable_file.cc ---
// "-" is standard input. Whatever is wrong is ErrorCode::InvalidArgument: "reading the rank table
// 'x': there is no such file".
Result<std::string> read_input(const std::string& path, std::string_view what, std::size_t most);

// -o of the verbs that make a table: empty = the current directory, "-" = standard output, a
// directory, or a file.
void add_table_output(CLI::App& command, std::string& into);
// The bytes, and nothing else, to standard output; or a file of mode 0644 that appears whole, whose
// path is then printed. The exit code.
int put_table(const Context& context, const std::string& output, const std::string& name,
              std::string_view bytes);

// "muster: note: ..." on stderr, one a line.
void print_notes(const Context& context, const std::vector<ranktable::Finding>& notes);
// "doing: what is wrong", or "doing: 3 problems:" with a line for each.
Error with_problems(std::string_view doing, std::string_view problems);

// --- ranktable_addresses.cc ---
struct AddressSource {
  std::string conf = "/etc/hccn.conf";
  std::chrono::milliseconds tool_time{5000};  // that hccn_tool may take for one card
};
struct Addresses {
  std::map<std::uint32_t, std::string> by_device;
  std::string note;  // why the tool on PATH was not used; empty = it was, or there is none
};
// Of every device, all from `hccn_tool` on PATH or, when it has no answer for one of them, all from
// the file.
Result<Addresses> card_addresses(const std::vector<std::uint32_t>& devices,
                                 const AddressSource& source);
struct ServerId {
  std::string id;
  std::string note;  // empty = the host's name resolves to it
};
// What the host's name resolves to; where that is nothing, or a loopback address, which every
// server has: the address of the default route.
Result<ServerId> own_server_id();

// --- ranktable_hosts.cc ---
// hosts.yaml (or the same as JSON) -> servers in its order, ranks numbered. Errors: every problem
// with its place.
Result<ranktable::RankTable> read_hosts(const std::string& path, ranktable::Version version);

}  // namespace muster::client
