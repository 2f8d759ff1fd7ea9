// Looks up users and their groups in the host's tables (getent.h). Stateless. Any thread but a
// loop: each call may run a program for Tables::most.
//
// Errors are reasons without a context. NotFound: there is no such user. Unreachable: the host gave
// no answer, or one that cannot be right.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/name_service/entries.h"
#include "common/name_service/getent.h"

namespace muster::name_service {

Result<User> find_user(const std::string& name, const Tables& tables = {});
Result<User> find_user(std::uint32_t uid, const Tables& tables = {});

// The user's own group comes first.
Result<std::vector<std::uint32_t>> groups_of(const User& user, const Tables& tables = {});

}  // namespace muster::name_service
