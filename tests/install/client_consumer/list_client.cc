#include <cstdio>

#include "client/client.h"

// Calls a server that does not exist, and prints the errors.
int main() {
  firn::Client client({.servers = "list://127.0.0.1:1"});
  const firn::Result<int64_t> id = client.GetId("order");
  if (id.ok()) return 1;
  std::printf("%s\n", id.status().ToString().c_str());
  const auto generator = client.OpenGenerator({.name = "a-program"}, firn::Milliseconds(10));
  if (generator.ok()) return 1;
  std::printf("%s\n", generator.status().ToString().c_str());
  return 0;
}
