#include "common/engine/ranktable/table_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

#include "common/digest/sha256.h"
#include "common/engine/ranktable/check_table.h"
#include "common/engine/ranktable/json_tree.h"

namespace muster::ranktable {
namespace {

// Writes as Python's json.dump: with an indent every value is on its own line; without one the
// separators are ", " and ": " on one line.
class Emitter {
 public:
  explicit Emitter(bool indented, std::size_t room) : indented_(indented) { out_.reserve(room); }

  void open(char bracket) {
    out_ += bracket;
    ++depth_;
    first_ = true;
  }
  void close(char bracket) {
    --depth_;
    if (!first_) line();
    out_ += bracket;
    first_ = false;
  }
  void item() {
    if (!first_) out_ += indented_ ? "," : ", ";
    first_ = false;
    line();
  }
  void key(std::string_view name) {
    item();
    append_json_string(out_, name);
    out_ += ": ";
  }
  void text(std::string_view name, std::string_view value) {
    key(name);
    append_json_string(out_, value);
  }
  void number(std::string_view name, std::size_t value) {
    std::array<char, 20> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    text(name, {digits.data(), static_cast<std::size_t>(end - digits.data())});
  }
  // A kept value has its own line ends and four blanks for each level, from column 0.
  void raw(const Kept& kept) {
    key(kept.key);
    for (const char c : kept.json) {
      if (c == '\n')
        line();
      else
        out_ += c;
    }
  }
  std::string take() { return std::move(out_); }

 private:
  void line() {
    if (!indented_) return;
    out_ += '\n';
    out_.append(depth_ * 4, ' ');
  }

  std::string out_;
  std::size_t depth_ = 0;
  bool indented_;
  bool first_ = true;
};

void write_device(Emitter& out, const Device& device, Version version, Layout layout) {
  out.item();
  out.open('{');
  out.number("device_id", device.device_id);
  if (!device.device_ip.empty()) out.text("device_ip", device.device_ip);
  if (version == Version::SuperPods && !device.super_device_id.empty())
    out.text("super_device_id", device.super_device_id);
  if (layout == Layout::Tool) {
    for (const Kept& kept : device.kept) out.raw(kept);
  }
  out.number("rank_id", device.rank_id);
  out.close('}');
}

void write_servers(Emitter& out, const RankTable& table, Layout layout) {
  out.number("server_count", table.servers.size());
  out.key("server_list");
  out.open('[');
  for (const Server& server : table.servers) {
    out.item();
    out.open('{');
    out.text("server_id", server.server_id);
    out.key("device");
    out.open('[');
    for (const Device& device : server.devices) write_device(out, device, table.version, layout);
    out.close(']');
    if (layout == Layout::Tool) {
      if (!server.host_nic_ip.empty()) out.text("host_nic_ip", server.host_nic_ip);
      if (!server.host_ip.empty()) out.text("host_ip", server.host_ip);
      for (const Kept& kept : server.kept) out.raw(kept);
    }
    out.close('}');
  }
  out.close(']');
}

void write_pods(Emitter& out, const RankTable& table) {
  bool any = false;
  for (const Server& server : table.servers) any = any || !server.super_pod_id.empty();
  if (!any) return;
  out.key("super_pod_list");
  out.open('[');
  for (const SuperPod& pod : super_pods(table)) {
    out.item();
    out.open('{');
    out.text("super_pod_id", pod.id);
    out.key("server_list");
    out.open('[');
    for (const std::size_t server : pod.servers) {
      out.item();
      out.open('{');
      out.text("server_id", table.servers[server].server_id);
      out.close('}');
    }
    out.close(']');
    out.close('}');
  }
  out.close(']');
}

}  // namespace

std::string table_text(const RankTable& table, Layout layout) {
  constexpr std::size_t kDeviceBytes = 160;
  Emitter out(layout == Layout::Tool,
              512 + table.rank_count() * kDeviceBytes + table.servers.size() * 256);
  out.open('{');
  const bool status_first = layout == Layout::Launcher || table.version == Version::SuperPods;
  if (status_first) out.text("status", "completed");
  out.text("version", to_string(table.version));
  write_servers(out, table, layout);
  if (table.version == Version::SuperPods) write_pods(out, table);
  if (!status_first) out.text("status", "completed");
  out.close('}');
  return out.take();
}

Result<TableFile> make_table_file(RankTable table) {
  number_ranks(table);
  if (const Findings findings = check(table, std::nullopt); !findings.problems.empty())
    return fail(ErrorCode::InvalidArgument, to_text(findings.problems, findings.left_out));
  TableFile file{.bytes = table_text(table)};
  file.hash = sha256_hex(file.bytes);
  return file;
}

}  // namespace muster::ranktable
