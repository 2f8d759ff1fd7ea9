// Decides about users' stores: who has which, and which of them is for a URL. Pure.
//
// A job names data by a URL alone. Of the stores of its owner and the shared ones, the one that
// names most of the URL counts; of two that name as much, the owner's.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/store/store_url.h"
#include "controller/core/model/decision.h"
#include "controller/core/model/input.h"
#include "controller/core/model/ledger.h"

namespace muster::core {

inline constexpr std::size_t kStoresOfUser = 64;  // also of the shared ones
inline constexpr std::size_t kStoresMost = 1'000;

// InvalidArgument: the profile is none, or its secret is not there. Conflict: another store of the
// same owner is for the same URL. ResourceExhausted.
Decision decide_set_store(const Ledger& ledger, const SetStore& input);
// NotFound: there is no such store.
Decision decide_remove_store(const Ledger& ledger, const RemoveStore& input);

// The store of a job of this owner for a URL. Nullptr: there is none.
const std::pair<const OwnedName, StoreRecord>* find_store(const Ledger& ledger,
                                                          const std::string& owner,
                                                          const store::Url& url);

// How the next attempt of the job reaches its inputs that are in stores. Adds their keys to
// `secrets`. NotFound: there is no store for one, or not its key; the text is an end of "the job
// waits: ...".
Result<std::vector<PinnedInput>> pinned_inputs(const Ledger& ledger, const JobRecord& job,
                                               std::vector<PinnedSecret>& secrets);

// The same for where its outputs go. Nothing: nowhere.
Result<std::optional<PinnedOutput>> pinned_output(const Ledger& ledger, const JobRecord& job,
                                                  std::vector<PinnedSecret>& secrets);

// The same for where its logs go.
Result<std::optional<PinnedOutput>> pinned_logs_output(const Ledger& ledger, const JobRecord& job,
                                                       std::vector<PinnedSecret>& secrets);

// The keys of these two stores for an attempt that has begun: as they are set now, or else as they
// were. Empty: the stores need none.
std::vector<PinnedSecret> output_keys(const Ledger& ledger, const JobRecord& job,
                                      const AttemptRecord& attempt);

// An input of the spec, outputs.to or outputs.logs_to that a job of this owner could not reach.
// Empty: there is none.
std::optional<Error> refuse_stores(const Ledger& ledger, const v1::JobSpec& spec,
                                   const std::string& owner);

// "store 'pangu' of user 'ann'", "shared store 'pangu'"
[[nodiscard]] std::string store_text(const OwnedName& key);

}  // namespace muster::core
