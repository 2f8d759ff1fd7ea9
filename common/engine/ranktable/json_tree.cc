#include "common/engine/ranktable/json_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/engine/ranktable/words.h"

namespace muster::ranktable {
namespace {

// nlohmann's messages are "[json.exception.parse_error.101] parse error at line 1, column 2: syntax
// error while ...".
std::string plain(std::string_view what) {
  if (const std::size_t end = what.find("] ");
      what.starts_with('[') && end != std::string_view::npos)
    what.remove_prefix(end + 2);
  constexpr std::string_view kAt = "parse error at ";
  if (what.starts_with(kAt)) what.remove_prefix(kAt.size());
  constexpr std::size_t kMost = 200;
  std::string out(what.substr(0, kMost));
  std::ranges::replace_if(
      out,
      [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F;
      },
      '?');
  return what.size() > kMost ? out + "..." : out;
}

class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return scalar(Json::Kind::Null, {}); }
  bool boolean(bool value) override { return scalar(Json::Kind::Bool, value ? "true" : "false"); }
  bool number_integer(std::int64_t value) override {
    return scalar(Json::Kind::Number, std::to_string(value));
  }
  bool number_unsigned(std::uint64_t value) override {
    return scalar(Json::Kind::Number, std::to_string(value));
  }
  bool number_float(double, const std::string& text) override {
    return scalar(Json::Kind::Number, text);
  }
  bool string(std::string& value) override { return scalar(Json::Kind::String, std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::Kind::Object); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::Kind::Array); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    auto& keys = levels_.back().keys;
    if (keys.size() >= kJsonKeysMax)
      return refuse(fmt::format("one object has more than {} keys", kJsonKeysMax));
    if (std::ranges::find(keys, name) != keys.end())
      return refuse(fmt::format(
          "key '{}' is twice in one object, and readers disagree on which of them counts",
          shown(name)));
    keys.push_back(std::move(name));
    return true;
  }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::json::exception& error) override {
    return refuse("this is not JSON: " + plain(error.what()));
  }

  Json root;
  std::string refusal;

 private:
  bool refuse(std::string why) {
    refusal = std::move(why);
    return false;
  }
  bool scalar(Json::Kind kind, std::string text) {
    Json value;
    value.kind = kind;
    value.text = std::move(text);
    return add(std::move(value));
  }
  bool open(Json::Kind kind) {
    if (levels_.size() >= kJsonDepthMax)
      return refuse(fmt::format("it is nested deeper than {} levels", kJsonDepthMax));
    levels_.emplace_back().kind = kind;
    return true;
  }
  bool close() {
    Json value = std::move(levels_.back());
    levels_.pop_back();
    return add(std::move(value));
  }
  bool add(Json value) {
    if (++values_ > kJsonValuesMax)
      return refuse(fmt::format("it has more than {} values", kJsonValuesMax));
    if (levels_.empty())
      root = std::move(value);
    else
      levels_.back().items.push_back(std::move(value));
    return true;
  }

  std::vector<Json> levels_;
  std::size_t values_ = 0;
};

void append_unit(std::string& out, std::uint32_t unit) {
  fmt::format_to(std::back_inserter(out), "\\u{:04x}", unit);
}

void append_code_point(std::string& out, std::uint32_t code) {
  if (code < 0x10000) {
    append_unit(out, code);
    return;
  }
  append_unit(out, 0xD800 + ((code - 0x10000) >> 10));
  append_unit(out, 0xDC00 + ((code - 0x10000) & 0x3FF));
}

// Returns the code point at text[at] and moves `at` past it. A byte that begins no code point gives
// U+FFFD.
std::uint32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const std::uint32_t lead = byte(at);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xC2 && lead < 0xE0 ? 2
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                                                           : 0;
  std::uint32_t code = length == 1   ? lead
                       : length == 2 ? lead & 0x1F
                       : length == 3 ? lead & 0x0F
                                     : lead & 0x07;
  bool sound = length > 0;
  for (std::size_t i = 1; i < length; ++i) {
    sound = sound && (byte(at + i) & 0xC0) == 0x80;
    code = (code << 6) | (byte(at + i) & 0x3F);
  }
  if (length == 3) sound = sound && code >= 0x800 && !(code >= 0xD800 && code < 0xE000);
  if (length == 4) sound = sound && code >= 0x10000 && code < 0x110000;
  at += sound ? length : 1;
  return sound ? code : 0xFFFD;
}

void append_value(std::string& out, const Json& value, std::size_t depth) {
  const auto line = [&out](std::size_t level) {
    out += '\n';
    out.append(level * 4, ' ');
  };
  switch (value.kind) {
    case Json::Kind::Null: out += "null"; return;
    case Json::Kind::Bool:
    case Json::Kind::Number: out += value.text; return;
    case Json::Kind::String: append_json_string(out, value.text); return;
    case Json::Kind::Array:
    case Json::Kind::Object: break;
  }
  const bool object = value.is(Json::Kind::Object);
  out += object ? '{' : '[';
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    if (i > 0) out += ',';
    line(depth + 1);
    if (object) {
      append_json_string(out, value.keys[i]);
      out += ": ";
    }
    append_value(out, value.items[i], depth + 1);
  }
  if (!value.items.empty()) line(depth);
  out += object ? '}' : ']';
}

}  // namespace

const Json* Json::get(std::string_view key) const {
  const auto found = std::ranges::find(keys, key);
  return found == keys.end() ? nullptr : &items[static_cast<std::size_t>(found - keys.begin())];
}

std::string_view kind_name(Json::Kind kind) {
  switch (kind) {
    case Json::Kind::Null: return "null";
    case Json::Kind::Bool: return "true or false";
    case Json::Kind::Number: return "a number";
    case Json::Kind::String: return "a string";
    case Json::Kind::Array: return "a list";
    case Json::Kind::Object: return "an object";
  }
  return "";
}

Result<Json> read_json(std::string_view text) {
  if (text.size() > kTextBytesMax)
    return fail(ErrorCode::InvalidArgument,
                fmt::format("it is longer than {} MiB", kTextBytesMax >> 20));
  if (trimmed(text).empty()) return fail(ErrorCode::InvalidArgument, "it is empty");
  Builder builder;
  if (!nlohmann::json::sax_parse(text, &builder))
    return fail(ErrorCode::InvalidArgument,
                builder.refusal.empty() ? "this is not JSON" : builder.refusal);
  return std::move(builder.root);
}

std::string json_text(const Json& value) {
  std::string out;
  append_value(out, value, 0);
  return out;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  const auto plain_char = [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7F &&
           c != '"' && c != '\\';
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = static_cast<std::size_t>(
        std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), plain_char) -
        text.begin());
    out.append(text.substr(at, end - at));
    at = end;
    if (at == text.size()) break;
    switch (text[at]) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      default: append_code_point(out, next_code_point(text, at)); continue;
    }
    ++at;
  }
  out += '"';
}

}  // namespace muster::ranktable
