// A Secret owns a password or a passphrase and wipes its memory at the end. Plain value, movable
// and not copyable; one thread at a time.
//
// It is never printed, and nothing converts it to a string. Callers that need a C string take
// c_str() for one call.
#pragma once

#include <string.h>

#include <cstddef>
#include <string>
#include <utility>

namespace muster::ssh {

class Secret {
 public:
  Secret() = default;
  // Takes over the text and wipes the argument.
  explicit Secret(std::string&& text) : bytes_(text) { wipe(text); }
  Secret(Secret&& other) noexcept : bytes_(other.bytes_) { wipe(other.bytes_); }
  Secret& operator=(Secret&& other) noexcept {
    if (this != &other) {
      wipe(bytes_);
      bytes_ = other.bytes_;
      wipe(other.bytes_);
    }
    return *this;
  }
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret() { wipe(bytes_); }

  [[nodiscard]] Secret copy() const { return Secret(std::string(bytes_)); }
  [[nodiscard]] const char* c_str() const { return bytes_.c_str(); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

 private:
  static void wipe(std::string& text) {
    if (text.capacity() > 0) ::explicit_bzero(text.data(), text.size());
    text.clear();
  }
  std::string bytes_;
};

}  // namespace muster::ssh
