#include "common/compat/launcher/draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/base/controls.h"
#include "common/base/utf8.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kNameMost = 63;  // common/spec: a job's name

bool letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// A plain scalar if every YAML reader takes it for exactly this text; otherwise in double quotes,
// with JSON's escapes.
std::string scalar(std::string_view text) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"true", "false", "null", "yes", "no", "on", "off", "y", "n"});
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const bool begins =
      !text.empty() &&
      ((letter_or_digit(text.front()) && (text.front() < '0' || text.front() > '9')) ||
       text.front() == '/');
  const bool plain =
      begins && std::ranges::all_of(text, [](char c) {
        return letter_or_digit(c) || std::string_view("_./-").find(c) != std::string_view::npos;
      });
  if (plain && std::ranges::find(kWords, lower) == kWords.end()) return std::string(text);
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else if (c == '\xc2' && i + 1 < text.size() &&
               static_cast<unsigned char>(text[i + 1]) < 0xa0) {
      // C1 controls, which YAML does not accept unescaped
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(text[++i]));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string flow_list(const std::vector<std::string>& words) {
  std::string out = "[";
  for (const std::string& word : words) out += (out.size() > 1 ? ", " : "") + scalar(word);
  return out + "]";
}

// Quotes a word for a value that is split like a shell's words.
std::string shell_word(std::string_view word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](char c) {
    return letter_or_digit(c) ||
           std::string_view("_./:=,+@%-${}[]").find(c) != std::string_view::npos;
  });
  if (plain) return std::string(word);
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// One comment line. The text may come from a script in another encoding, such as GBK: bytes that no
// YAML reader accepts become '?'.
std::string comment(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t good = utf8_prefix(text);
    out += without_controls(text.substr(0, good));
    text.remove_prefix(good);
    if (text.empty()) break;
    out += '?';
    text.remove_prefix(1);
  }
  return out;
}

class Writer {
 public:
  explicit Writer(const Draft& draft) : draft_(draft) {}

  void remarks(std::string_view key, int depth) {
    const auto found = draft_.remarks.find(key);
    if (found == draft_.remarks.end()) return;
    for (const std::string& text : found->second)
      out_ += indent(depth) + "# " + comment(text) + "\n";
  }
  // `raw` is already YAML. An empty one is not written.
  void value(std::string_view key, const std::string& raw) {
    const std::size_t dot = key.rfind('.');
    const int depth = static_cast<int>(std::ranges::count(key, '.'));
    if (raw.empty()) return;
    remarks(key, depth);
    out_ += fmt::format("{}{}: {}\n", indent(depth),
                        key.substr(dot == std::string_view::npos ? 0 : dot + 1), raw);
  }
  void text(std::string_view key, std::string_view text) {
    if (!text.empty()) value(key, scalar(text));
  }
  void map(std::string_view key) {
    remarks(key, static_cast<int>(std::ranges::count(key, '.')));
    const std::size_t dot = key.rfind('.');
    out_ += fmt::format("{}{}:\n", indent(static_cast<int>(std::ranges::count(key, '.'))),
                        key.substr(dot == std::string_view::npos ? 0 : dot + 1));
  }
  // Writes each option and its values on one line.
  void words(std::string_view key, const std::vector<std::string>& words) {
    if (words.empty()) return;
    if (std::ranges::any_of(words, [](const std::string& word) { return has_controls(word); }))
      return value(key, flow_list(words));
    std::string raw = "|";
    for (std::size_t i = 0; i < words.size(); ++i)
      raw += (i == 0 || words[i].starts_with('-')
                  ? "\n" + indent(static_cast<int>(std::ranges::count(key, '.')) + 1)
                  : " ") +
             shell_word(words[i]);
    value(key, raw);
  }
  void variables(std::string_view key, const std::map<std::string, std::string>& env) {
    map(key);
    const std::string space = indent(static_cast<int>(std::ranges::count(key, '.')) + 1);
    for (const auto& [name, text] : env)
      out_ += fmt::format("{}{}: {}\n", space, scalar(name), scalar(text));
  }
  std::string take() { return std::move(out_); }

 private:
  static std::string indent(int depth) {
    return std::string(static_cast<std::size_t>(depth) * 2, ' ');
  }
  const Draft& draft_;
  std::string out_;
};

std::string devices_text(const Draft& draft) {
  const auto& ids = draft.device_ids;
  if (ids.empty()) return std::to_string(draft.devices);
  bool row = true;
  for (std::size_t i = 1; i < ids.size(); ++i) row = row && ids[i] == ids[i - 1] + 1;
  if (row) return fmt::format("\"[{},{})\"", ids.front(), ids.back() + 1);
  std::string out = "[";
  for (const std::uint32_t id : ids) out += (out.size() > 1 ? ", " : "") + std::to_string(id);
  return out + "]";
}

}  // namespace

std::string to_yaml(const Draft& draft) {
  Writer writer(draft);
  writer.remarks("", 0);
  writer.text("name", draft.name);
  writer.text("engine", draft.engine);
  writer.map("code");
  writer.text("code.at", draft.code);
  if (!draft.python.empty() || !draft.env.empty() || draft.remarks.contains("runtime.env")) {
    writer.map("runtime");
    writer.text("runtime.python", draft.python);
    if (!draft.env.empty())
      writer.variables("runtime.env", draft.env);
    else
      writer.value("runtime.env", draft.remarks.contains("runtime.env") ? "{}" : "");
  }
  writer.map("launch");
  if (draft.per_node) writer.text("launch.per", "node");
  writer.text("launch.launcher", draft.launcher);
  writer.text("launch.mode", draft.mode);
  if (!draft.run.empty()) writer.value("launch.run", flow_list(draft.run));
  writer.text("launch.script", draft.script);
  writer.text("launch.config", draft.config);
  writer.words("launch.args", draft.args);
  writer.text("launch.cwd", draft.cwd);
  writer.map("resources");
  writer.value("resources.nodes", std::to_string(draft.nodes));
  writer.value("resources.devices", devices_text(draft));
  writer.text("resources.rank_table", draft.rank_table);
  return writer.take();
}

std::string literal(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '$' ? std::string("$$") : std::string(1, c);
  return out;
}

std::vector<std::string> literal(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words) out.push_back(literal(word));
  return out;
}

std::string job_name(std::string_view path) {
  std::string_view stem = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  for (const std::string_view ending : {".py", ".sh", ".bash"})
    if (stem.ends_with(ending) && stem.size() > ending.size()) stem.remove_suffix(ending.size());
  std::string name;
  for (const char c : stem.substr(0, kNameMost)) {
    if (c >= 'A' && c <= 'Z')
      name += static_cast<char>(c - 'A' + 'a');
    else
      name += letter_or_digit(c) || c == '.' || c == '_' ? c : '-';
  }
  const auto edge = [](char c) { return !letter_or_digit(c); };
  while (!name.empty() && edge(name.back())) name.pop_back();
  name.erase(0, static_cast<std::size_t>(std::ranges::find_if_not(name, edge) - name.begin()));
  return name.empty() ? "job" : name;
}

}  // namespace muster::launcher
