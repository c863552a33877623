// The example of the README: a program that issues ids itself.

#include <iostream>

#include "server/node/embedded.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: embedded_example FOLDER\n";
    return 2;
  }
  const std::string folder = argv[1];
  auto ids = firn::Embedded::Open(
      {.registry = "dir://" + folder + "/registry", .state_dir = folder + "/state"});
  if (!ids.ok()) {
    std::cerr << ids.status() << "\n";
    return 1;
  }
  for (int i = 0; i < 3; ++i) {
    const firn::Result<int64_t> id = (*ids)->Next();
    if (!id.ok()) {
      std::cerr << id.status() << "\n";
      return 1;
    }
    std::cout << *id << "\n";
  }
  return 0;
}
