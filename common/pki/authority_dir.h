// The CA of a controller on its disk, and the own certificate of the controller. Stateless
// functions, any thread; blocking. Only one process may use a directory: the lock of the
// controller on its state directory sees to that.
//
//   DIR/          mode 0700
//     ca.key      mode 0600; whoever reads it can speak for everybody in the cluster
//     ca.pem      the CA's certificate
//
// The first call makes both files durably, the key first. After a crash between the two, the next
// call signs a certificate with the key that it finds. A certificate without its key is never
// replaced: nodes and users have certificates that only this key can have signed.
//
// While the CA is changed, there are more files: authority_files.h.
#pragma once

#include <filesystem>
#include <string_view>

#include "common/base/error.h"
#include "common/base/time.h"
#include "common/pki/authority.h"
#include "common/pki/credentials.h"

namespace muster::pki {

// Errors: NotAllowed when others may read the key or write in the directory; DataLoss when the key
// is missing; InvalidArgument when a file is damaged; Conflict when the CA is another cluster's;
// Io, ResourceExhausted.
Result<Authority> open_authority(const std::filesystem::path& dir, std::string_view cluster,
                                 WallTime now);

// Makes the directory, and checks who may read and write there. Errors as above.
Result<void> prepare_authority_dir(const std::filesystem::path& dir);

// A new key, and a certificate for it that lives as long as the CA. Nothing of it is on disk.
Result<Credentials> issue_controller(const Authority& authority, std::string_view cluster,
                                     WallTime now);

}  // namespace muster::pki
