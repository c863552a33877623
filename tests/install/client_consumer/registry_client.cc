#include <cstdio>

#include "client/client.h"
#include "client/local_ranges.h"
#include "client/source/registry_source.h"

// Reads the list of servers from a directory that does not exist, and prints the error.
int main() {
  firn::Client client({.servers = "dir:///nowhere/firn",
                       .open_source = firn::RegistrySources(),
                       .local_ranges = firn::LocalRanges({firn::LocalTag::Segment("order")})});
  const firn::Result<int64_t> id = client.GetId("order");
  if (id.ok()) return 1;
  std::printf("%s\n", id.status().ToString().c_str());
  return 0;
}
