// Parses arbitrary bytes as untrusted input of a registry: names and reports of servers, an
// operator's setting of a server, and the texts of a registry's address and credentials. Refused
// with a printable reason, or within the limits and equal when written again.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/utf8.h"
#include "registry/open/open_coordinator.h"
#include "registry/seam/requests.h"
#include "registry/servers/provider.h"

namespace {

void Check(bool holds, std::string_view what) {
  if (!holds) firn::Die(what);
}

template <typename Value>
bool ReadsWell(const firn::Result<Value>& result) {
  if (!result.ok()) {
    Check(firn::IsPrintableUtf8(result.status().message()), "the reason is not printable");
  }
  return result.ok();
}

bool IsClean(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) return false;
  }
  return true;
}

void TryProvider(std::string_view text) {
  const auto provider = firn::ParseProviderNodeName(text);
  if (!ReadsWell(provider)) return;
  Check(provider->rack < 1024 && provider->pid >= 0 && provider->since.ms() >= 0, "out of range");
  Check(!provider->address.empty() && IsClean(provider->address), "an invalid address");
  const std::string name = firn::ProviderNodeName(*provider);
  Check(name.find('/') == std::string::npos && firn::CheckPath("/" + name.substr(0, 1000)).ok(),
        "no name of a node");
  const auto again = firn::ParseProviderNodeName(name);
  // The escaped text may exceed the limit.
  if (again.ok() || name.size() <= 4096) Check(*again == *provider, "another provider");
}

// Writing omits tags; a reader must not assume lower ledgers for them.
void TryReport(std::string_view text) {
  const auto report = firn::ParseReport(text);
  if (!ReadsWell(report)) return;
  Check(report->bound.ms() >= 0 && report->high_others >= 0, "out of range");
  Check(!report->machine || report->machine->value() < 1024, "no machine id");
  Check(report->clock_skew_ms >= -INT64_MAX, "a skew without an absolute value");
  const std::string written = firn::FormatReport(*report);
  Check(written.size() <= firn::kReportBytesMax, "too long to be read");
  const auto again = firn::ParseReport(written);
  Check(again->phase == report->phase && again->machine == report->machine, "another server");
  Check(again->Held() == report->Held(), "other machine ids");
  Check(again->bound == report->bound && again->clock_skew_ms == report->clock_skew_ms,
        "another time");
  for (const auto& [tag, high] : report->high) Check(again->HighOf(tag) >= high, "a tag fell");
  Check(again->high_others >= report->high_others, "the others fell");
  Check(firn::FormatReport(*again) == written, "written otherwise the second time");
}

void TryConfigurator(std::string_view text) {
  const auto configurator = firn::ParseConfigurator(text);
  if (!ReadsWell(configurator)) return;
  Check(configurator->weight >= 0 && configurator->weight <= firn::Configurator::kWeightMax,
        "a weight out of range");
  Check(*firn::ParseConfigurator(firn::FormatConfigurator(*configurator)) == *configurator,
        "another configurator");
}

void TryPlaces(std::string_view text) {
  if (const auto zk = firn::ParseZkPlace(text); ReadsWell(zk)) {
    Check(firn::CheckPath(zk->root).ok() && zk->root.size() > 1, "no root for a cluster");
    Check(!zk->hosts.empty() && IsClean(zk->hosts), "hosts that are none");
    const auto again = firn::ParseZkPlace(zk->hosts + zk->root);
    Check(again->hosts == zk->hosts && again->root == zk->root, "another ZooKeeper");
  }
  if (const auto dir = firn::ParseDirPlace(text); ReadsWell(dir)) {
    Check(dir->path.size() > 1 && dir->path.front() == '/' && IsClean(dir->path), "no directory");
    const auto again = firn::ParseDirPlace(dir->path + (dir->adopt ? "?adopt" : ""));
    Check(again->path == dir->path && again->adopt == dir->adopt, "another directory");
  }
  const auto credentials = firn::ParseCredentials(text);
  if (ReadsWell(credentials)) {
    Check(text.substr(0, credentials->size()) == *credentials, "other credentials");
    Check(IsClean(*credentials), "credentials of more than a line");
    Check(*firn::ParseCredentials(*credentials + "\n") == *credentials, "other credentials");
  } else {
    static const std::string refusal = firn::ParseCredentials("").status().message();
    Check(credentials.status().message() == refusal, "the reason shows what the file holds");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  TryProvider(text);
  TryReport(text);
  TryConfigurator(text);
  TryPlaces(text);
  return 0;
}
