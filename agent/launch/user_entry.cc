#include "agent/launch/user_entry.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "common/name_service/users.h"

namespace muster::agent {
namespace {

UserEntry entry_of(name_service::User user, std::vector<std::uint32_t> groups) {
  return {.name = std::move(user.name),
          .home = std::move(user.home),
          .uid = user.uid,
          .gid = user.gid,
          .groups = std::move(groups)};
}

// The groups that this process has, after `gid`.
std::vector<std::uint32_t> own_groups(std::uint32_t gid) {
  std::vector<gid_t> all(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  all.resize(
      static_cast<std::size_t>(std::max(0, ::getgroups(static_cast<int>(all.size()), all.data()))));
  std::erase(all, gid);
  all.insert(all.begin(), gid);
  return all;
}

}  // namespace

Result<UserEntry> UserTable::find(const std::string& name) {
  if (name.empty()) return find_own();
  if (auto own = known_own(name)) return *std::move(own);
  return find_named(name);
}

std::optional<UserEntry> UserTable::known_own(const std::string& name) {
  const MutexLock lock(mutex_);
  if (!own_ || !own_->has_name || own_->entry.name != name || own_->entry.uid != ::geteuid())
    return std::nullopt;
  return own_->entry;
}

Result<UserEntry> UserTable::find_own() {
  const std::uint32_t uid = ::geteuid();
  const auto mine = std::make_shared<Search>();
  {
    const MutexLock lock(mutex_);
    if (own_ && own_->entry.uid == uid) return own_->entry;
    if (const std::shared_ptr<Search> other = under_way_) {
      while (!other->result) found_.wait(mutex_);
      return *other->result;
    }
    under_way_ = mine;
  }
  auto own = search_own(uid);
  const MutexLock lock(mutex_);
  if (own) own_ = *own;
  mine->result = own ? Result<UserEntry>(own->entry) : Result<UserEntry>(fail(Error(own.error())));
  under_way_ = nullptr;
  found_.notify_all();
  return *mine->result;
}

Result<UserTable::Own> UserTable::search_own(std::uint32_t uid) const {
  auto user = name_service::find_user(uid, tables_);
  if (!user && user.error().code != ErrorCode::NotFound) {
    return fail(std::move(user.error())
                    .in(fmt::format("looking for the agent's own user {} on this node", uid)));
  }
  // A user number without a name may be the agent's own user (in a container). Such a user may
  // still run its ranks.
  const bool has_name = user.has_value();
  if (!has_name)
    user = name_service::User{
        .name = std::to_string(uid), .uid = uid, .gid = ::getegid(), .home = "/", .shell = {}};
  const std::uint32_t gid = user->gid;
  return Own{.entry = entry_of(*std::move(user), own_groups(gid)), .has_name = has_name};
}

Result<UserEntry> UserTable::find_named(const std::string& name) const {
  auto user = name_service::find_user(name, tables_);
  auto groups = !user                      ? Result<std::vector<std::uint32_t>>(fail(user.error()))
                : user->uid == ::geteuid() ? own_groups(user->gid)
                                           : name_service::groups_of(*user, tables_);
  if (groups) return entry_of(*std::move(user), *std::move(groups));
  if (groups.error().code == ErrorCode::NotFound) {
    return fail(
        ErrorCode::NotFound,
        fmt::format("there is no user '{}' on this node; create it here, or change runtime.user",
                    name));
  }
  return fail(
      std::move(groups.error()).in(fmt::format("looking for user '{}' on this node", name)));
}

Result<UserEntry> find_user(const std::string& name) {
  static UserTable table;
  return table.find(name);
}

}  // namespace muster::agent
