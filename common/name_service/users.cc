#include "common/name_service/users.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace muster::name_service {
namespace {

std::unexpected<Error> unknown_user() {
  return fail(ErrorCode::NotFound, "the host knows no such user");
}

std::unexpected<Error> unsound(std::string_view table) {
  return fail(ErrorCode::Unreachable,
              "getent printed what is no entry of '" + std::string(table) + "'");
}

Result<User> in_file(const auto& key, const Tables& tables) {
  const auto text = read_table(tables.passwd);
  if (!text) return fail(text.error());
  auto user = user_in(*text, key);
  if (!user) return unknown_user();
  return *std::move(user);
}

// `line`: the answer of `getent passwd`.
std::optional<User> only_user(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  return parse_user(line);
}

// getent would take it for a uid: what strtoul(3) reads as a whole.
bool looks_like_number(std::string_view name) {
  return name.find_first_not_of(" +0123456789") == std::string_view::npos;
}

}  // namespace

Result<User> find_user(const std::string& name, const Tables& tables) {
  if (!may_be_name(name)) return unknown_user();
  if (looks_like_number(name)) return in_file(std::string_view(name), tables);
  const auto answer = ask_getent(tables, "passwd", name);
  if (!answer)
    return answer.error().code == ErrorCode::NotFound ? unknown_user() : fail(answer.error());
  if (!*answer) return in_file(std::string_view(name), tables);
  auto user = only_user(**answer);
  if (!user) return unsound("passwd");
  return *std::move(user);
}

Result<User> find_user(std::uint32_t uid, const Tables& tables) {
  const auto answer = ask_getent(tables, "passwd", std::to_string(uid));
  if (!answer)
    return answer.error().code == ErrorCode::NotFound ? unknown_user() : fail(answer.error());
  if (!*answer) return in_file(uid, tables);
  auto user = only_user(**answer);
  if (!user || user->uid != uid) return unsound("passwd");
  return *std::move(user);
}

Result<std::vector<std::uint32_t>> groups_of(const User& user, const Tables& tables) {
  if (!may_be_name(user.name)) return unknown_user();
  const auto answer = ask_getent(tables, "initgroups", user.name);
  std::vector<std::uint32_t> others;
  if (answer && *answer) {
    auto parsed = parse_groups(**answer, user.name);
    if (!parsed) return unsound("initgroups");
    others = *std::move(parsed);
  } else if (answer) {
    const auto text = read_table(tables.group);
    if (!text) return fail(text.error());
    others = groups_in(*text, user.name);
  } else if (answer.error().code != ErrorCode::NotFound) {  // otherwise no group lists the user
    return fail(answer.error());
  }
  std::vector<std::uint32_t> groups{user.gid};
  std::ranges::copy_if(others, std::back_inserter(groups),
                       [&](std::uint32_t gid) { return gid != user.gid; });
  return groups;
}

}  // namespace muster::name_service
