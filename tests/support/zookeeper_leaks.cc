// Debian's ZooKeeper client library does not free what belongs to the multis that are unanswered
// when a handle is closed. Compiled into every test that links firn_test_support_zk.
extern "C" const char* __lsan_default_suppressions();  // NOLINT: the sanitizer's name

extern "C" const char* __lsan_default_suppressions() { return "leak:libzookeeper_mt\n"; }
