// Reads the rows of the key table that have a form of their own.
#include <fmt/format.h>

#include <filesystem>

#include "common/spec/read_spec.h"
#include "common/spec/values.h"
#include "common/text/words.h"

namespace muster::spec {

const std::map<std::string_view, SpecReader::Special>& SpecReader::specials() {
  static const std::map<std::string_view, Special> table = {
      {"code.from", &SpecReader::code_from},
      {"code.at", &SpecReader::code_at},
      {"code.patches", &SpecReader::code_patches},
      {"runtime.image", &SpecReader::image},
      {"runtime.mounts", &SpecReader::mounts},
      {"runtime.setup", &SpecReader::setup},
      {"runtime.setup.run", &SpecReader::setup_run},
      {"runtime.limits.nofile", &SpecReader::nofile},
      {"runtime.limits.memlock", &SpecReader::memlock},
      {"runtime.limits.memory", &SpecReader::memory},
      {"runtime.limits.cpus", &SpecReader::cpus},
      {"launch.run", &SpecReader::launch_run},
      {"launch.args", &SpecReader::launch_args},
      {"launch.config", &SpecReader::launch_config},
      {"launch.lockstep", &SpecReader::launch_lockstep},
      {"launch.patch", &SpecReader::config_patch},
      {"resources.devices", &SpecReader::devices},
      {"resources.hosts", &SpecReader::hosts},
      {"resources.rank_table", &SpecReader::rank_table},
      {"network.master_port", &SpecReader::master_port},
      {"inputs", &SpecReader::inputs},
      {"start.from", &SpecReader::start_from},
      {"start.as", &SpecReader::start_as},
      {"start.step", &SpecReader::start_step},
      {"stages", &SpecReader::no_stages},
      {"stages.NAME.after", &SpecReader::no_stages},
      {"stages.NAME.creates", &SpecReader::no_stages},
      {"checkpoint.dir", &SpecReader::checkpoint_dir},
      {"checkpoint.storage", &SpecReader::checkpoint_storage},
      {"resume", &SpecReader::resume},
      {"resume.args", &SpecReader::resume_args},
      {"resume.drop", &SpecReader::resume_drop},
      {"resume.patch", &SpecReader::config_patch},
      {"observe.profile", &SpecReader::profile},
      {"observe.profile.start", &SpecReader::profile_step},
      {"observe.profile.stop", &SpecReader::profile_step},
      {"observe.profile.ranks", &SpecReader::profile_ranks},
      {"observe.dump", &SpecReader::dump},
      {"observe.plog", &SpecReader::plog},
      {"observe.progress", &SpecReader::progress},
      {"observe.progress.step", &SpecReader::progress_part},
      {"observe.progress.loss", &SpecReader::progress_part},
      {"observe.progress.total", &SpecReader::progress_part},
      {"schedule.after", &SpecReader::schedule_after},
      {"success", &SpecReader::success},
      {"success.regex", &SpecReader::success_part},
      {"success.file", &SpecReader::success_part},
  };
  return table;
}

// Splits a string like a shell's words, takes a list unchanged, and turns a map into `--key value`.
// Keeps the position of each word.
std::vector<std::string> SpecReader::words(const Node& node, const KeyRow& row, bool map_too) {
  std::vector<std::string> result;
  const std::string key(row.key);
  const auto add = [&](const Node& at, std::string word) {
    places_[fmt::format("{}[{}]", key, result.size())] = {at.line, at.column};
    result.push_back(std::move(word));
  };
  switch (node.kind) {
    case Node::Kind::Null: break;
    case Node::Kind::Scalar: {
      auto split = split_words(node.text);
      if (!split) {
        problem(node, key, split.error().message);
        break;
      }
      if (split->size() > kWordsMax) {
        problem(node, key, fmt::format("has {} words, at most {}", split->size(), kWordsMax));
        break;
      }
      for (std::string& word : *split) add(node, std::move(word));
      break;
    }
    case Node::Kind::List:
      for (std::size_t i = 0; i < node.items.size(); ++i) {
        const Node& item = node.items[i];
        if (item.bad) continue;
        if (item.kind == Node::Kind::Scalar)
          add(item, item.text);
        else
          item_problem(item, fmt::format("{}[{}]", key, i),
                       item.kind == Node::Kind::Null ? "has no value; \"\" is the empty argument"
                                                     : "must be one text");
      }
      break;
    case Node::Kind::Map: {
      if (!map_too) {
        problem(node, key, fmt::format("must not be a map ({})", row.accepted));
        break;
      }
      const auto one = [&](const std::string& name, const Node& value) {
        const std::string flag = name.starts_with('-') ? name : "--" + name;
        if (value.bad || value.kind == Node::Kind::Null) return;
        if (value.kind != Node::Kind::Scalar)
          return problem(value, fmt::format("{}.{}", key, shown(name)),
                         "must be one value or a list of values (true | false | null | text)");
        if (!value.quoted && value.text == "false") return;
        add(value, flag);
        if (value.quoted || value.text != "true") add(value, value.text);
      };
      for (std::size_t i = 0; i < node.keys.size(); ++i) {
        const Node& value = node.items[i];
        if (value.kind != Node::Kind::List) {
          one(node.keys[i].text, value);
          continue;
        }
        for (const Node& item : value.items) one(node.keys[i].text, item);
      }
      break;
    }
  }
  return result;
}

void SpecReader::code_from(const Node& node, const KeyRow& row) {
  const std::string* value = text(node, row);
  if (value == nullptr) return;
  const bool remote = value->find("://") != std::string::npos ||
                      (value->starts_with("git@") && value->find(':') != std::string::npos);
  if (remote)
    return problem(
        node, "code.from",
        "code from git or an object store is known but not in this release (a directory)");
  if (value->empty()) return problem(node, "code.from", "is empty (a directory)");
  if (!spec_.code().at().empty())
    return problem(node, "code.from",
                   "code.at says already where the code is; leave one of the two out");
  std::string path =
      (std::filesystem::path(options_.base_dir) / *value).lexically_normal().string();
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  spec_.mutable_code()->set_at(path);
}

void SpecReader::code_at(const Node& node, const KeyRow& row) {
  const std::string* value = text(node, row);
  if (value == nullptr || *value == "auto") return;
  if (!value->starts_with('/'))
    return problem(node, "code.at",
                   fmt::format("'{}' is not absolute ({})", shown(*value), row.accepted));
  if (!spec_.code().at().empty())
    return problem(node, "code.at",
                   "code.from says already where the code is; leave one of the two out");
  spec_.mutable_code()->set_at(*value);
}

void SpecReader::setup(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Map)
    section(node, "runtime.setup");
  else
    setup_run(node, row);
}

// These are whole texts for a shell, so nothing is split here.
void SpecReader::setup_run(const Node& node, const KeyRow& row) {
  one_or_list(node, row, "must be one text", [this](const Node& at) {
    v1::RuntimeSpec& runtime = *spec_.mutable_runtime();
    for (const char* name : {"runtime.setup", "runtime.setup.run"})
      places_[fmt::format("{}[{}]", name, runtime.setup_size())] = {at.line, at.column};
    runtime.add_setup(at.text);
  });
}

void SpecReader::one_or_list(const Node& node, const KeyRow& row, const std::string& item_must,
                             const std::function<void(const Node&)>& add) {
  const std::string key(row.key);
  if (node.kind == Node::Kind::Null) return;
  if (node.kind == Node::Kind::Scalar) return add(node);
  if (node.kind != Node::Kind::List)
    return problem(node, key, fmt::format("must not be a map ({})", row.accepted));
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const Node& item = node.items[i];
    if (item.bad) continue;
    if (item.kind == Node::Kind::Scalar)
      add(item);
    else
      item_problem(item, fmt::format("{}[{}]", key, i), item_must);
  }
}

void SpecReader::launch_run(const Node& node, const KeyRow& row) {
  for (std::string& word : words(node, row, false))
    spec_.mutable_launch()->add_run(std::move(word));
}

void SpecReader::launch_args(const Node& node, const KeyRow& row) {
  for (std::string& word : words(node, row, true))
    spec_.mutable_launch()->add_args(std::move(word));
}

void SpecReader::launch_config(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Null) return;
  const std::string* value = text(node, row);
  if (value == nullptr) return;
  if (value->empty())
    return problem(node, std::string(row.key), fmt::format("is empty ({})", row.accepted));
  spec_.mutable_launch()->set_config(*value);
}

void SpecReader::resume_args(const Node& node, const KeyRow& row) {
  for (std::string& word : words(node, row, true))
    spec_.mutable_resume()->add_args(std::move(word));
}

void SpecReader::launch_lockstep(const Node& node, const KeyRow& row) {
  const std::string* value = text(node, row);
  if (value == nullptr || *value == "auto") return;
  if (*value == "true" || *value == "yes")
    spec_.mutable_launch()->set_lockstep(true);
  else if (*value == "no" || *value == "false")
    spec_.mutable_launch()->set_lockstep(false);
  else
    not_accepted(node, row, *value);
}

void SpecReader::devices(const Node& node, const KeyRow& row) {
  v1::ResourceSpec& resources = *spec_.mutable_resources();
  if (node.kind == Node::Kind::List) {
    if (node.items.empty())
      return problem(node, "resources.devices", fmt::format("is an empty list ({})", row.accepted));
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const Node& item = node.items[i];
      const std::string key = fmt::format("resources.devices[{}]", i);
      places_[fmt::format("resources.devices[{}]", resources.device_ids_size())] = {item.line,
                                                                                    item.column};
      if (item.bad) continue;
      if (item.kind != Node::Kind::Scalar) {
        item_problem(item, key, "must be the number of a device (0..1023)");
      } else if (auto number = parse_number(item.text, 0, 1023)) {
        resources.add_device_ids(static_cast<std::uint32_t>(*number));
      } else {
        item_problem(item, key, number.error().message);
      }
    }
    return;
  }
  const std::string* value = text(node, row);
  if (value == nullptr) return;
  if (value->starts_with('[')) {
    if (auto range = parse_device_range(*value))
      for (const std::uint32_t device : *range) resources.add_device_ids(device);
    else
      problem(node, "resources.devices", range.error().message);
  } else if (auto number = parse_number(*value, 1, 1024)) {
    resources.set_devices(static_cast<std::uint32_t>(*number));
  } else if (!value->empty() && value->find_first_not_of("0123456789") == std::string::npos) {
    problem(node, "resources.devices", number.error().message);
  } else {
    problem(node, "resources.devices",
            fmt::format("'{}' is neither a number nor a range of devices ({})", shown(*value),
                        row.accepted));
  }
}

void SpecReader::hosts(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Null) return;
  if (node.kind != Node::Kind::List)
    return problem(node, "resources.hosts", fmt::format("must be a list ({})", row.accepted));
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const Node& item = node.items[i];
    const std::string key = fmt::format("resources.hosts[{}]", i);
    places_[fmt::format("resources.hosts[{}]", spec_.resources().hosts_size())] = {item.line,
                                                                                   item.column};
    if (item.bad) continue;
    if (item.kind == Node::Kind::Scalar)
      spec_.mutable_resources()->add_hosts(item.text);
    else
      item_problem(item, key, "must be the name of a node");
  }
}

void SpecReader::master_port(const Node& node, const KeyRow& row) {
  const std::string* value = text(node, row);
  if (value == nullptr || *value == "auto") return;
  if (auto number = parse_number(*value, 1, 65535))
    spec_.mutable_network()->set_master_port(static_cast<std::uint32_t>(*number));
  else
    problem(node, std::string(row.key),
            fmt::format("'{}' is not a port ({})", shown(*value), row.accepted));
}

void SpecReader::checkpoint_dir(const Node& node, const KeyRow& row) {
  const std::string* value = text(node, row);
  if (value == nullptr || *value == "auto") return;
  if (value->empty())
    return problem(node, "checkpoint.dir", fmt::format("is empty ({})", row.accepted));
  const bool whole = value->starts_with('/') || value->starts_with("${out}");
  spec_.mutable_checkpoint()->set_dir(whole ? *value : "${out}/" + *value);
}

void SpecReader::checkpoint_storage(const Node& node, const KeyRow& row) {
  const std::string* value = text(node, row);
  if (value == nullptr || *value == "auto") return;
  if (*value != "shared" && *value != "local") return not_accepted(node, row, *value);
  spec_.mutable_checkpoint()->set_storage(*value == "local" ? v1::CHECKPOINT_STORAGE_LOCAL
                                                            : v1::CHECKPOINT_STORAGE_SHARED);
}

void SpecReader::resume(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Map) return section(node, "resume");
  // YAML's null means "nothing", like none.
  const std::string* value = node.kind == Node::Kind::Null ? nullptr : text(node, row);
  if (node.kind == Node::Kind::Null || (value != nullptr && *value == "none"))
    spec_.mutable_resume()->set_enabled(false);
  else if (value != nullptr && *value != "auto")
    not_accepted(node, row, *value);
}

void SpecReader::plog(const Node& node, const KeyRow& row) {
  const std::string* value = text(node, row);
  if (value == nullptr || *value == "auto") return;
  if (*value == "true" || *value == "yes")
    spec_.mutable_observe()->set_plog(true);
  else if (*value == "false" || *value == "no")
    spec_.mutable_observe()->set_plog(false);
  else
    not_accepted(node, row, *value);
}

void SpecReader::progress(const Node& node, const KeyRow& row) {
  v1::ObserveSpec& observe = *spec_.mutable_observe();
  if (node.kind == Node::Kind::Map) {
    observe.set_grammar("custom");
    section(node, "observe.progress");
    if (node.get("step") == nullptr && !spoiled("observe.progress.step"))
      problem(node, "observe.progress.step",
              "is missing: without it no line is a step (a regular expression with one group)");
    return;
  }
  const std::string* value = node.kind == Node::Kind::Null ? nullptr : text(node, row);
  if (node.kind == Node::Kind::Null || (value != nullptr && *value == "none"))
    observe.set_grammar("none");
  else if (value != nullptr && *value != "auto")
    not_accepted(node, row, *value);
}

void SpecReader::progress_part(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Null && row.key != "observe.progress.step") return;
  const std::string* value = text(node, row);
  if (value == nullptr) return;
  v1::ObserveSpec& observe = *spec_.mutable_observe();
  if (row.key == "observe.progress.step") observe.set_step(*value);
  if (row.key == "observe.progress.loss") observe.set_loss(*value);
  if (row.key == "observe.progress.total") observe.set_total(*value);
}

void SpecReader::success(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Map) {
    if (node.get("regex") != nullptr && node.get("file") != nullptr)
      return problem(node, "success", "either regex or file, not both");
    section(node, "success");
    if (node.keys.empty())
      problem(node, "success", fmt::format("is an empty map ({})", row.accepted));
    return;
  }
  const std::string* value = text(node, row);
  if (value == nullptr) return;
  if (*value == "exit0")
    spec_.mutable_success()->set_exit0(true);
  else if (*value == "last-step")
    spec_.mutable_success()->set_last_step(true);
  else if (*value != "auto")
    not_accepted(node, row, *value);
}

void SpecReader::success_part(const Node& node, const KeyRow& row) {
  const std::string* value = text(node, row);
  if (value == nullptr) return;
  if (value->empty())
    return problem(node, std::string(row.key), fmt::format("is empty ({})", row.accepted));
  if (row.key == "success.regex")
    spec_.mutable_success()->set_regex(*value);
  else
    spec_.mutable_success()->set_file(*value);
}

}  // namespace muster::spec
