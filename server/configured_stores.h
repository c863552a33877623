#pragma once

#include "common/base/status.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/flags/stores_ini.h"
#include "server/node/segment_tags.h"

namespace firn {

// Creates the stores of the file and adds them to `segments`, before the node starts. Opens no
// connection: an unreachable store does not prevent the start. Logs the stores' alarms as errors.
// kConflict if two stores have one name. `clock` and `entropy` must outlive `segments`; the stores'
// threads use both.
//
// A tiered store has its own connections to its durable side.
Status AddStores(const StoresIni& ini, SegmentTags& segments, const Clock& clock, Entropy& entropy);

}  // namespace firn
