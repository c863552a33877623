#pragma once

#include <string>

#include "common/base/status.h"
#include "common/base/unshared_file.h"

namespace firn {

// A socket in the kernel's abstract name space, which no file stands for: its name is taken for as
// long as this process has it open, and free the moment that the process ends. Seen are processes
// of this network name space only. kConflict: the name is taken. kUnavailable: no socket to be had.
Result<UnsharedFile> TakeAbstractName(const std::string& name);

}  // namespace firn
