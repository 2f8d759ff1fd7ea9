#include "common/enrol/answer.h"

#include "common/base/controls.h"
#include "common/enrol/frame.h"
#include "common/proto/proto_time.h"

namespace muster::enrol {

Result<v1::EnrolResponse> parse_answer(std::string_view bytes) {
  v1::EnrolResponse response;
  if (bytes.size() > kFrameBytesMost ||
      !response.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      response.answer_case() == response.ANSWER_NOT_SET)
    return fail(ErrorCode::InvalidArgument, "it answers with what this release cannot read");
  return response;
}

Result<Issued> issued_of(const v1::EnrolResponse& response, const std::string& doing) {
  if (response.has_refused()) {
    const auto& refused = response.refused();
    // The other end has proven that it is the controller, so its sentence has a word.
    return fail(refused.is_final() ? ErrorCode::NotAllowed : ErrorCode::ResourceExhausted,
                doing + ": " + without_controls(refused.sentence()));
  }
  const auto& issued = response.issued();
  return Issued{.certificate_pem = issued.certificate(),
                .ca_pem = issued.ca(),
                .time = to_wall(response.time()),
                .user = issued.user(),
                .addresses = {issued.addresses().begin(), issued.addresses().end()}};
}

}  // namespace muster::enrol
