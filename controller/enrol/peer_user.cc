#include "controller/enrol/peer_user.h"

#include <charconv>

#include "common/base/names.h"
#include "common/io/file.h"
#include "common/name_service/users.h"

namespace muster::controller {
namespace {

constexpr std::uint32_t kOverflowUid = 65'534;  // the kernel's default

// The uid by which the kernel names everybody whom the user namespace of this process does not
// have (user_namespaces(7)).
std::uint32_t overflow_uid() {
  const auto text = io::read_file("/proc/sys/kernel/overflowuid", 64);
  std::uint32_t uid = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), uid).ec != std::errc())
    return kOverflowUid;
  return uid;
}

}  // namespace

Result<std::string> user_of_peer(std::uint32_t uid, const ControllerUser& own,
                                 const name_service::Tables& tables) {
  const std::string whom = "uid " + std::to_string(uid);
  if (uid == overflow_uid())
    return fail(ErrorCode::NotAllowed,
                whom +
                    " is how the kernel names everybody whom the controller's user namespace "
                    "does not have; call from outside of a container, or see that the "
                    "controller's unit has no PrivateUsers=");
  auto found = name_service::find_user(uid, tables);
  if (!found && found.error().code == ErrorCode::NotFound)
    return fail(ErrorCode::NotAllowed, "this host has no user with " + whom);
  if (!found) return fail(std::move(found.error()).in("looking up " + whom));
  if (!is_node_name(found->name))
    return fail(
        ErrorCode::NotAllowed,
        "the name of " + whom +
            " is none that a certificate can have: letters, digits, "
            "'.', '_', '-', at most 63, the first a letter or digit; an admin makes a token "
            "for another name (`muster token create --user NAME`)");
  const auto back = name_service::find_user(found->name, tables);
  if (!back && back.error().code != ErrorCode::NotFound)
    return fail(Error(back.error()).in("looking up user '" + found->name + "'"));
  const bool is_owners = found->name == own.name && uid != own.uid;
  if (!back || back->uid != uid || is_owners)
    return fail(ErrorCode::NotAllowed, "this host calls " + whom + " '" + found->name +
                                           "', and that is also the name of another uid; one of "
                                           "the two needs another name");
  return found->name;
}

}  // namespace muster::controller
