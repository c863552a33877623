#include "registry/cluster/slot.h"

#include "common/base/cat.h"

namespace firn {

std::string SlotText(Slot slot) { return Cat("rack ", slot.rack, " worker ", slot.worker); }

std::string RackPath(uint32_t rack) { return Cat("/machines/", rack); }

std::string SlotPath(Slot slot) { return Cat(RackPath(slot.rack), "/", slot.worker); }

std::string LivePath(Slot slot) { return SlotPath(slot) + "/live"; }

std::string EraPath(const Nonce& era) { return std::string("/") + kEraPrefix + era.text(); }

// The node is never set.
Write EraCheck(const Nonce& era) { return Write::Check(EraPath(era), 0); }

}  // namespace firn
