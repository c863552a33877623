#pragma once

#include <filesystem>
#include <string>

namespace firn {

// A folder whose contents are lost at the end of the boot, on every Linux.
inline constexpr char kMemoryDir[] = "/dev/shm";
// A folder whose contents survive the boot; a TempDir elsewhere may be either.
inline constexpr char kDiskDir[] = "/var/tmp";

// A test's own directory, deleted with all its contents.
class TempDir {
 public:
  explicit TempDir(const std::filesystem::path& below = std::filesystem::temp_directory_path());
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ / name; }

  // Keeps the directory for debugging, and prints its path.
  void Keep();

 private:
  std::filesystem::path path_;
  bool keep_ = false;
};

}  // namespace firn
