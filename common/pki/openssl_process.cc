#include "common/pki/host_config.h"

#include <openssl/crypto.h>

namespace muster::pki {

void ignore_host_config() { OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr); }

}  // namespace muster::pki
