// Faults of libraries, real or apparent, that the sanitizers must ignore. Debian's ZooKeeper client
// does not free the multis that are unanswered when a handle is closed, and the threads of all its
// handles write the text of an address into one buffer. glog reads the time zone with each line;
// the thread sanitizer does not see the lock that guards it inside libc.
extern "C" {

const char* __lsan_default_suppressions();  // NOLINT: the sanitizer's name
const char* __tsan_default_suppressions();  // NOLINT: the sanitizer's name

const char* __lsan_default_suppressions() { return "leak:libzookeeper_mt\n"; }
const char* __tsan_default_suppressions() { return "race:libzookeeper_mt\nrace:CalcGmtOffset\n"; }
}
