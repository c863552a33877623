#include "tests/support/database/ferret_db.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace firn {
namespace {

bool Listens(int port) {
  const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool connected =
      connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(probe);
  return connected;
}

}  // namespace

bool FerretDb::IsBuilt() { return std::filesystem::exists(BuiltProgram("ferretdb")); }

Result<std::unique_ptr<FerretDb>> FerretDb::Start(Tls tls) {
  constexpr int kTriesMax = 3;  // another program may take a free port first
  Status failure;
  for (int i = 0; i < kTriesMax; ++i) {
    std::unique_ptr<FerretDb> server(new FerretDb(tls));
    failure = server->Restart();
    if (failure.ok()) return server;
  }
  return std::move(failure).WithContext("FerretDB");
}

Status FerretDb::Restart() {
  process_.reset();
  std::vector<std::string> command{BuiltProgram("ferretdb"), "127.0.0.1:" + std::to_string(port_),
                                   folder_.path().string()};
  if (!tls_.cert.empty()) command.insert(command.end(), {tls_.cert, tls_.key});
  if (!tls_.client_ca.empty()) command.push_back(tls_.client_ca);
  process_ = Process(command, {.output_file = folder_ / "output.log"});
  const bool ready =
      Eventually(kPatience, [this] { return !process_->Running() || Listens(port_); });
  if (ready && process_->Running()) return {};
  folder_.Keep();
  return Unavailable("not serving, see " + folder_.path().string());
}

}  // namespace firn
