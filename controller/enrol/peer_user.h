// The user at the other end of the enrolment socket: from the uid that the kernel has for it to the
// name that its certificate gets. Stateless; blocking (it may run getent); never on a loop that
// others wait for.
//
// The name decides about rights, so it must be the uid's alone: the host gives this uid this name,
// and this name this uid. The name of the user who runs the controller owns the jobs of the unix
// socket; it is for that uid only.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/error.h"
#include "common/name_service/getent.h"

namespace muster::controller {

// Who runs the controller: own_user() (access_setup.h), and its uid.
struct ControllerUser {
  std::string name;
  std::uint32_t uid = 0;
};

// Errors are reasons for the user. NotAllowed: the uid has no name, no usable one, or one that is
// not its own. Unreachable: the host gave no answer; try again.
Result<std::string> user_of_peer(std::uint32_t uid, const ControllerUser& own,
                                 const name_service::Tables& tables = {});

}  // namespace muster::controller
