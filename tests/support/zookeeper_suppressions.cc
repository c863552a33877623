// What Debian's ZooKeeper client library does wrong, told to the sanitizers: it does not free what
// belongs to the multis that are unanswered when a handle is closed, and all its handles' threads
// write the text of an address into one buffer. Compiled into every test that links
// firn_test_support_zk.
extern "C" {

const char* __lsan_default_suppressions();  // NOLINT: the sanitizer's name
const char* __tsan_default_suppressions();  // NOLINT: the sanitizer's name

const char* __lsan_default_suppressions() { return "leak:libzookeeper_mt\n"; }
const char* __tsan_default_suppressions() { return "race:libzookeeper_mt\n"; }
}
