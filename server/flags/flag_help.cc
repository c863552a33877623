#include "server/flags/flag_help.h"

#include <algorithm>
#include <string_view>

#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/base/status.h"

namespace firn {
namespace {

constexpr size_t kColumn = 28;
constexpr size_t kWidth = 96;

constexpr std::string_view kHead =
    "firn-server: issues 64-bit ids that are never issued twice.\n\n"
    "  firn-server                                     alone on this host, at 127.0.0.1:7609\n"
    "  firn-server --registry=zk://h1:2181,h2:2181,h3:2181/firn/shop \\\n"
    "    --listen=0.0.0.0:7609 --advertise=10.0.0.7:7609     one of a cluster's servers\n";

// Words put into lines behind the flag's name.
void AppendFolded(std::string_view text, std::string& page) {
  size_t column = kColumn;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (column > kColumn && column + end + 1 > kWidth) {
      page += "\n" + std::string(kColumn, ' ');
      column = kColumn;
    }
    if (column > kColumn) {
      page += ' ';
      ++column;
    }
    page += text.substr(0, end);
    column += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  page += '\n';
}

void AppendFlag(const std::string& name, std::string& page) {
  gflags::CommandLineFlagInfo flag;
  if (!gflags::GetCommandLineFlagInfo(name.c_str(), &flag)) Die("there is no such flag to explain");
  std::string words = Cat("  --", name, flag.type == "bool" ? "" : "=...");
  words.append(words.size() + 2 > kColumn ? 2 : kColumn - words.size(), ' ');
  if (words.size() > kColumn) words += "\n" + std::string(kColumn, ' ');
  page += words;
  const bool says = !flag.default_value.empty() && flag.default_value != "false";
  AppendFolded(Cat(flag.description, says ? Cat(" (", flag.default_value, ")") : ""), page);
}

}  // namespace

const std::vector<FlagGroup>& FlagGroups() {
  static const auto& groups = *new std::vector<FlagGroup>{
      {"Where it is, and of which cluster",
       {"registry", "listen", "advertise", "admin_listen", "state_dir", "embedded",
        "registry_auth_file", "application"}},
      {"Tags", {"stores_file", "key_dir", "default_tag", "tinyid_token_file", "issue_wait_ms"}},
      {"When the cluster is made", {"layout", "default_strategy"}},
      {"Who gets in, and how",
       {"tls_cert", "tls_key", "tls_client_ca", "tls_names_file", "admin_tls_cert", "admin_tls_key",
        "admin_tls_client_ca", "admin_hosts"}},
      {"Machine id and clock",
       {"worker", "rack", "machine_ids", "sequencer", "sequence_start", "clock_policy",
        "clock_jump_max_ms", "clock_alarm_ms", "zk_skew_max_ms", "session_timeout_ms",
        "claim_window_ms", "probation_ms", "restore_probation_ms", "offline_start", "grant_dir"}},
      {"A machine id without a registry (--registry=static:13)",
       {"static_first_start", "static_clock_ok", "static_adopt"}},
      {"What is written down", {"history_file", "history_file_bytes_max", "history_files_max"}},
      {"The clean stop", {"drain_notice_ms", "drain_refuse_ms", "drain_patience_ms"}},
      {"Limits",
       {"io_threads", "connections_max", "connections_per_peer_max", "list_ids_max", "runs_ids_max",
        "frame_bytes_max", "string_bytes_max", "container_items_max", "http_header_bytes_max",
        "http_body_bytes_max", "requests_per_turn_max", "turn_us_max", "output_waiting_bytes_max",
        "output_total_bytes_max", "spare_descriptors", "idle_ms", "half_request_ms"}},
      {"Flags from elsewhere, and about this program",
       {"flagfile", "fromenv", "tryfromenv", "version", "help", "helpfull"}},
  };
  return groups;
}

std::string FlagHelp() {
  std::string page(kHead);
  for (const FlagGroup& group : FlagGroups()) {
    page += Cat("\n", group.title, ":\n");
    for (const std::string& flag : group.flags) AppendFlag(flag, page);
  }
  return page;
}

bool AsksForHelp(int argc, const char* const* argv) {
  return std::any_of(argv + 1, argv + argc, [](std::string_view word) {
    return word == "--help" || word == "-help" || word == "--help=true" || word == "-h";
  });
}

}  // namespace firn
