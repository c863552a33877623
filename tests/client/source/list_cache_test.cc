#include "client/source/list_cache.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_dir.h"

namespace firn {
namespace {

namespace fs = std::filesystem;

class ListCacheTest : public testing::Test {
 protected:
  static ServerList ListOf(const std::string& address) {
    return {.servers = {{.address = address}},
            .cluster = {.uuid = "u", .name = {}, .layout = {}},
            .from_cache = true};
  }
  std::string Bytes() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  void Put(std::string_view bytes) const { std::ofstream(path_) << bytes; }

  TempDir folder_;
  const std::string path_ = folder_ / "servers";
  const ListCache cache_{path_, "zk://zk/firn/shop"};
};

TEST_F(ListCacheTest, ReturnsTheLastListMarkedAsCached) {
  EXPECT_EQ(cache_.Read().code(), Code::kNotFound);
  ServerList list = ListOf("10.0.0.7:7609");
  ASSERT_TRUE(cache_.Write(list).ok());
  list = ListOf("10.0.0.8:7609");
  list.from_cache = false;
  ASSERT_TRUE(cache_.Write(list).ok());
  EXPECT_EQ(cache_.Read().value(), ListOf("10.0.0.8:7609"));
}

TEST_F(ListCacheTest, WritesForItsOwnerOnlyAndRefusesFilesThatOthersCanWrite) {
  ASSERT_TRUE(cache_.Write(ListOf("10.0.0.7:7609")).ok());
  struct stat seen {};
  ASSERT_EQ(stat(path_.c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 0777, 0600u);
  chmod(path_.c_str(), 0620);
  EXPECT_EQ(cache_.Read().code(), Code::kDenied);
}

TEST_F(ListCacheTest, RefusesLinksAndFolders) {
  ASSERT_TRUE(cache_.Write(ListOf("10.0.0.7:7609")).ok());
  fs::rename(path_, path_ + ".moved");
  fs::create_symlink(path_ + ".moved", path_);
  EXPECT_EQ(cache_.Read().code(), Code::kDenied);
  fs::remove(path_);
  fs::create_directory(path_);
  EXPECT_EQ(cache_.Read().code(), Code::kDenied);
}

TEST_F(ListCacheTest, RefusesAFileTornAtAnyByte) {
  ASSERT_TRUE(cache_.Write(ListOf("10.0.0.7:7609")).ok());
  const std::string whole = Bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    Put(whole.substr(0, size));
    const auto torn = cache_.Read();
    EXPECT_EQ(torn.code(), Code::kCorrupt) << size;
    EXPECT_NE(torn.status().message().find(path_), std::string::npos) << torn.status();
  }
}

TEST_F(ListCacheTest, RefusesAListOfAnotherRegistry) {
  ASSERT_TRUE(ListCache(path_, "zk://other/firn/shop").Write(ListOf("10.0.0.7:7609")).ok());
  EXPECT_EQ(cache_.Read().code(), Code::kConflict);
}

TEST_F(ListCacheTest, AFailedWriteLeavesTheFileUnchanged) {
  ASSERT_TRUE(cache_.Write(ListOf("10.0.0.7:7609")).ok());
  const std::string before = Bytes();
  fs::create_directory(cache_.draft());  // makes writing the draft fail
  EXPECT_FALSE(cache_.Write(ListOf("10.0.0.8:7609")).ok());
  EXPECT_EQ(Bytes(), before);
  EXPECT_EQ(ListCache(folder_ / "nowhere/servers", "r").Write({}).code(), Code::kNotFound);
}

TEST_F(ListCacheTest, IgnoresADraftOfADeadProcess) {
  std::ofstream(cache_.draft()) << "half a";
  ASSERT_TRUE(cache_.Write(ListOf("10.0.0.7:7609")).ok());
  EXPECT_TRUE(cache_.Read().ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1);
}

TEST_F(ListCacheTest, CachesThatShareAFileDoNotTearIt) {
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 4; ++i) {
      clients.emplace_back([this, i] {
        const ListCache cache(path_, "zk://zk/firn/shop");
        ServerList list;
        for (int n = 0; n < 20 * (i + 1); ++n) {
          list.servers.push_back({.address = "10.0.0.7:" + std::to_string(1000 + n)});
        }
        for (int n = 0; n < 15; ++n) {
          const Status written = cache.Write(list);
          EXPECT_TRUE(written.ok()) << written;
          const Result<ServerList> read = cache.Read();
          EXPECT_TRUE(read.ok()) << read.status();
        }
      });
    }
  }
}

}  // namespace
}  // namespace firn
