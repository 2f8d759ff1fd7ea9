// Decides about users' secrets: who has which, and which of them a job gets. Pure.
//
// A job names a secret by its name alone. It gets its owner's secret of that name, else the shared
// one. Which value that is, is decided when an attempt is placed, not at the submission. A job
// whose secret is gone waits until it is set again.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "controller/core/model/decision.h"
#include "controller/core/model/input.h"
#include "controller/core/model/ledger.h"

namespace muster::core {

inline constexpr std::size_t kSecretsOfUser = 256;  // also of the shared ones
inline constexpr std::size_t kSecretsMost = 10'000;

Decision decide_set(const Ledger& ledger, const SetSecret& input);
// NotFound: there is no such secret.
Decision decide_remove(const Ledger& ledger, const RemoveSecret& input);

// The secret that a job of this owner gets by this name. Nullptr: there is none.
const SecretRecord* find_secret(const Ledger& ledger, const std::string& owner,
                                const std::string& name);

// What the next attempt of the job gets: the secrets of runtime.env, and of resume.env if it
// resumes. NotFound: there is none of a name; the text is an end of "the job waits: ...".
Result<std::vector<PinnedSecret>> pinned_secrets(const Ledger& ledger, const JobRecord& job,
                                                 bool resumes);

// A secret that the spec names and that a job of this owner would not get. Empty: there is none.
std::optional<Error> refuse_secrets(const Ledger& ledger, const v1::JobSpec& spec,
                                    const std::string& owner);

// "secret 'hf' of user 'ann'", "shared secret 'hf'"
[[nodiscard]] std::string text_of(const OwnedName& key);

}  // namespace muster::core
