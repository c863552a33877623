#pragma once

#include <string>

#include "common/base/status.h"
#include "common/base/unshared_file.h"

namespace firn {

// Binds a socket in the kernel's abstract namespace, which needs no file. The name is taken as long
// as this process has the socket open, and free as soon as the process ends. Only processes of the
// same network namespace see it. kConflict: the name is taken. kUnavailable: no socket can be
// created.
Result<UnsharedFile> TakeAbstractName(const std::string& name);

}  // namespace firn
