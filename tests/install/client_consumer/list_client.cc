#include <cstdio>

#include "client/client.h"

// Asks a server that is not there, and shows what it is told.
int main() {
  firn::Client client({.servers = "list://127.0.0.1:1"});
  const firn::Result<int64_t> id = client.GetId("order");
  if (id.ok()) return 1;
  std::printf("%s\n", id.status().ToString().c_str());
  return 0;
}
