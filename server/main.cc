// firn-server: issues 64-bit ids that are never issued twice.
//
//   exit 0   drained after SIGTERM or SIGINT, or asked to end while it started
//   exit 1   it could not start, or a second signal came
//   exit 2   the configuration is wrong, or the host's limits; every fault is named at once

#include <csignal>
#include <cstdio>
#include <optional>
#include <string>

#include <gflags/gflags.h>
#include <glog/logging.h>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/command_line.h"
#include "server/end_signals.h"
#include "server/flag_help.h"
#include "server/host_limits.h"
#include "server/options.h"
#include "server/server_program.h"

DECLARE_string(sequencer);

namespace {

void Reload(firn::ServerProgram& server) {
  const firn::Status reloaded = server.Reload();
  if (reloaded.ok()) {
    LOG(INFO) << "certificates read again";
  } else {
    LOG(ERROR) << "certificates stay as they were: " << reloaded.message();
  }
}

// True when it is asked to end; false when it has to be opened again.
bool ServeUntilAsked(firn::ServerProgram& server, firn::EndSignals& signals) {
  constexpr firn::Milliseconds kLook{200};
  while (!server.misguessed()) {
    const std::optional<int> signal = signals.Next(kLook);
    if (signal == SIGHUP) {
      Reload(server);
    } else if (signal) {
      return true;
    }
  }
  return false;
}

int Fail(const firn::Status& status, int code) {
  std::fprintf(stderr, "firn-server: %s\n", status.message().c_str());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  firn::ExplainLimitsAtTheEnd();
  gflags::SetUsageMessage("issues 64-bit ids that are never issued twice");
  gflags::SetVersionString(firn::ServerVersion());
  if (firn::AsksForHelp(argc, argv)) {
    std::fputs(firn::FlagHelp().c_str(), stdout);
    return 0;
  }
  const firn::Status words = firn::CheckCommandLine(argc, argv);
  if (!words.ok()) return Fail(words, 2);
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);

  const auto options = firn::ReadServerOptions();
  if (!options.ok()) return Fail(options.status(), 2);
  // A write beyond a limit is an error, and a peer that has gone as well: none ends the process.
  for (const int ignored : {SIGPIPE, SIGXFSZ}) signal(ignored, SIG_IGN);
  static firn::EndSignals& signals = *new firn::EndSignals;
  if (firn::Status some = firn::AllowDescriptors(options->listen.limits); !some.ok()) {
    return Fail(some, 2);
  }
  for (;;) {
    auto server = firn::ServerProgram::Open(*options, firn::SystemClock(), firn::SystemEntropy());
    if (!server.ok()) return Fail(server.status(), server.code() == firn::Code::kInvalid ? 2 : 1);
    if (firn::Status started = (*server)->Start(); !started.ok()) return Fail(started, 1);

    LOG(INFO) << "sequencer " << FLAGS_sequencer;

    signals.Serve();
    if (ServeUntilAsked(**server, signals)) {
      (*server)->Drain();
      return 0;
    }
    LOG(WARNING) << "the cluster is another than was guessed while the registry was away: starting "
                    "again";
  }
}
