#include "controller/authority_setup.h"

#include <utility>

#include "common/log/log.h"
#include "common/pki/authority.h"
#include "common/pki/authority_files.h"

namespace muster::controller {

std::filesystem::path pki_dir(const Config& config) { return config.state_dir / "pki"; }

Result<AuthoritiesNow> open_authorities(const Config& config, const ClusterId& cluster,
                                        const core::Ledger& ledger, const Clock& clock) {
  const WallTime now = clock.now().wall;
  auto set = pki::settle_authorities(pki_dir(config), cluster.str(),
                                     plan_of(ledger.access.authorities), now);
  if (!set) return fail(std::move(set.error()));
  return authorities_now(std::move(*set), now);
}

void record_authority(Shell& shell, const Authorities& authorities, const std::string& known,
                      std::string actor, const Clock& clock) {
  if (!authorities) return;
  const std::string digest = authorities->certificate().digest();
  if (digest == known) return;
  if (!known.empty())
    log::warn("the CA is another one; certificates and tokens of the one before count no more",
              {{"signing", digest}, {"before", known}});
  (void)shell.submit(core::ChangeAuthority{.step = core::AuthorityStep::Signs,
                                           .sha256 = digest,
                                           .signing = digest,
                                           .made_at = authorities->certificate().not_before() +
                                                      pki::kClockDifference,
                                           .actor = std::move(actor)},
                     clock.now(), [](const Outcome&, const View&) {});
}

}  // namespace muster::controller
