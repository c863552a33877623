// firn-server: issues 64-bit ids that are never issued twice.
//
//   exit 0   drained after SIGTERM or SIGINT
//   exit 1   it could not start, or a second signal came
//   exit 2   the configuration is wrong; every fault is named at once

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include <gflags/gflags.h>
#include <glog/logging.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/entropy.h"
#include "server/options.h"
#include "server/server.h"

namespace {

// The signals that are waited for, blocked in every thread.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return signals;
}

// As many descriptors as the connections need that are to be let in, where the host allows it.
void AllowDescriptors(const firn::front::Limits& limits) {
  constexpr rlim_t kOwn = 128;
  rlimit allowed{};
  getrlimit(RLIMIT_NOFILE, &allowed);
  const rlim_t wanted =
      limits.connections_max + static_cast<rlim_t>(limits.spare_descriptors) + kOwn;
  if (allowed.rlim_cur >= wanted) return;
  allowed.rlim_cur = std::min(allowed.rlim_max, wanted);
  setrlimit(RLIMIT_NOFILE, &allowed);
  LOG_IF(WARNING, allowed.rlim_cur < wanted)
      << "this process may have " << allowed.rlim_cur << " descriptors, too few for "
      << "--connections_max=" << limits.connections_max;
}

void Reload(firn::Server& server) {
  const firn::Status reloaded = server.Reload();
  if (reloaded.ok()) {
    LOG(INFO) << "certificates read again";
  } else {
    LOG(ERROR) << "certificates stay as they were: " << reloaded.message();
  }
}

// Returns when the server is to end.
void ServeUntilAsked(firn::Server& server, const sigset_t& signals) {
  for (;;) {
    int signal = 0;
    sigwait(&signals, &signal);
    if (signal != SIGHUP) return;
    Reload(server);
  }
}

// A second request to end is obeyed at once. That is safe: it is what kill -9 does.
void EndAtTheNextSignal(sigset_t signals) {
  sigdelset(&signals, SIGHUP);
  std::thread([signals] {
    int signal = 0;
    sigwait(&signals, &signal);
    _exit(1);
  }).detach();
}

int Fail(const firn::Status& status, int code) {
  std::fprintf(stderr, "firn-server: %s\n", status.message().c_str());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  gflags::SetUsageMessage("issues 64-bit ids that are never issued twice");
  gflags::SetVersionString(firn::ServerVersion());
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  if (argc > 1) return Fail(firn::Invalid("no arguments but flags are taken"), 2);

  const auto options = firn::ReadServerOptions();
  if (!options.ok()) return Fail(options.status(), 2);
  const sigset_t signals = BlockSignals();
  AllowDescriptors(options->listen.limits);
  auto server = firn::Server::Open(*options, firn::SystemClock(), firn::SystemEntropy());
  if (!server.ok()) return Fail(server.status(), server.code() == firn::Code::kInvalid ? 2 : 1);
  if (firn::Status started = (*server)->Start(); !started.ok()) return Fail(started, 1);

  ServeUntilAsked(**server, signals);
  EndAtTheNextSignal(signals);
  (*server)->Drain();
  return 0;
}
