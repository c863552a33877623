#pragma once

#include "common/base/status.h"
#include "server/issue/refusal.h"

namespace firn {

// A refusal as a program without a server sees it: the code that names the same remedy, and the
// refusal's sentence.
Status StatusOf(const Refusal& refusal);

}  // namespace firn
