// What the verbs of `muster ranktable` share: bounded reading of inputs, writing tables to -o, and
// addresses of cards. Stateless functions. Blocking; the main thread.
//
// Only `show` needs a controller.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "client/commands/call/context.h"
#include "client/commands/call/options.h"
#include "common/engine/ranktable/findings.h"
#include "common/engine/ranktable/rank_table.h"

namespace muster::client {

void add_ranktable_generate(CLI::App& group, Context& context, int& exit);
void add_ranktable_merge(CLI::App& group, Context& context, int& exit);
void add_ranktable_convert(CLI::App& group, Context& context, int& exit);
void add_ranktable_check(CLI::App& group, Context& context, int& exit);
void add_ranktable_show(CLI::App& group, Context& context, int& exit);

// --- file.cc ---
// "-" means standard input. Every error is ErrorCode::InvalidArgument: "reading the rank table 'x':
// there is no such file".
Result<std::string> read_input(const std::string& path, std::string_view what, std::size_t most);

// Adds -o for the verbs that make a table. Empty = the current directory, "-" = standard output;
// otherwise a directory or a file.
void add_table_output(CLI::App& command, std::string& into);
// Writes the bytes, and nothing else, to standard output. Or writes a file of mode 0644 that
// appears as a whole, and prints its path. Returns the exit code.
int put_table(const Context& context, const std::string& output, const std::string& name,
              std::string_view bytes);

// Prints "muster: note: ..." on stderr, one a line.
void print_notes(const Context& context, const std::vector<ranktable::Finding>& notes);
// Returns "doing: what is wrong", or "doing: several problems:" with a line for each.
Error with_problems(std::string_view doing, std::string_view problems);

// --- addresses.cc ---
struct AddressSource {
  std::string conf = "/etc/hccn.conf";
  std::chrono::milliseconds tool_time{5000};  // limit of hccn_tool for one card
};
struct Addresses {
  std::map<std::uint32_t, std::string> by_device;
  std::string note;  // why the tool on PATH was not used; empty = it was used, or there is none
};
// Returns the address of every device. All come from `hccn_tool` on PATH. If the tool has no answer
// for one device, all come from the file.
Result<Addresses> card_addresses(const std::vector<std::uint32_t>& devices,
                                 const AddressSource& source);
struct ServerId {
  std::string id;
  std::string note;  // empty = the host's name resolves to it
};
// Returns the address that the host's name resolves to. If there is none, or only a loopback
// address, which every server has, it returns the address of the default route.
Result<ServerId> own_server_id();

// --- hosts.cc ---
// Reads hosts.yaml (or the same as JSON). The servers keep its order, and the ranks are numbered.
// Errors: every problem with its position.
Result<ranktable::RankTable> read_hosts(const std::string& path, ranktable::Version version);

}  // namespace muster::client
