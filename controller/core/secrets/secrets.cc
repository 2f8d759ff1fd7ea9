#include "controller/core/secrets/secrets.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "common/base/names.h"
#include "common/engine/model/secret.h"
#include "common/text/words.h"

namespace muster::core {
namespace {

std::size_t count_of(const Ledger& ledger, const OwnedName& key) {
  return static_cast<std::size_t>(std::ranges::count_if(ledger.secrets, [&](const auto& entry) {
    return entry.first.owner == key.owner && entry.first.shared == key.shared;
  }));
}

// The nearest name that the owner's jobs may use. Empty: none is near.
std::string nearest_secret(const Ledger& ledger, const std::string& owner,
                           const std::string& name) {
  std::vector<std::string_view> known;
  for (const auto& [key, record] : ledger.secrets)
    if (key.shared || key.owner == owner) known.push_back(key.name);
  return std::string(nearest(name, known));
}

}  // namespace

std::string text_of(const OwnedName& key) {
  if (key.shared) return fmt::format("shared secret '{}'", key.name);
  return fmt::format("secret '{}'{}", key.name,
                     key.owner.empty() ? "" : " of user '" + key.owner + "'");
}

Decision decide_set(const Ledger& ledger, const SetSecret& input) {
  const std::string doing = "setting " + text_of(input.key);
  if (!is_node_name(input.key.name))
    return refuse(ErrorCode::InvalidArgument,
                  doing +
                      ": not a name; letters, digits, '.', '_', '-', at most 63, the first a "
                      "letter or digit");
  const auto before = ledger.secrets.find(input.key);
  if (before == ledger.secrets.end()) {
    if (count_of(ledger, input.key) >= kSecretsOfUser)
      return refuse(ErrorCode::ResourceExhausted,
                    fmt::format("{}: there are {} {}, as many as the limit allows; remove some "
                                "(`muster secret rm`)",
                                doing, kSecretsOfUser,
                                input.key.shared ? "shared ones" : "secrets of this user"));
    if (ledger.secrets.size() >= kSecretsMost)
      return refuse(ErrorCode::ResourceExhausted,
                    fmt::format("{}: the cluster has {} secrets, as many as the limit allows; some "
                                "have to be removed (`muster secret ls --all`)",
                                doing, kSecretsMost));
  }
  return accept(
      SecretSet{.key = input.key,
                .item = input.item,
                .replaced = before == ledger.secrets.end() ? std::string() : before->second.item,
                .actor = input.actor});
}

Decision decide_remove(const Ledger& ledger, const RemoveSecret& input) {
  const auto found = ledger.secrets.find(input.key);
  if (found == ledger.secrets.end())
    return refuse(ErrorCode::NotFound,
                  fmt::format("removing {}: there is no such secret; `muster secret ls` lists them",
                              text_of(input.key)));
  return accept(SecretRemoved{.key = input.key, .item = found->second.item, .actor = input.actor});
}

const SecretRecord* find_secret(const Ledger& ledger, const std::string& owner,
                                const std::string& name) {
  auto found = ledger.secrets.find({.owner = owner, .shared = false, .name = name});
  if (found == ledger.secrets.end())
    found = ledger.secrets.find({.owner = {}, .shared = true, .name = name});
  return found == ledger.secrets.end() ? nullptr : &found->second;
}

Result<std::vector<PinnedSecret>> pinned_secrets(const Ledger& ledger, const JobRecord& job,
                                                 bool resumes) {
  std::map<std::string, std::string> items;  // by name
  for (const auto& [key, name] : engine::secrets_of(job.spec)) {
    if (!resumes && key.starts_with("resume.")) continue;
    const SecretRecord* secret = find_secret(ledger, job.owner, name);
    if (secret == nullptr)
      return fail(ErrorCode::NotFound,
                  fmt::format("secret '{}' ({}) is there no more; `muster secret set {}` lets the "
                              "job go on",
                              name, key, name));
    items.emplace(name, secret->item);
  }
  std::vector<PinnedSecret> pinned;
  for (const auto& [name, item] : items) pinned.push_back({.name = name, .item = item});
  return pinned;
}

std::optional<Error> refuse_secrets(const Ledger& ledger, const v1::JobSpec& spec,
                                    const std::string& owner) {
  for (const auto& [key, name] : engine::secrets_of(spec)) {
    if (find_secret(ledger, owner, name) != nullptr) continue;
    const std::string near = nearest_secret(ledger, owner, name);
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("{}: there is no secret '{}'{}, and none of that name is shared; {}"
                             "`muster secret set {}` makes it",
                             key, name, owner.empty() ? "" : " of user '" + owner + "'",
                             near.empty() ? "" : "nearest: '" + near + "'; ", name)};
  }
  return std::nullopt;
}

}  // namespace muster::core
