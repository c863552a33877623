#pragma once

#include "common/base/status.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/flags/stores_ini.h"
#include "server/node/segment_tags.h"

namespace firn {

// Makes the stores of the file and gives them to `segments`, before the node starts. Nothing is
// connected to: a store that is away is no reason not to start. Their alarms go to the log, as
// errors. kConflict when a name is taken. `clock` and `entropy` must outlive `segments`; both are
// used on the stores' threads.
//
// A tiered store has connections of its own to its durable side.
Status AddStores(const StoresIni& ini, SegmentTags& segments, const Clock& clock, Entropy& entropy);

}  // namespace firn
