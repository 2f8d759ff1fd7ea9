// What a user may do, and to whose jobs. Plain values.
//
// docs/operations/users.md explains them to people.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster::controller {

// Each may do what those before it may.
//
// - Viewer: sees lists of jobs and nodes, and everything of its own jobs
// - User: submits jobs, and cancels its own
// - Operator: does everything to all jobs and nodes
// - Admin: over TCP the same; the unix socket alone issues certificates
enum class UserRole : std::uint8_t { Viewer, User, Operator, Admin };

// What a call wants of a job that may be another user's.
//
// - None: it is about no job
// - Logs: what its ranks wrote
// - Env: what it runs: spec, environment, paths, texts of events; another job that goes on from it
// - Cancel
enum class JobRight : std::uint8_t { None, Logs, Env, Cancel };

[[nodiscard]] constexpr std::string_view to_string(UserRole role) {
  switch (role) {
    case UserRole::Viewer: return "viewer";
    case UserRole::User: return "user";
    case UserRole::Operator: return "operator";
    case UserRole::Admin: return "admin";
  }
  return "?";
}

}  // namespace muster::controller
