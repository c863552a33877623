#include "tests/support/tls_authority.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include "common/base/status.h"
#include "tests/support/process.h"

namespace firn {
namespace {

// The loader replaces $LIB by the folder of this architecture.
constexpr const char* kFakeTime = "/usr/$LIB/faketime/libfaketimeMT.so.1";
constexpr int kDaySeconds = 86'400;

bool HasFakeTime() {
  for (const auto& folder : std::filesystem::directory_iterator("/usr/lib")) {
    if (std::filesystem::exists(folder.path() / "faketime/libfaketimeMT.so.1")) return true;
  }
  return false;
}

void Run(const std::vector<std::string>& command) {
  const Finished finished = RunToEnd(command);
  if (finished.exit_code != 0) Die("openssl: " + finished.err);
}

}  // namespace

TlsAuthority::TlsAuthority(std::string name) : name_(std::move(name)) {
  Run({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
       "-nodes", "-days", "2", "-subj", "/CN=" + name_, "-keyout", File("ca.key"), "-out",
       File("ca.crt")});
}

void TlsAuthority::Sign(const std::string& who, const std::string& names) {
  Request(who);
  Grant(who, names, {});
}

bool TlsAuthority::SignForSeconds(const std::string& who, int seconds, const std::string& names) {
  if (!HasFakeTime()) return false;
  Request(who);
  // Valid for a day, created almost a day ago.
  Grant(who, names,
        {"env", std::string("LD_PRELOAD=") + kFakeTime,
         "FAKETIME=-" + std::to_string(kDaySeconds - seconds) + "s"});
  return true;
}

void TlsAuthority::Request(const std::string& who) {
  Run({"openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
       "-subj", "/CN=" + who, "-keyout", File(who + ".key"), "-out", File(who + ".csr")});
}

void TlsAuthority::Grant(const std::string& who, const std::string& names,
                         const std::vector<std::string>& wrapper) {
  std::vector<std::string> command = wrapper;
  for (const std::string& word :
       {std::string("openssl"), std::string("x509"), std::string("-req"), std::string("-in"),
        File(who + ".csr"), std::string("-CA"), File("ca.crt"), std::string("-CAkey"),
        File("ca.key"), std::string("-CAcreateserial"), std::string("-days"), std::string("1"),
        std::string("-out"), File(who + ".crt")}) {
    command.push_back(word);
  }
  if (!names.empty()) {
    std::ofstream(File(who + ".ext")) << "subjectAltName=" << names << "\n";
    command.insert(command.end(), {"-extfile", File(who + ".ext")});
  }
  Run(command);
}

}  // namespace firn
