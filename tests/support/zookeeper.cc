#include "tests/support/zookeeper.h"

#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace firn {
namespace {

namespace fs = std::filesystem;

// Returns the answer of a listener on 127.0.0.1:port to `question`; empty on any failure.
std::string AskPort(int port, const std::string& question) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};
  const timeval second{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      send(fd, question.data(), question.size(), MSG_NOSIGNAL) > 0) {
    char buffer[4096];
    for (ssize_t n; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;) {
      answer.append(buffer, static_cast<size_t>(n));
    }
  }
  close(fd);
  return answer;
}

std::vector<std::string> JavaCommand(const fs::path& folder, const ZooKeeperOptions& options) {
  return {"java",
          "-Xmx96m",
          "-XX:+UseSerialGC",
          "-XX:TieredStopAtLevel=1",
          "-XX:-UsePerfData",
          "-Dorg.slf4j.simpleLogger.logFile=" + (folder / "zookeeper.log").string(),
          "-Dorg.slf4j.simpleLogger.showDateTime=true",
          "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
          "-Dzookeeper.jmx.log4j.disable=true",
          "-Dzookeeper.preAllocSize=1024",
          std::string("-Dzookeeper.forceSync=") + (options.force_sync ? "yes" : "no"),
          "-cp",
          "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar",
          "org.apache.zookeeper.server.quorum.QuorumPeerMain",
          (folder / "zoo.cfg").string()};
}

}  // namespace

Result<std::unique_ptr<ZooKeeper>> ZooKeeper::Start(ZooKeeperOptions options) {
  constexpr int kTriesMax = 3;  // another program may take a free port first
  Status failure;
  for (int i = 0; i < kTriesMax; ++i) {
    std::unique_ptr<ZooKeeper> zk(new ZooKeeper(options));
    failure = zk->StartAll();
    if (failure.ok()) return zk;
    if (i + 1 == kTriesMax) zk->KeepFiles();
  }
  return std::move(failure).WithContext("ZooKeeper (packages zookeeper, default-jre-headless)");
}

Status ZooKeeper::StartAll() {
  for (int i = 0; i < options_.members; ++i) {
    members_.push_back(
        {FreePort(), FreePort(), FreePort(), folder_ / ("member-" + std::to_string(i))});
  }
  for (int i = 0; i < size(); ++i) FIRN_TRY(WriteFiles(i));
  FIRN_TRY(RestartAll());
  return AwaitReady();
}

Status ZooKeeper::WriteFiles(int member) const {
  const Member& own = members_[At(member)];
  std::error_code failure;
  fs::create_directories(own.folder / "data", failure);
  std::ofstream config(own.folder / "zoo.cfg");
  config << "tickTime=" << options_.tick.count() << "\n"
         << "initLimit=50\n"
         << "syncLimit=25\n"
         << "minSessionTimeout=" << 2 * options_.tick.count() << "\n"
         << "maxSessionTimeout=60000\n"
         << "maxClientCnxns=0\n"
         << "admin.enableServer=false\n"
         << "4lw.commands.whitelist=*\n"
         << "dataDir=" << (own.folder / "data").string() << "\n"
         << "clientPort=" << own.client_port << "\n"
         << "clientPortAddress=127.0.0.1\n";
  for (int i = 0; size() > 1 && i < size(); ++i) {
    const Member& peer = members_[At(i)];
    config << "server." << i + 1 << "=127.0.0.1:" << peer.quorum_port << ":" << peer.election_port
           << "\n";
  }
  std::ofstream(own.folder / "data" / "myid") << member + 1 << "\n";
  if (failure || !config) return Internal("cannot write below " + own.folder.string());
  return {};
}

std::string ZooKeeper::hosts() const {
  std::string text;
  for (const Member& member : members_) {
    if (!text.empty()) text += ',';
    text += "127.0.0.1:" + std::to_string(member.client_port);
  }
  return text;
}

// --- faults -------------------------------------------------------------------------------------

void ZooKeeper::Kill(int member) { members_[At(member)].process.reset(); }

Status ZooKeeper::Restart(int member) {
  Member& own = members_[At(member)];
  own.process.reset();
  own.process =
      Process(JavaCommand(own.folder, options_), {.output_file = own.folder / "output.log"});
  return {};
}

void ZooKeeper::Stop(int member) { members_[At(member)].process->Pause(); }

void ZooKeeper::Continue(int member) { members_[At(member)].process->Resume(); }

void ZooKeeper::KillAll() {
  for (int i = 0; i < size(); ++i) Kill(i);
}

Status ZooKeeper::RestartAll() {
  for (int i = 0; i < size(); ++i) FIRN_TRY(Restart(i));
  return {};
}

Status ZooKeeper::Wipe() {
  KillAll();
  std::error_code failure;
  for (int i = 0; i < size(); ++i) {
    fs::remove_all(members_[At(i)].folder / "data", failure);
    FIRN_TRY(WriteFiles(i));
  }
  FIRN_TRY(RestartAll());
  return AwaitReady();
}

Status ZooKeeper::SaveData() {
  KillAll();
  std::error_code failure;
  for (const Member& member : members_) {
    fs::remove_all(member.folder / "backup", failure);
    fs::copy(member.folder / "data", member.folder / "backup", fs::copy_options::recursive,
             failure);
    if (failure) return Internal("copy " + member.folder.string() + ": " + failure.message());
  }
  FIRN_TRY(RestartAll());
  return AwaitReady();
}

Status ZooKeeper::RestoreData() {
  KillAll();
  std::error_code failure;
  for (const Member& member : members_) {
    fs::remove_all(member.folder / "data", failure);
    fs::copy(member.folder / "backup", member.folder / "data", fs::copy_options::recursive,
             failure);
    if (failure) return Internal("copy " + member.folder.string() + ": " + failure.message());
  }
  FIRN_TRY(RestartAll());
  return AwaitReady();
}

Status ZooKeeper::SetVersion(const std::string& path, int64_t version) {
  KillAll();
  for (const Member& member : members_) {
    const Finished java =
        RunToEnd({"java", "-cp", "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar",
                  std::string(FIRN_SOURCE_DIR) + "/tests/support/NodeVersion.java",
                  (member.folder / "data").string(), path, std::to_string(version)},
                 kPatience);
    if (java.exit_code != 0) return Internal("NodeVersion.java: " + java.err);
  }
  FIRN_TRY(RestartAll());
  return AwaitReady();
}

// --- state --------------------------------------------------------------------------------------

std::string ZooKeeper::Ask(int member, const std::string& word) const {
  return AskPort(port(member), word);
}

std::string ZooKeeper::Mode(int member) {
  Member& own = members_[At(member)];
  if (!own.process.has_value() || !own.process->Running()) return {};
  const std::string answer = Ask(member, "srvr");
  const std::string key = "Mode: ";
  const size_t at = answer.find(key);
  if (at == std::string::npos) return {};
  const size_t begin = at + key.size();
  return answer.substr(begin, answer.find('\n', begin) - begin);
}

std::optional<int> ZooKeeper::Leader() {
  for (int i = 0; i < size(); ++i) {
    const std::string mode = Mode(i);
    if (mode == "leader" || mode == "standalone") return i;
  }
  return std::nullopt;
}

bool ZooKeeper::Ready() {
  bool leader = false;
  for (int i = 0; i < size(); ++i) {
    if (!members_[At(i)].process.has_value()) continue;
    const std::string mode = Mode(i);
    if (mode.empty()) return false;
    leader = leader || mode == "leader" || mode == "standalone";
  }
  return leader;
}

Status ZooKeeper::AwaitReady(Milliseconds patience) {
  const BootMs deadline = TestNow() + patience;
  while (!Ready()) {
    for (int i = 0; i < size(); ++i) {
      auto& process = members_[At(i)].process;
      if (process.has_value() && !process->Running()) {
        return Unavailable("member " + std::to_string(i) + " has ended, see " + folder().string());
      }
    }
    if (TestNow() >= deadline) {
      return Unavailable("not serving in time, see " + folder().string());
    }
    SleepBriefly();
  }
  return {};
}

}  // namespace firn
