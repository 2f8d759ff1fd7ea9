#include "agent/launch/now_preparing.h"

#include <utility>

namespace muster::agent {
namespace {

thread_local StartProgress* progress_here = nullptr;

}  // namespace

void prepare_for(StartProgress* progress) { progress_here = progress; }

void now_preparing(std::string what) {
  if (progress_here != nullptr) progress_here->describe(std::move(what));
}

}  // namespace muster::agent
