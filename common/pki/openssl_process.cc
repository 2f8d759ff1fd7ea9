#include "common/pki/openssl_process.h"

#include <openssl/crypto.h>

namespace muster::pki {

void prepare_openssl() {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr);
}

}  // namespace muster::pki
