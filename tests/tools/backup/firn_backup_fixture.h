#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/tools/firn_cluster_fixture.h"

namespace firn {

// A cluster with tags, from which tests make backups, and whose data they lose.
class FirnBackupTest : public FirnClusterTest {
 protected:
  void Make() {
    FirnJson({"init", "--brand-new", "--force", "--workers=4", "--default_strategy=snowflake",
              "--ids_since=2026-01-01"});
    FirnJson({"machines", "reserve", "1", "--reserved_for=old system"});
    FirnJson({"tags", "create", "order", "step=50", "step_max=400"});
    FirnJson({"tags", "create", "gone", "strategy=snowflake", "plugins=rate"});
    FirnJson({"tags", "create", "bill", "step=50", "step_max=400", "text=n{id}"});
    FirnJson({"tags", "retire", "gone"});
    Break("/tags/order", R"({"strategy":"segment","high":5001,"step":50,"step_max":400})");
  }
  std::string Backup() {
    const std::string path = folder_ / "backup.json";
    FirnJson({"backup", path});
    return path;
  }
  std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Writes `text` to a file that no backup overwrites, and returns its path.
  std::string Keep(const std::string& text) {
    const std::string path = folder_ / "edited.json";
    std::ofstream(path) << text;
    return path;
  }
  void Wipe() { registry_ += "-wiped"; }
  std::vector<std::string> RestoreFrom(const std::string& path) {
    return {"restore", "--tag_gap=1000", "--from=" + path};
  }
  Json Cluster() { return FirnJson({"audit"}).at("cluster"); }
  std::string HighOf(const std::string& tag) {
    return FirnJson({"tags", "show", tag}).at(0).at("high").text();
  }
};

}  // namespace firn
