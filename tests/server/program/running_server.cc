#include "tests/server/program/running_server.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <gtest/gtest.h>

#include "tests/server/front/raw_peer.h"
#include "tests/support/process.h"

namespace firn {
namespace {

std::string At(int port) { return "127.0.0.1:" + std::to_string(port); }

}  // namespace

RunningServer::RunningServer(const std::string& state_dir, std::vector<std::string> flags,
                             std::vector<std::string> wrapper)
    : state_dir_(state_dir),
      port_(FreePort()),
      admin_port_(FreePort()),
      log_file_(state_dir + ".log"),
      suppressions_file_(state_dir + ".lsan") {
  command_ = std::move(wrapper);
  for (const std::string& word :
       {BuiltProgram("firn-server"), "--listen=" + At(port_), "--admin_listen=" + At(admin_port_),
        "--state_dir=" + state_dir, "--grant_dir=" + memory_.path().string(),
        std::string("--drain_notice_ms=200")}) {
    command_.push_back(word);
  }
  for (auto& flag : flags) command_.push_back(std::move(flag));
  // ZooKeeper's client library leaks a little at the end of a process; nothing else may leak.
  std::ofstream(suppressions_file_) << "leak:libzookeeper_mt\n";
  StartAgain();
}

void RunningServer::StartAgain() {
  // Freed memory is returned to the host soon, so that a test can measure it.
  const std::string asan = "quarantine_size_mb=4", lsan = "suppressions=" + suppressions_file_;
  // Without a sanitizer, freed memory is overwritten, so that sending it shows.
  process_.emplace(command_, Process::Options{.environment = {{"ASAN_OPTIONS", asan},
                                                              {"LSAN_OPTIONS", lsan},
                                                              {"MALLOC_PERTURB_", "165"}},
                                              .output_file = log_file_});
}

void RunningServer::Kill() {
  process_->Kill();
  process_->Wait(kPatience);
}

std::string RunningServer::address() const { return At(port_); }

bool RunningServer::BecomesReady() {
  return Eventually(kPatience,
                    [this] { return Admin("/readyz").status == 200 || !process_->Running(); }) &&
         process_->Running();
}

bool RunningServer::KeepsItsHint() const {
  return Eventually(kPatience, [this] {
    bool kept = false, on_its_way = false;
    for (const auto& file : std::filesystem::directory_iterator(state_dir_)) {
      kept |= file.path().extension() == ".properties";
      on_its_way |= file.path().extension() == ".new";
    }
    return kept && !on_its_way;
  });
}

RunningServer::Answer RunningServer::Ask(int port, const std::string& verb,
                                         const std::string& target) {
  front::RawPeer peer(static_cast<uint16_t>(port));
  if (!peer.connected()) return {};
  peer.Send(verb + " " + target + " HTTP/1.0\r\nX-Firn-Admin: 1\r\n\r\n");
  const std::string all = peer.ReceiveAll();
  const size_t head = all.find("\r\n\r\n");
  if (head == std::string::npos) return {};
  return {std::stoi(all.substr(9, 3)), all.substr(head + 4)};
}

int64_t RunningServer::TakeId() const {
  const Answer answer = Get("/genid");
  EXPECT_EQ(answer.status, 200) << answer.body << log();
  return answer.status == 200 ? std::stoll(answer.body) : 0;
}

int64_t RunningServer::Metric(const std::string& series) const {
  const std::string text = Admin("/metrics").body;
  const size_t at = text.find("\n" + series + " ");
  return at == std::string::npos ? -1 : std::stoll(text.substr(at + series.size() + 2));
}

int64_t RunningServer::ResidentKib() const {
  std::ifstream status("/proc/" + std::to_string(process_->pid()) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  }
  return 0;
}

std::string RunningServer::log() const {
  std::ifstream file(log_file_);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace firn
