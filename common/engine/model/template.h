// A text with ${names}, parsed once and expanded for each rank. The caller of parse() owns the
// template. Pure.
//
// The closed list of names is in template.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::engine {

// The values of one rank's names. Error: the name has no value here.
class TemplateValues {
 public:
  virtual ~TemplateValues() = default;
  [[nodiscard]] virtual Result<std::string> value(std::string_view name) const = 0;
};

class Template {
 public:
  static Result<Template> parse(std::string_view text);
  // Errors: a name without a value, or a result of more than `most` bytes.
  [[nodiscard]] Result<std::string> expand(const TemplateValues& values, std::size_t most) const;
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  struct Part {
    std::string text;
    bool name = false;
  };
  std::vector<Part> parts_;
};

}  // namespace muster::engine
