#include "controller/core/stores/stores.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "common/base/names.h"
#include "common/store/profile.h"
#include "controller/core/model/spec_view.h"

namespace muster::core {
namespace {

bool is_same_owner(const OwnedName& one, const OwnedName& other) {
  return one.owner == other.owner && one.shared == other.shared;
}

}  // namespace

std::string store_text(const OwnedName& key) {
  if (key.shared) return fmt::format("shared store '{}'", key.name);
  return fmt::format("store '{}'{}", key.name,
                     key.owner.empty() ? "" : " of user '" + key.owner + "'");
}

Decision decide_set_store(const Ledger& ledger, const SetStore& input) {
  const std::string doing = "setting " + store_text(input.key);
  if (!is_node_name(input.key.name))
    return refuse(ErrorCode::InvalidArgument,
                  doing +
                      ": not a name; letters, digits, '.', '_', '-', at most 63, the first a "
                      "letter or digit");
  if (const auto sound = store::check_profile(input.profile); !sound)
    return refuse(sound.error().code, doing + ": " + sound.error().message);
  const auto url = store::parse_store_url(input.profile.url());
  std::size_t own = 0;
  for (const auto& [key, known] : ledger.stores) {
    if (key == input.key || !is_same_owner(key, input.key)) continue;
    ++own;
    if (const auto other = store::parse_store_url(known.profile.url()); other && *other == *url)
      return refuse(ErrorCode::Conflict,
                    fmt::format("{}: {} is for '{}' already; change that one, or remove it", doing,
                                store_text(key), known.profile.url()));
  }
  const std::string& secret = input.profile.secret();
  const OwnedName named{.owner = input.key.owner, .shared = input.key.shared, .name = secret};
  if (!secret.empty() && !ledger.secrets.contains(named))
    return refuse(ErrorCode::InvalidArgument,
                  fmt::format("{}: there is no secret '{}' of the same owner; `muster secret set "
                              "{}{}` makes it",
                              doing, secret, secret, input.key.shared ? " --shared" : ""));
  if (!ledger.stores.contains(input.key)) {
    if (own >= kStoresOfUser)
      return refuse(ErrorCode::ResourceExhausted,
                    fmt::format("{}: there are {} {}, as many as the limit allows; remove some "
                                "(`muster store rm`)",
                                doing, kStoresOfUser,
                                input.key.shared ? "shared ones" : "stores of this user"));
    if (ledger.stores.size() >= kStoresMost)
      return refuse(ErrorCode::ResourceExhausted,
                    fmt::format("{}: the cluster has {} stores, as many as the limit allows; some "
                                "have to be removed (`muster store ls --all`)",
                                doing, kStoresMost));
  }
  return accept(StoreSet{.key = input.key, .profile = input.profile, .actor = input.actor});
}

Decision decide_remove_store(const Ledger& ledger, const RemoveStore& input) {
  if (!ledger.stores.contains(input.key))
    return refuse(ErrorCode::NotFound,
                  fmt::format("removing {}: there is no such store; `muster store ls` lists them",
                              store_text(input.key)));
  return accept(StoreRemoved{.key = input.key, .actor = input.actor});
}

const std::pair<const OwnedName, StoreRecord>* find_store(const Ledger& ledger,
                                                          const std::string& owner,
                                                          const store::Url& url) {
  const std::pair<const OwnedName, StoreRecord>* best = nullptr;
  std::pair<std::size_t, bool> most;  // how much of the URL it names; whether it is the owner's
  for (const auto& entry : ledger.stores) {
    const auto& [key, known] = entry;
    if (!key.shared && key.owner != owner) continue;
    const auto of_store = store::parse_store_url(known.profile.url());
    if (!of_store) continue;
    const std::pair now(store::match(*of_store, url), !key.shared);
    if (now.first == 0 || now <= most) continue;
    most = now;
    best = &entry;
  }
  return best;
}

namespace {

struct Reached {
  PinnedInput input;
  std::optional<PinnedSecret> key;
};

// `key`: "inputs.data". NotFound: what is missing, and what would help.
Result<Reached> reach(const Ledger& ledger, const std::string& owner, const std::string& key_text,
                      const std::string& from) {
  const auto missing = [&](const std::string& what) {
    return fail(ErrorCode::NotFound, fmt::format("{} ('{}'): {}", key_text, from, what));
  };
  const auto url = store::parse_url(from);
  if (!url) return missing(url.error().message);
  const auto* found = find_store(ledger, owner, *url);
  if (found == nullptr)
    return missing(
        fmt::format("there is no store{} for it, and none that is shared; `muster store "
                    "add NAME {}://` makes one",
                    owner.empty() ? "" : " of user '" + owner + "'", store::name_of(url->scheme)));
  const auto& [key, known] = *found;
  Reached reached{.input = {.input = {}, .profile = known.profile, .secret = {}}, .key = {}};
  if (known.profile.secret().empty()) return reached;
  const auto secret = ledger.secrets.find(
      {.owner = key.owner, .shared = key.shared, .name = known.profile.secret()});
  if (secret == ledger.secrets.end())
    return missing(
        fmt::format("the secret '{}' of {} is there no more; `muster secret set {}{}` "
                    "makes it",
                    known.profile.secret(), store_text(key), key.shared ? "--shared " : "",
                    known.profile.secret()));
  // No secret of a job has such a name: this one is given to no process.
  reached.input.secret = store_text(key);
  reached.key = PinnedSecret{.name = reached.input.secret, .item = secret->second.item};
  return reached;
}

Result<Reached> reach(const Ledger& ledger, const std::string& owner, const v1::InputSpec& input) {
  auto reached = reach(ledger, owner, "inputs." + input.name(), input.from());
  if (reached) reached->input.input = input.name();
  return reached;
}

void add_key(Reached& reached, std::vector<PinnedSecret>& secrets) {
  if (reached.key && std::ranges::count(secrets, *reached.key) == 0)
    secrets.push_back(*std::move(reached.key));
}

}  // namespace

namespace {

// `to`: empty: nowhere.
Result<std::optional<PinnedOutput>> pinned_place(const Ledger& ledger, const JobRecord& job,
                                                 const std::string& key_text, const std::string& to,
                                                 std::vector<PinnedSecret>& secrets) {
  if (to.empty()) return std::optional<PinnedOutput>();
  auto reached = reach(ledger, job.owner, key_text, to);
  if (!reached) return fail(std::move(reached.error()));
  add_key(*reached, secrets);
  return std::optional<PinnedOutput>(
      {.profile = std::move(reached->input.profile), .secret = std::move(reached->input.secret)});
}

}  // namespace

Result<std::optional<PinnedOutput>> pinned_output(const Ledger& ledger, const JobRecord& job,
                                                  std::vector<PinnedSecret>& secrets) {
  return pinned_place(ledger, job, "outputs.to", job.spec.outputs().to(), secrets);
}

Result<std::optional<PinnedOutput>> pinned_logs_output(const Ledger& ledger, const JobRecord& job,
                                                       std::vector<PinnedSecret>& secrets) {
  return pinned_place(ledger, job, "outputs.logs_to", job.spec.outputs().logs_to(), secrets);
}

std::vector<PinnedSecret> output_keys(const Ledger& ledger, const JobRecord& job,
                                      const AttemptRecord& attempt) {
  std::vector<PinnedSecret> keys;
  const auto add = [&](const std::optional<PinnedOutput>& place, const auto& pin) {
    if (!place || place->secret.empty()) return;
    const auto is_key = [&](const PinnedSecret& one) { return one.name == place->secret; };
    if (std::ranges::any_of(keys, is_key)) return;
    std::vector<PinnedSecret> now;
    const bool is_set = pin(ledger, job, now).has_value() && std::ranges::any_of(now, is_key);
    std::ranges::copy_if(is_set ? now : attempt.secrets, std::back_inserter(keys), is_key);
  };
  add(attempt.output, pinned_output);
  add(attempt.logs_output, pinned_logs_output);
  return keys;
}

Result<std::vector<PinnedInput>> pinned_inputs(const Ledger& ledger, const JobRecord& job,
                                               std::vector<PinnedSecret>& secrets) {
  std::vector<PinnedInput> inputs;
  for (const v1::InputSpec& input : job.spec.inputs()) {
    if (!store::is_url(input.from())) continue;
    auto reached = reach(ledger, job.owner, input);
    if (!reached) return fail(std::move(reached.error()));
    inputs.push_back(std::move(reached->input));
    add_key(*reached, secrets);
  }
  return inputs;
}

std::optional<Error> refuse_stores(const Ledger& ledger, const v1::JobSpec& spec,
                                   const std::string& owner) {
  for (const v1::InputSpec& input : spec.inputs()) {
    if (!store::is_url(input.from())) continue;
    if (const auto reached = reach(ledger, owner, input); !reached)
      return Error{ErrorCode::InvalidArgument, reached.error().message};
  }
  if (uploads_outputs(spec))
    if (const auto reached = reach(ledger, owner, "outputs.to", spec.outputs().to()); !reached)
      return Error{ErrorCode::InvalidArgument, reached.error().message};
  if (uploads_logs(spec))
    if (const auto reached = reach(ledger, owner, "outputs.logs_to", spec.outputs().logs_to());
        !reached)
      return Error{ErrorCode::InvalidArgument, reached.error().message};
  return std::nullopt;
}

}  // namespace muster::core
