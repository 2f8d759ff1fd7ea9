#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "common/base/label.h"
#include "common/base/names.h"
#include "common/spec/keys/values.h"
#include "common/spec/yaml_tree.h"
#include "common/text/words.h"
#include "deploy/hosts/hosts.h"
#include "deploy/hosts/key_table.h"
#include "deploy/hosts/outputs_place.h"
#include "deploy/hosts/ranges.h"
#include "deploy/hosts/values.h"

namespace muster::hosts {
namespace {

using spec::Node;
constexpr std::array kAgentSections = {Section::Login, Section::Agent};
constexpr std::array kControllerSections = {Section::Login, Section::Controller};
constexpr std::array kLoginSections = {Section::Login};
constexpr auto kTopKeys =
    std::to_array<std::string_view>({"cluster", "controller", "defaults", "agents"});
constexpr unsigned kDefaultPort = 7070;

// A value that is known to be of its kind.
struct Value {
  const HostKey* key = nullptr;
  std::vector<std::string> texts;
  const Node* at = nullptr;
};
using Values = std::map<std::string_view, Value>;  // by the key's name

class Reader {
 public:
  ReadHosts read(std::string_view text) {
    spec::Tree tree = spec::read_tree(text, true);
    out_.problems = std::move(tree.problems);
    if (out_.problems.empty()) top(tree.root);
    std::ranges::stable_sort(out_.problems, {}, [](const spec::Problem& problem) {
      return std::pair(problem.line, problem.column);
    });
    return std::move(out_);
  }

 private:
  void problem(const Node& at, std::string message) {
    if (out_.problems.size() >= spec::kProblemsMax) return;
    // An empty text has no node with a place.
    out_.problems.push_back({.line = std::max(at.line, 1U),
                             .column = std::max(at.column, 1U),
                             .key = {},
                             .message = std::move(message)});
  }

  void unknown(const Node& key, std::span<const std::string_view> known) {
    const std::string_view near = nearest(key.text, known);
    problem(key, fmt::format("key '{}' is unknown{}; there are: {}", spec::shown(key.text),
                             near.empty() ? "" : fmt::format("; did you mean '{}'?", near),
                             fmt::join(known, ", ")));
  }

  void top(const Node& root) {
    if (root.kind != Node::Kind::Map)
      return problem(root, root.kind == Node::Kind::Null
                               ? "the file is empty; it needs the keys 'controller' and 'agents'"
                               : "the file is no map; it needs the keys 'controller' and 'agents'");
    for (const Node& key : root.keys)
      if (std::ranges::find(kTopKeys, key.text) == kTopKeys.end()) unknown(key, kTopKeys);
    if (const Node* cluster = root.get("cluster"); cluster != nullptr && !is_none(*cluster)) {
      if (cluster->kind != Node::Kind::Scalar || !is_node_name(cluster->text))
        problem(*cluster, "the cluster's name: 1 to 63 letters, digits, '.', '_', '-', or none");
      else
        out_.file.cluster = cluster->text;
    }
    Values defaults;
    if (const Node* node = root.get("defaults"); node != nullptr && !is_none(*node))
      defaults = section(*node, kAgentSections, "defaults");
    for (const std::string_view own : {"host", "management_address"})
      if (const auto at = defaults.find(own); at != defaults.end())
        problem(*at->second.at, fmt::format("'{}' is no default: each agent has its own", own));
    outputs_at_ = &root;
    controller(root, defaults);
    agents(root, defaults);
    if (const std::string why = why_no_outputs_place(out_.file); !why.empty())
      problem(*outputs_at_, why);
  }

  static bool is_none(const Node& node) {
    return node.kind == Node::Kind::Null ||
           (node.kind == Node::Kind::Scalar && !node.quoted && node.text == "none");
  }

  Values section(const Node& node, std::span<const Section> sections, std::string_view what) {
    Values values;
    if (node.kind == Node::Kind::Null) return values;
    if (node.kind != Node::Kind::Map) {
      problem(node, fmt::format("'{}' is no map of keys and values", what));
      return values;
    }
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const HostKey* key = find_host_key(node.keys[i].text, sections);
      if (key == nullptr) {
        unknown(node.keys[i], host_key_names(sections));
      } else if (key->kind == ValueKind::Refused) {
        problem(node.keys[i],
                fmt::format("'{}' is not possible in this version: {}", key->name, key->help));
      } else if (auto texts = texts_of(node.items[i], *key)) {
        values[key->name] = {.key = key, .texts = std::move(*texts), .at = &node.items[i]};
      }
    }
    return values;
  }

  std::optional<std::vector<std::string>> texts_of(const Node& node, const HostKey& key) {
    std::vector<std::string> texts;
    const auto take = [&](const Node& item, std::string text) {
      std::string_view checked = text;
      const bool ranged = is_ranged(key) && has_range(text);
      const std::string why = ranged ? "" : why_not(key.kind, checked);
      if (why.empty()) return texts.push_back(std::move(text)), true;
      problem(item, fmt::format("{}: '{}': {}", key.name, spec::shown(text), why));
      return false;
    };
    if (key.kind == ValueKind::Labels) {
      if (node.kind != Node::Kind::Map) {
        problem(node, "labels: no map; labels are written {rack: r12, zone: a}");
        return std::nullopt;
      }
      for (std::size_t i = 0; i < node.keys.size(); ++i) {
        if (node.items[i].kind != Node::Kind::Scalar || !check_label_key(node.keys[i].text) ||
            node.items[i].text.size() > 255) {
          problem(node.keys[i],
                  "a label is KEY: VALUE; a key has 1 to 63 letters, digits and . _ / -, and "
                  "begins with a letter or digit; a value is a text of at most 255 bytes");
          return std::nullopt;
        }
        if (!take(node.items[i], node.keys[i].text + "=" + node.items[i].text)) return std::nullopt;
      }
      return texts;
    }
    if (key.kind == ValueKind::Words && node.kind == Node::Kind::List) {
      for (const Node& item : node.items) {
        if (item.kind != Node::Kind::Scalar) {
          problem(item, fmt::format("{}: not a text", key.name));
          return std::nullopt;
        }
        if (!take(item, item.text)) return std::nullopt;
      }
      return texts;
    }
    if (node.kind != Node::Kind::Scalar) {
      problem(node, fmt::format("{}: one value is needed", key.name));
      return std::nullopt;
    }
    if (!take(node, node.text)) return std::nullopt;
    return texts;
  }

  static bool is_ranged(const HostKey& key) { return key.kind == ValueKind::Host; }

  static std::string one(const Values& values, std::string_view key) {
    const auto at = values.find(key);
    return at == values.end() || at->second.texts.empty() ? "" : at->second.texts.front();
  }

  static Login login_of(const Values& values) {
    const std::string port = one(values, "port");
    return {.host = one(values, "host"),
            .address = one(values, "management_address"),
            .port = static_cast<std::uint16_t>(port.empty() ? 0 : std::stoul(port)),
            .user = one(values, "user"),
            .identity = one(values, "identity"),
            .jump = one(values, "jump"),
            .known_hosts = one(values, "known_hosts"),
            .accept_new = one(values, "host_keys") == "accept_new",
            .sudo = one(values, "sudo") == "true",
            .prefix = one(values, "prefix")};
  }

  static std::vector<std::string> options_of(const Values& values) {
    std::vector<std::string> words;
    for (const auto& [name, value] : values) {
      if (value.key->flag.empty()) continue;
      // "--flag=VALUE": a value that begins with '-' stays a value.
      for (const std::string& text : value.texts)
        words.push_back(fmt::format("{}={}", value.key->flag, text));
    }
    return words;
  }

  void controller(const Node& root, const Values& defaults) {
    const Node* node = root.get("controller");
    if (node == nullptr || node->kind == Node::Kind::Null)
      return problem(root, "'controller' is missing: the host that the controller runs on");
    Values values;
    for (const auto& [name, value] : defaults)
      if (value.key->section == Section::Login && name != "host" && name != "management_address")
        values[name] = value;
    if (node->kind == Node::Kind::Scalar) {
      const HostKey* host = find_host_key("host", kLoginSections);
      if (auto texts = texts_of(*node, *host))
        values["host"] = {.key = host, .texts = std::move(*texts), .at = node};
    } else {
      for (auto& [name, value] : section(*node, kControllerSections, "controller"))
        values[name] = std::move(value);
    }
    Controller& out = out_.file.controller;
    out.login = login_of(values);
    if (out.login.host.empty() || has_range(out.login.host))
      return problem(*node, "controller: one host is needed: controller: HOST");
    out.state_dir = one(values, "state_dir");
    out.login_socket = one(values, "login_socket");
    out.options = options_of(values);
    outputs_at_ = node;
    for (const std::string_view key : {"state_dir", "outputs_root"})
      if (const auto at = values.find(key); at != values.end()) outputs_at_ = at->second.at;
    if (const std::string listen = one(values, "listen"); !listen.empty()) out.listen = listen;
    const unsigned port = split_address(out.listen).port;
    if (port == 0)
      problem(*values.at("listen").at,
              fmt::format("listen: '{}' has no port: HOST:PORT, as 0.0.0.0:{}",
                          spec::shown(out.listen), kDefaultPort));
    HostPort address = split_address(one(values, "address"));
    if (address.host.empty())
      address.host = out.login.address.empty() ? out.login.host : out.login.address;
    if (address.port == 0) address.port = port;
    out.address = text_of(address);
    enrolment(*node, values, address.host);
  }

  // The port where certificates are renewed. The agents reach it at `host`.
  void enrolment(const Node& node, const Values& values, const std::string& host) {
    Controller& out = out_.file.controller;
    const HostPort listen = split_address(out.listen);
    const std::string given = one(values, "enrol");
    if (given == "none") return;
    const HostPort enrol = given.empty() ? HostPort{.host = listen.host, .port = listen.port + 1}
                                         : split_address(given);
    if (enrol.port == 0 || enrol.port == listen.port || enrol.port > 65'535)
      problem(given.empty() ? node : *values.at("enrol").at,
              fmt::format("enrol: '{}': give HOST:PORT with a port of its own, as 0.0.0.0:{}",
                          given.empty() ? text_of(enrol) : spec::shown(given), kDefaultPort + 1));
    out.options.push_back("--enrol=" + (given.empty() ? text_of(enrol) : given));
    for_agents_.push_back("--enrol=" + text_of({.host = host, .port = enrol.port}));
  }

  static std::string text_of(const HostPort& address) {
    return address.host.contains(':') ? fmt::format("[{}]:{}", address.host, address.port)
                                      : fmt::format("{}:{}", address.host, address.port);
  }

  void agents(const Node& root, const Values& defaults) {
    const Node* node = root.get("agents");
    if (node == nullptr || node->kind == Node::Kind::Null)
      return problem(root, "'agents' is missing: the nodes, as agents: {node1: {host: 10.0.0.1}}");
    if (node->kind == Node::Kind::Scalar || node->items.empty())
      return problem(*node, "agents: a map {NAME: {host: ...}} or a list of names is needed");
    for (std::size_t i = 0; i < node->items.size(); ++i) {
      const bool list = node->kind == Node::Kind::List;
      const Node& name = list ? node->items[i] : node->keys[i];
      if (name.kind != Node::Kind::Scalar) {
        problem(name, "agents: a list has names only; write a map to give more");
        continue;
      }
      Values values = defaults;
      values.erase("host");
      values.erase("management_address");
      if (!list) {
        for (auto& [key, value] : section(node->items[i], kAgentSections, spec::shown(name.text)))
          values[key] = std::move(value);
      }
      expand(name, values);
    }
  }

  // The texts of a value for each of `count` names: one text for all, or a range with as many.
  std::vector<std::string> spread(const Values& values, std::string_view key, std::size_t count) {
    const std::string text = one(values, key);
    if (!has_range(text)) return std::vector(count, text);
    const Node& at = *values.at(key).at;
    auto texts = expand_range(text, kAgentsMost);
    if (!texts) {
      problem(at, fmt::format("{}: {}", key, texts.error().message));
    } else if (texts->size() != count) {
      problem(at, fmt::format("{}: '{}' is {} of them for {} nodes", key, spec::shown(text),
                              texts->size(), count));
    } else {
      for (const std::string& each : *texts) {
        if (const std::string why = why_not(ValueKind::Host, each); !why.empty()) {
          problem(at, fmt::format("{}: '{}': {}", key, spec::shown(each), why));
          break;
        }
      }
      return std::move(*texts);
    }
    return std::vector<std::string>(count);
  }

  void expand(const Node& name, Values values) {
    const auto names = expand_range(name.text, kAgentsMost);
    if (!names) return problem(name, names.error().message);
    if (out_.file.agents.size() + names->size() > kAgentsMost)
      return problem(name, fmt::format("more than {} nodes", kAgentsMost));
    const auto hosts = spread(values, "host", names->size());
    const auto managed = spread(values, "management_address", names->size());
    const auto addresses = spread(values, "training_address", names->size());
    if (!one(values, "devices").empty() && !one(values, "devices_from").empty())
      problem(name, "'devices' and 'devices_from' exclude each other");
    for (std::size_t i = 0; i < names->size(); ++i) {
      Agent agent{.name = (*names)[i],
                  .login = login_of(values),
                  .state_dir = one(values, "state_dir"),
                  .options = {}};
      if (!is_node_name(agent.name))
        return problem(name, fmt::format("'{}' is not a node name: letters, digits, '.', '_', "
                                         "'-', at most 63, the first a letter or digit",
                                         spec::shown(agent.name)));
      agent.login.host = hosts[i].empty() ? agent.name : hosts[i];
      agent.login.address = managed[i];
      if (!addresses[i].empty()) values["training_address"].texts = {addresses[i]};
      agent.options = options_of(values);
      agent.options.insert(agent.options.begin(), for_agents_.begin(), for_agents_.end());
      if (agent.name == "controller")
        return problem(
            name,
            "a node cannot be named 'controller': that is the controller's row in what "
            "muster deploy shows; write NAME: {host: controller} for a host of this name");
      if (!names_.insert(agent.name).second)
        return problem(name, fmt::format("node '{}' is there twice", spec::shown(agent.name)));
      const auto [earlier, fresh] = hosts_.try_emplace(
          std::pair(managed[i].empty() ? agent.login.host : managed[i], agent.login.port),
          agent.name);
      if (!fresh)
        return problem(name,
                       fmt::format("nodes '{}' and '{}' are both on host '{}': one agent a "
                                   "host",
                                   earlier->second, agent.name, spec::shown(agent.login.host)));
      out_.file.agents.push_back(std::move(agent));
    }
  }

  ReadHosts out_;
  const Node* outputs_at_ = nullptr;     // what says where outputs of jobs are
  std::vector<std::string> for_agents_;  // options that the controller's keys give to each agent
  std::set<std::string> names_;
  std::map<std::pair<std::string, std::uint16_t>, std::string> hosts_;
};

}  // namespace

ReadHosts read_hosts(std::string_view text) { return Reader().read(text); }

}  // namespace muster::hosts
