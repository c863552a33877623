#include "tests/support/database/sql_server.h"

#include <fstream>

#include <sys/stat.h>

namespace firn {

Status SqlServer::WriteCredentials() const {
  std::ofstream(credentials_file()) << kUser << ":" << kPassword << "\n";
  return chmod(credentials_file().c_str(), 0600) == 0 ? Status()
                                                      : Internal("cannot write credentials");
}

}  // namespace firn
