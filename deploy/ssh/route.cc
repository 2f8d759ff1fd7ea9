#include "deploy/ssh/route.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/base/controls.h"
#include "common/name_service/users.h"
#include "common/process/tool.h"
#include "deploy/ssh/child.h"

namespace muster::ssh {
namespace {

constexpr Duration kConfigTime = std::chrono::seconds(5);

std::optional<std::string> find_ssh(const Options& options) {
  if (options.ssh_program.empty()) return std::nullopt;
  if (options.ssh_program.find('/') != std::string::npos) {
    if (::access(options.ssh_program.c_str(), X_OK) != 0) return std::nullopt;
    return options.ssh_program;
  }
  const char* path = ::getenv("PATH");
  return process::find_program(options.ssh_program, path == nullptr ? "/usr/bin:/bin" : path);
}

Result<Defaults> own_defaults() {
  auto user = name_service::find_user(static_cast<std::uint32_t>(::getuid()));
  if (!user) return fail(std::move(user).error().in("finding the user that runs this program"));
  const char* home = ::getenv("HOME");
  return Defaults{.user = user->name,
                  .home = home == nullptr || *home == '\0' ? user->home : std::string(home)};
}

class Finder {
 public:
  Finder(const Options& options, Defaults defaults, Route& route)
      : options_(options), defaults_(std::move(defaults)), route_(route) {}

  Result<void> add(const Target& target) {
    auto hop = read(target);
    if (!hop) return fail(std::move(hop).error());
    auto jumps = parse_jumps(hop->proxy_jump);
    if (!jumps) return fail(std::move(jumps).error());
    for (Target& jump : *jumps) {
      // The first one may have a jump host of its own; the others are reached through the first.
      if (&jump == &jumps->front()) jump.jump.clear();
      jump.identity_file = target.identity_file;
      jump.known_hosts = target.known_hosts;
      depth_ += 1;
      if (depth_ > kJumpsMost)
        return fail(ErrorCode::InvalidArgument, "connecting to '" + target.host +
                                                    "' by SSH: its jump hosts need each other, "
                                                    "or there are more than " +
                                                    std::to_string(kJumpsMost));
      if (auto added = add(jump); !added) return added;
    }
    route_.hops.push_back(std::move(*hop));
    return {};
  }

 private:
  Result<Hop> read(const Target& target) {
    if (auto sound = check_target(target); !sound) return fail(std::move(sound).error());
    if (!route_.program) return plain_hop(target, defaults_);
    ChildRequest request{.program = *route_.program,
                         .args = {},
                         .output_most = kConfigBytesMost,
                         .deadline = deadline_after(kConfigTime)};
    auto& args = request.args;
    if (!options_.ssh_config.empty()) args.insert(args.end(), {"-F", options_.ssh_config});
    if (target.port != 0) args.insert(args.end(), {"-p", std::to_string(target.port)});
    if (!target.user.empty()) args.insert(args.end(), {"-l", target.user});
    if (!target.identity_file.empty()) args.insert(args.end(), {"-i", target.identity_file});
    args.insert(args.end(), {"-G", "--", target.host});
    const auto end = run_child(request, Source::none());
    const std::string doing =
        "asking '" + *route_.program + " -G' about host '" + target.host + "'";
    if (!end) return fail(Error(end.error()).in(doing));
    if (end->late) return fail(ErrorCode::TimedOut, doing + ": it did not end within 5 s");
    if (!end->output.ok() || end->output.out_cut)
      return fail(ErrorCode::InvalidArgument,
                  doing + ": " + without_controls(end->output.err.substr(0, 1000)));
    return configured_hop(target, end->output.out, defaults_);
  }

  const Options& options_;
  Defaults defaults_;
  Route& route_;
  std::size_t depth_ = 0;  // jump hosts that were begun
};

}  // namespace

Result<Route> find_route(const Target& target, const Options& options) {
  auto defaults = own_defaults();
  if (!defaults) return fail(std::move(defaults).error());
  Route route{.hops = {}, .program = find_ssh(options)};
  if (auto added = Finder(options, std::move(*defaults), route).add(target); !added)
    return fail(std::move(added).error());
  return route;
}

}  // namespace muster::ssh
