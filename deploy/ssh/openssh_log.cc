#include "deploy/ssh/openssh_log.h"

#include <algorithm>

#include "common/base/controls.h"
#include "deploy/ssh/host_check.h"

namespace muster::ssh {
namespace {

constexpr std::string_view kDebug = "debug1: ";
constexpr std::size_t kLastLines = 3;

std::vector<std::string_view> lines_of(std::string_view log) {
  std::vector<std::string_view> lines;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    std::string_view line = log.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) lines.push_back(line);
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return lines;
}

class Log {
 public:
  explicit Log(std::string_view text) : lines_(lines_of(text)) {}

  // The last line with this text, without control characters. Empty: there is none.
  [[nodiscard]] std::string line_with(std::string_view text) const {
    for (std::size_t i = lines_.size(); i-- > 0;)
      if (lines_[i].find(text) != std::string_view::npos) return without_controls(lines_[i]);
    return {};
  }
  [[nodiscard]] bool has(std::string_view text) const { return !line_with(text).empty(); }
  // What follows the text in the last line that has it.
  [[nodiscard]] std::string behind(std::string_view text) const {
    const std::string line = line_with(text);
    return line.empty() ? line : line.substr(line.find(text) + text.size());
  }
  // "publickey,password"; empty: the host did not refuse.
  [[nodiscard]] std::string accepted_methods() const {
    const std::string methods = behind("Permission denied (");
    return methods.substr(0, methods.find(')'));
  }
  [[nodiscard]] std::string tried() const {
    std::string out;
    for (const std::string_view line : lines_) {
      constexpr std::string_view kOffer = "Offering public key: ";
      const std::size_t at = line.find(kOffer);
      if (at == std::string_view::npos) continue;
      out += (out.empty() ? "" : ", ") + without_controls(line.substr(at + kOffer.size()));
    }
    return out.empty() ? "no key" : out;
  }
  [[nodiscard]] std::string last() const {
    std::string out;
    std::size_t count = 0;
    for (std::size_t i = lines_.size(); i-- > 0 && count < kLastLines;) {
      if (lines_[i].starts_with(kDebug)) continue;
      out = without_controls(lines_[i]) + (out.empty() ? "" : " / ") + out;
      ++count;
    }
    return out;
  }

 private:
  std::vector<std::string_view> lines_;
};

}  // namespace

Error openssh_failure(std::string_view text, const std::string& entry,
                      const std::vector<std::string>& files, bool asked) {
  const Log log(text);
  const std::string shown = log.behind("Server host key: ");
  if (log.has("REVOKED HOST KEY")) {
    std::string places;  // the log does not name the line
    for (const std::string& file : files) places += (places.empty() ? "" : " or ") + file;
    return {ErrorCode::NotAllowed, revoked_key_text(shown, places)};
  }
  if (log.has("revoked by file "))
    return {ErrorCode::NotAllowed, revoked_key_text(shown, log.behind("revoked by file "))};
  if (log.has("HOST IDENTIFICATION HAS CHANGED")) {
    std::string place = log.line_with("Offending ");
    place = place.substr(std::min(place.find(" in "), place.size()));
    if (place.starts_with(" in ")) place.erase(0, 4);
    return {ErrorCode::NotAllowed,
            changed_key_text(shown, place, place.substr(0, place.rfind(':')), entry)};
  }
  if (log.has("host key is known for") || log.has("Host key verification failed"))
    return {ErrorCode::NotAllowed,
            unknown_key_text(shown, "or record it with ssh-keyscan after you have compared it")};
  if (const std::string why = log.behind("Unable to negotiate with "); !why.empty())
    return {ErrorCode::Unreachable, "there is no common algorithm: " + why};
  if (log.has("Permission denied")) {
    return {ErrorCode::NotAllowed,
            "the host refused the authentication; it accepts " + log.accepted_methods() +
                ", and `ssh` tried: " + log.tried() +
                (asked ? "; is what was typed right?"
                       : "; where a passphrase or a password is needed, it is asked for at a "
                         "terminal alone")};
  }
  if (log.has("administratively prohibited"))
    return {ErrorCode::NotAllowed,
            "it forwards no connection; set AllowTcpForwarding and PermitOpen in its sshd_config, "
            "or use another jump host"};
  if (const std::string why = log.line_with("Could not resolve hostname"); !why.empty())
    return {ErrorCode::NotFound, why};
  for (const char* why : {"Connection timed out", "timed out"})
    if (log.has(why)) return {ErrorCode::TimedOut, log.last()};
  const std::string last = log.last();
  return {ErrorCode::Unreachable, last.empty() ? "`ssh` did not say why" : last};
}

bool openssh_needs_key(std::string_view text) {
  return Log(text).accepted_methods().contains("publickey");
}

bool openssh_needs_password(std::string_view text) {
  return Log(text).accepted_methods().contains("password");
}

std::vector<std::string> openssh_notes(std::string_view text) {
  const std::string added = Log(text).line_with("Permanently added ");
  return added.empty() ? std::vector<std::string>() : std::vector{added};
}

}  // namespace muster::ssh
