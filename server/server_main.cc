#include "server/server_main.h"

#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/base/faults.h"
#include "common/log/log.h"
#include "common/net/ip_address.h"
#include "common/time/civil_time.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/flags/command_line.h"
#include "server/flags/flag_help.h"
#include "server/flags/options.h"
#include "server/host_limits.h"
#include "server/log_output.h"
#include "server/server_program.h"
#include "server/supervisor.h"

DECLARE_bool(check_config);
DECLARE_string(sequencer);

namespace firn {
namespace {

constexpr Milliseconds kExpiresSoon{30LL * 24 * 3600 * 1000};

// Logs certificates that have expired or expire soon.
void WarnOfCertificates(const ServerProgram& server) {
  const WallMs now = SystemClock().Wall();
  for (const auto& [door, expiry] : server.certificates()) {
    const std::string end = Cat(" of the ", door, " port expires at ");
    if (expiry.certificate <= now) {
      LogError("certificate_expired").With("port", door)
          << "the TLS certificate of the " << door << " port expired at "
          << FormatRfc3339(expiry.certificate) << "; clients will refuse it";
    } else if (expiry.certificate - now < kExpiresSoon) {
      LogWarning("certificate_expires").With("port", door)
          << "the TLS certificate" << end << FormatRfc3339(expiry.certificate);
    }
    if (!expiry.client_ca) continue;
    if (*expiry.client_ca <= now) {
      LogError("certificate_expired").With("port", door)
          << "a client CA certificate of the " << door << " port expired at "
          << FormatRfc3339(*expiry.client_ca)
          << "; clients whose certificates it signed are refused";
    } else if (*expiry.client_ca - now < kExpiresSoon) {
      LogWarning("certificate_expires").With("port", door)
          << "a client CA certificate" << end << FormatRfc3339(*expiry.client_ca);
    }
  }
}

// Anyone on the path of a plain connection can read the passwords.
void WarnOfPlainPasswords(const ServerOptions& options) {
  if (options.redis_auth_file.empty() || options.listen.tls) return;
  if (IsLoopback(options.listen.host)) return;
  LogWarning("plain_passwords") << "passwords of --redis_auth_file cross the plain port "
                                << options.listen.host << ":" << options.listen.port
                                << "; set --tls_cert and --tls_key";
}

std::string CertificateDates(const ServerProgram& server) {
  std::string dates;
  for (const front::CertificateReport& one : server.certificates()) {
    dates += Cat(dates.empty() ? " (" : ", ", one.door, " port: valid until ",
                 FormatRfc3339(one.expiry.certificate));
    if (!one.expiry.client_ca) continue;
    dates += Cat(", client CA valid until ", FormatRfc3339(*one.expiry.client_ca));
  }
  return dates.empty() ? dates : dates + ")";
}

// Lists each reloaded file with its outcome.
std::string OutcomesOf(const front::ReloadReport& report) {
  std::string outcomes;
  for (const front::ReloadedFile& file : report.files) {
    outcomes += Cat(outcomes.empty() ? "" : ", ", "--", file.flag, " ", file.outcome_name());
  }
  return outcomes.empty() ? "no flag names such a file" : outcomes;
}

void Reload(ServerProgram& server) {
  const front::ReloadReport report = server.Reload();
  const std::string outcomes = OutcomesOf(report);
  if (report.faults.empty()) {
    LogInfo("reloaded").With("files", outcomes)
        << "TLS certificates and rights reloaded" << CertificateDates(server) << ": " << outcomes;
  } else {
    std::string faults;
    for (const std::string& fault : report.faults) faults += fault + "; ";
    LogError("reload_failed").With("files", outcomes)
        << "reload failed, the files read before stay in force: " << faults << outcomes;
  }
  WarnOfCertificates(server);
}

// Returns true after a signal to end; false if the server must be opened again.
bool ServeUntilAsked(ServerProgram& server, EndSignals& signals) {
  constexpr Milliseconds kPause{200};
  FreedInBulk freed;
  Watchdog watchdog;
  std::string shown;
  std::optional<ServerPhase> logged;
  while (!server.misguessed()) {
    const BootMs now = SystemClock().Boot();
    freed.Observe(server.connection_bytes(), now);
    watchdog.Observe(server.OldestTurn(now), now);
    std::string readiness = server.Readiness();
    // Once per phase, because a reason can contain numbers that change constantly.
    if (const ServerPhase phase = server.phase(); phase != std::exchange(logged, phase)) {
      LogInfo("readiness_changed").With("state", PhaseName(phase)) << "readiness: " << readiness;
    }
    if (readiness != shown) {
      shown = std::move(readiness);
      NotifyServiceManager("STATUS=" + shown);
    }
    const std::optional<int> signal = signals.Next(kPause);
    if (signal == SIGHUP) {
      Reload(server);
    } else if (signal) {
      return true;
    }
  }
  return !signals.StartAgain();
}

// The end of --help: names that only this program permits in tags.
std::string OwnNames(const Extensions& own) {
  std::string page;
  for (const auto& [name, maker] : own.strategies) page += Cat("  strategy ", name, "\n");
  for (const auto& [name, maker] : own.plugins) page += Cat("  plugin ", name, "\n");
  for (const auto& [name, maker] : own.stores) page += Cat("  store ", name, "\n");
  return page.empty() ? page : "\nAdded by this program, for use in tags:\n" + page;
}

int Fail(const Status& status, int code) {
  if (ChosenLogStyle().format == LogFormat::kJson) {
    LogError("start_failed") << status.message();
  } else {
    std::fprintf(stderr, "firn-server: %s\n", status.message().c_str());
  }
  return code;
}

}  // namespace

int ServerMain(int argc, char** argv, const Extensions& extensions) {
  ReturnFreedMemory();
  ExplainLimitsAtTheEnd();
  gflags::SetUsageMessage("issues 64-bit ids that are never issued twice");
  gflags::SetVersionString(ServerVersion());
  if (AsksForHelp(argc, argv)) {
    std::fputs((FlagHelp() + OwnNames(extensions)).c_str(), stdout);
    return 0;
  }
  gflags::SetArgv(argc, const_cast<const char**>(argv));
  RetiredFlags retired;
  const Status words = ReadCommandLine(argc, argv, retired);
  gflags::HandleCommandLineHelpFlags();
  SendLogToStderr(ChosenLogStyle(), argv[0]);
  for (const auto& [flag, warning] : retired)
    LogWarning("retired_flag").With("flag", flag) << warning;
  auto options = ReadServerOptions();
  Faults faults;
  for (const Status& status : {words, options.status()}) {
    if (!status.ok()) faults.Add(status.message());
  }
  if (!faults.empty()) return Fail(std::move(faults).ToStatus(), 2);
  if (FLAGS_check_config) {
    std::puts("firn-server: the configuration is valid");
    return 0;
  }
  options->node.extensions = extensions;
  // Writing beyond a limit or to a closed connection is an error and must not end the process.
  for (const int ignored : {SIGPIPE, SIGXFSZ}) signal(ignored, SIG_IGN);
  static EndSignals& signals = *new EndSignals;
  if (Status some = AllowDescriptors(options->listen.limits); !some.ok()) {
    return Fail(some, 2);
  }
  WarnOfPlainPasswords(*options);
  for (;;) {
    auto server = ServerProgram::Open(*options, SystemClock(), SystemEntropy());
    if (!server.ok()) return Fail(server.status(), server.code() == Code::kInvalid ? 2 : 1);
    if (Status started = (*server)->Start(); !started.ok()) return Fail(started, 1);

    RequireSpareMemory();
    NotifyServiceManager("READY=1");
    LogInfo("started").With("sequencer", FLAGS_sequencer) << "sequencer " << FLAGS_sequencer;
    WarnOfCertificates(**server);

    signals.Serve();
    if (ServeUntilAsked(**server, signals)) {
      NotifyServiceManager("STOPPING=1");
      (*server)->Drain();
      return 0;
    }
    LogWarning("restarting")
        << "the registry has another cluster than the server assumed while it was "
           "unreachable: restarting";
  }
}

}  // namespace firn
