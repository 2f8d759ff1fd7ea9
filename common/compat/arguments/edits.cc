#include "common/compat/arguments/edits.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace muster {
namespace {

using Kind = ArgumentEdit::Kind;
using Json = nlohmann::ordered_json;

// How a kind is written: {"NAME": {"FIRST": option, "SECOND": value}}, or {"NAME": TEXT} where it
// has one text.
struct Form {
  Kind kind;
  const char* name;
  const char* first = nullptr;   // nullptr: one text
  const char* second = nullptr;  // nullptr: no other field
};
constexpr std::array kForms = {
    Form{.kind = Kind::OnlyWith, .name = "onlyWith", .first = "options"},
    Form{.kind = Kind::OnlyScript, .name = "onlyScript"},
    Form{.kind = Kind::Set, .name = "set", .first = "option", .second = "value"},
    Form{.kind = Kind::Put, .name = "put", .first = "option", .second = "value"},
    Form{.kind = Kind::Drop, .name = "drop"},
    Form{.kind = Kind::DropValue, .name = "dropValue"},
    Form{.kind = Kind::Match, .name = "match", .first = "flag", .second = "other"},
    Form{.kind = Kind::Saves, .name = "saves", .first = "option", .second = "weightsAloneFlag"},
    Form{.kind = Kind::Loads, .name = "loads"},
};

const Form& form_of(Kind kind) { return *std::ranges::find(kForms, kind, &Form::kind); }

Json json_of(const ArgumentEdit& edit) {
  const Form& form = form_of(edit.kind);
  if (form.first == nullptr)
    return {{form.name, edit.kind == Kind::OnlyScript ? edit.value : edit.option}};
  Json fields = Json::object();
  if (edit.kind == Kind::OnlyWith) {
    fields[form.first] = edit.options;
  } else {
    fields[form.first] = edit.option;
    if (!edit.value.empty()) fields[form.second] = edit.value;
  }
  return {{form.name, std::move(fields)}};
}

std::unexpected<Error> invalid(const std::string& why) {
  return fail(ErrorCode::InvalidArgument,
              "changing the training program's arguments: MUSTER_SHIM_EDITS is no list of "
              "changes: " +
                  why + "; leave the variable as muster sets it");
}

bool read_texts(const Json& from, std::vector<std::string>& to) {
  if (!from.is_array()) return false;
  for (const Json& one : from) {
    if (!one.is_string()) return false;
    to.push_back(one.get<std::string>());
  }
  return true;
}

bool read_fields(const Json& from, const Form& form, ArgumentEdit& to) {
  if (!from.is_object()) return false;
  for (const auto& [name, field] : from.items()) {
    if (name == form.first && to.kind == Kind::OnlyWith) {
      if (!read_texts(field, to.options)) return false;
    } else if (!field.is_string()) {
      return false;
    } else if (name == form.first) {
      to.option = field.get<std::string>();
    } else if (form.second != nullptr && name == form.second) {
      to.value = field.get<std::string>();
    } else {
      return false;
    }
  }
  return true;
}

bool read_edit(const Json& from, ArgumentEdit& to) {
  if (!from.is_object() || from.size() != 1) return false;
  const auto form =
      std::ranges::find_if(kForms, [&](const Form& one) { return from.begin().key() == one.name; });
  if (form == kForms.end()) return false;
  to.kind = form->kind;
  if (form->first != nullptr) {
    if (!read_fields(*from.begin(), *form, to)) return false;
  } else {
    if (!from.begin()->is_string()) return false;
    (to.kind == Kind::OnlyScript ? to.value : to.option) = from.begin()->get<std::string>();
  }
  return to.kind == Kind::OnlyWith || to.kind == Kind::OnlyScript || to.option.starts_with("--");
}

}  // namespace

std::string json_of(const ArgumentEdits& edits) {
  Json all = Json::object();
  for (const ArgumentEdit& edit : edits) all["edits"].push_back(json_of(edit));
  // The texts of a spec are UTF-8. Anything else is replaced, so that no exception leaves.
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<ArgumentEdits> parse_edits(std::string_view json) {
  ArgumentEdits edits;
  if (json.empty()) return edits;
  const Json parsed = Json::parse(json, nullptr, false);
  if (!parsed.is_object()) return invalid("it is no JSON object");
  for (const auto& [name, list] : parsed.items()) {
    if (name != "edits" || !list.is_array()) return invalid("it has more than a list 'edits'");
    for (const Json& one : list) {
      ArgumentEdit edit;
      if (!read_edit(one, edit))
        return invalid("change " + std::to_string(edits.size() + 1) + " is of no known form");
      edits.push_back(std::move(edit));
    }
  }
  return edits;
}

}  // namespace muster
