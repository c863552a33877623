// For arbitrary bytes, the Dubbo protocol answers, waits for more or closes. Its answers are whole
// messages, and it changes its output only if it answers.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tests/server/front/dubbo/dubbo_messages.h"

namespace firn::front {
namespace {

class Door {
 public:
  void Feed(std::string_view in) {
    DoorCall door{.last = true};
    state_.read_only = !state_.read_only;
    while (!in.empty()) {
      OutBuffer out;
      const ServeStep step = protocol_->Serve(in, door, out);
      CheckMessages(out.view());
      if (step.kind == ServeStep::Kind::kNeedMore && !out.empty()) std::abort();
      if (step.kind == ServeStep::Kind::kPark) std::abort();
      if (step.kind != ServeStep::Kind::kServed) return;
      if (step.bytes < DubboHeader::kBytes || step.bytes > in.size()) std::abort();
      in.remove_prefix(step.bytes);
    }
  }

 private:
  static void CheckMessages(std::string_view out) {
    while (!out.empty()) {
      if (out.size() < DubboHeader::kBytes) std::abort();
      const size_t whole = DubboHeader::kBytes + DubboHeader::Read(out).body_bytes;
      if (whole > out.size()) std::abort();
      out.remove_prefix(whole);
    }
  }

  Issuing issuing_;
  IdDesk desk_{issuing_.issuer, issuing_.counters, Method::kDubbo, "slow"};
  DubboState state_;
  DubboCounters counters_;
  std::unique_ptr<Protocol> protocol_ =
      MakeDubboProtocol(issuing_.backend, desk_, state_, counters_);
};

}  // namespace
}  // namespace firn::front

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static firn::front::Door door;
  door.Feed({reinterpret_cast<const char*>(data), size});
  return 0;
}
