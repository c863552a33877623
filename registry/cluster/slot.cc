#include "registry/cluster/slot.h"

namespace firn {

std::string SlotText(Slot slot) {
  return "rack " + std::to_string(slot.rack) + " worker " + std::to_string(slot.worker);
}

std::string RackPath(uint32_t rack) { return "/machines/" + std::to_string(rack); }

std::string SlotPath(Slot slot) { return RackPath(slot.rack) + "/" + std::to_string(slot.worker); }

std::string LivePath(Slot slot) { return SlotPath(slot) + "/live"; }

std::string EraPath(const Nonce& era) { return std::string("/") + kEraPrefix + era.text(); }

// Nobody ever sets it.
Write EraCheck(const Nonce& era) { return Write::Check(EraPath(era), 0); }

}  // namespace firn
