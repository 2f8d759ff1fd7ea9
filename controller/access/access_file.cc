#include "controller/access/access_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/names.h"
#include "common/io/file.h"
#include "common/spec/keys/values.h"
#include "common/spec/yaml_tree.h"
#include "common/text/words.h"

namespace muster::controller {
namespace {

using spec::Node;
using spec::Problem;

constexpr std::array<std::string_view, 5> kKeys = {"default", "users", "groups", "roles",
                                                   "others_may"};
constexpr std::array<std::string_view, 4> kRoles = {"viewer", "user", "operator", "admin"};
constexpr std::array<std::string_view, 3> kRights = {"logs", "env", "cancel"};

// The words may be the file's own: names of groups.
std::string listed(std::span<const std::string_view> words) {
  constexpr std::size_t kMost = 10;
  std::string text;
  for (const std::string_view word : words.first(std::min(words.size(), kMost)))
    text += (text.empty() ? "" : ", ") + spec::shown(word);
  return words.size() > kMost ? text + ", and " + std::to_string(words.size() - kMost) + " more"
                              : text;
}

class AccessReader {
 public:
  explicit AccessReader(std::vector<Problem> problems) : problems_(std::move(problems)) {}

  AccessPolicy read(const Node& root) {
    if (root.kind == Node::Kind::Null || root.bad) return {};
    if (root.kind != Node::Kind::Map) {
      problem(root, "a map is expected, with the keys " + listed(kKeys));
      return {};
    }
    for (const Node& key : root.keys)
      if (std::ranges::find(kKeys, key.text) == kKeys.end()) wrong_word(key, "unknown key", kKeys);
    AccessPolicy policy;
    if (const Node* value = root.get("default"))
      policy.others = role(*value).value_or(policy.others);
    if (const Node* groups = root.get("groups")) read_groups(*groups);
    if (const Node* roles = root.get("roles")) read_roles(*roles);
    join_groups(policy);
    if (const Node* users = root.get("users")) read_users(*users, policy);
    if (const Node* rights = root.get("others_may")) read_rights(*rights, policy);
    return policy;
  }
  [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }

 private:
  struct Group {
    const Node* name = nullptr;
    std::vector<std::string> members;
    std::optional<UserRole> role;
    bool has_role = false;  // one is written, right or wrong
  };

  void problem(const Node& at, std::string message) {
    if (problems_.size() < spec::kProblemsMax)
      problems_.push_back(
          {.line = at.line, .column = at.column, .key = {}, .message = std::move(message)});
  }
  void wrong_word(const Node& at, const std::string& what,
                  std::span<const std::string_view> known) {
    const std::string_view near = nearest(at.text, known);
    problem(at, what + " '" + spec::shown(at.text) + "'; " +
                    (near.empty() ? "there are: " + listed(known)
                                  : "did you mean '" + spec::shown(near) + "'?"));
  }
  bool is_kind(const Node& node, Node::Kind kind, std::string_view what) {
    if (node.bad) return false;
    if (node.kind == kind) return true;
    problem(node, fmt::format("{} is expected here", what));
    return false;
  }
  std::optional<UserRole> role(const Node& node) {
    if (!is_kind(node, Node::Kind::Scalar, "a role")) return std::nullopt;
    const auto found = std::ranges::find(kRoles, node.text);
    if (found != kRoles.end()) return static_cast<UserRole>(found - kRoles.begin());
    wrong_word(node, "unknown role", kRoles);
    return std::nullopt;
  }
  bool is_user(const Node& node) {
    if (!is_kind(node, Node::Kind::Scalar, "the name of a user")) return false;
    if (is_node_name(node.text)) return true;
    problem(node, "'" + spec::shown(node.text) +
                      "' is no user's name: letters, digits, '.', '_', '-', at most 63, the first "
                      "a letter or digit");
    return false;
  }

  void read_groups(const Node& groups) {
    if (!is_kind(groups, Node::Kind::Map, "a map of groups, each with a list of users,")) return;
    for (std::size_t i = 0; i < groups.keys.size(); ++i) {
      Group& group = groups_[groups.keys[i].text];
      group.name = &groups.keys[i];
      if (!is_kind(groups.items[i], Node::Kind::List, "a list of users")) continue;
      for (const Node& user : groups.items[i].items)
        if (is_user(user)) group.members.push_back(user.text);
    }
  }
  void read_roles(const Node& roles) {
    if (!is_kind(roles, Node::Kind::Map, "a map of groups, each with its role,")) return;
    std::vector<std::string_view> names;
    for (const auto& [name, group] : groups_) names.push_back(name);
    for (std::size_t i = 0; i < roles.keys.size(); ++i) {
      const auto group = groups_.find(roles.keys[i].text);
      if (group == groups_.end()) {
        wrong_word(roles.keys[i], "unknown group", names);
        continue;
      }
      group->second.has_role = true;
      group->second.role = role(roles.items[i]);
    }
  }
  void join_groups(AccessPolicy& policy) {
    for (const auto& [name, group] : groups_) {
      if (!group.has_role)
        problem(*group.name, "group '" + spec::shown(name) + "' has no role; write roles: {" +
                                 spec::shown(name) + ": ROLE}");
      if (!group.role) continue;
      for (const std::string& user : group.members) {
        const auto [entry, fresh] = policy.users.emplace(user, *group.role);
        if (!fresh) entry->second = std::max(entry->second, *group.role);
      }
    }
  }
  void read_users(const Node& users, AccessPolicy& policy) {
    if (!is_kind(users, Node::Kind::Map, "a map of users, each with a role,")) return;
    for (std::size_t i = 0; i < users.keys.size(); ++i) {
      const bool named = is_user(users.keys[i]);
      const auto found = role(users.items[i]);
      if (named && found) policy.users[users.keys[i].text] = *found;
    }
  }
  void read_rights(const Node& rights, AccessPolicy& policy) {
    if (!is_kind(rights, Node::Kind::List, "a list")) return;
    for (const Node& right : rights.items) {
      if (!is_kind(right, Node::Kind::Scalar, "one of logs, env, cancel")) continue;
      if (right.text == "logs") {
        policy.others_may.insert(JobRight::Logs);
      } else if (right.text == "env") {
        policy.others_may.insert(JobRight::Env);
      } else if (right.text == "cancel") {
        policy.others_may.insert(JobRight::Cancel);
      } else {
        wrong_word(right, "unknown right", kRights);
      }
    }
  }

  std::vector<Problem> problems_;
  std::map<std::string, Group, std::less<>> groups_;
};

}  // namespace

UserRole AccessPolicy::role_of(std::string_view user) const {
  const auto found = users.find(user);
  return found == users.end() ? others : found->second;
}

Result<AccessPolicy> parse_access(std::string_view text, const std::string& file) {
  spec::Tree tree = spec::read_tree(text, true);
  AccessReader reader(std::move(tree.problems));
  AccessPolicy policy = reader.read(tree.root);
  if (reader.problems().empty()) return policy;
  std::string problems = spec::format(reader.problems(), file);
  if (problems.ends_with('\n')) problems.pop_back();
  return fail(ErrorCode::InvalidArgument, std::move(problems));
}

Result<AccessPolicy> read_access_file(const std::filesystem::path& file) {
  auto text = io::read_regular_file(file, kAccessFileMost);
  if (!text) return fail(std::move(text.error()).in("reading the access file"));
  return parse_access(*text, file.string());
}

}  // namespace muster::controller
