// Runs correct but awkward clients in addition to a drill's load. Clients of every kind and
// protocol request ids of the default tag for the given time, and move to the next server when a
// connection ends.
//
//     drill_awkward_clients --ports=7609,7610 --seconds=10 --ids_file=/tmp/ids
//
// Writes every id, one per line. Prints the number of answers. If an answer does not belong to its
// call, prints the faults and exits with 1.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gflags/gflags.h>

#include "common/time/clock.h"
#include "tests/support/fleet/awkward_client.h"

DEFINE_string(ports, "", "of servers on loopback, with commas between them");
DEFINE_int32(seconds, 10, "how long they ask");
DEFINE_string(ids_file, "", "where every id is written");

namespace firn {
namespace {

std::vector<int> Ports() {
  std::vector<int> ports;
  std::istringstream text(FLAGS_ports);
  for (std::string port; std::getline(text, port, ',');) ports.push_back(std::atoi(port.c_str()));
  return ports;
}

int Run() {
  const std::vector<int> ports = Ports();
  if (ports.empty() || FLAGS_ids_file.empty()) {
    std::fprintf(stderr, "--ports and --ids_file are needed\n");
    return 2;
  }
  std::vector<std::unique_ptr<AwkwardClient>> clients;
  for (const TongueName tongue :
       {TongueName::kThriftBinary, TongueName::kThriftCompact, TongueName::kHttp}) {
    for (const Manner& manner : AwkwardManners()) {
      const size_t first = clients.size();
      clients.push_back(std::make_unique<AwkwardClient>(AwkwardClient::Options{
          .ports = ports, .first = first, .tongue = tongue, .manner = Modest(manner)}));
    }
  }
  SleepFor(std::chrono::seconds(FLAGS_seconds));

  std::ofstream file(FLAGS_ids_file);
  int64_t answered = 0, refused = 0, lost = 0;
  size_t faults = 0;
  for (const auto& client : clients) {
    client->Stop();
    answered += client->answered();
    refused += client->refused();
    lost += client->lost();
    faults += client->faults().size();
    for (const std::string& fault : client->faults()) std::printf("WRONG: %s\n", fault.c_str());
    for (const int64_t id : client->ids()) file << id << '\n';
  }
  std::printf("%lld answers, %lld refusals, %lld connections lost\n",
              static_cast<long long>(answered), static_cast<long long>(refused),
              static_cast<long long>(lost));
  return faults == 0 && file.flush() && answered > 0 ? 0 : 1;
}

}  // namespace
}  // namespace firn

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return firn::Run();
}
