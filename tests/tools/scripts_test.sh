#!/usr/bin/env bash
# The scripts of tools/ explain themselves, fail with one sentence, and count as they say.
#
#   scripts_test.sh ROOT
set -euo pipefail
root=$1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source "$root/tests/tools/expect.sh"

# call SCRIPT ARGUMENT...: from another folder and by a relative name, as people do.
call() { (cd "$root/tests" && "../tools/$1" "${@:2}"); }

for script in setup build test run cluster format release release-check set-repository versions; do
  said=$(call "$script" --help)
  expect "$script --help names its script" yes "$([[ $said == *"tools/$script"* ]] && echo yes)"
  code=0
  call "$script" --nonsense >"$work/out" 2>"$work/err" || code=$?
  expect "$script refuses what it does not know" 1 "$code"
  expect "$script refuses in one line" 1 "$(wc -l <"$work/err")"
  expect "$script does nothing before it refuses" 0 "$(wc -l <"$work/out")"
done

for check in $(sed -n 's/^  for check in \(.*\); do$/\1/p' "$root/tools/release-check"); do
  expect "release-check can run tools/checks/$check.py" yes "$([[ -x $root/tools/checks/$check.py ]] && echo yes)"
done

# A repository with the files of one Go module, published under an address of its own.
published=$work/published
mkdir -p "$published/tools" "$published/client/java"
cp -r "$root/client/go" "$published/client/go"
cp "$root/client/java/pom.xml" "$published/client/java/"
cp "$root"/tools/{lib.sh,release,set-repository} "$published/tools/"
git -C "$published" init -q
git -C "$published" add -A
before=$(sed -n 's|^module \(.*\)/client/go$|\1|p' "$root/client/go/go.mod")
"$published/tools/set-repository" github.com/some-account/Firn >/dev/null
expect "the former address is nowhere" "" "$(git -C "$published" grep -lF "$before")"
expect "the module has the new address" "module github.com/some-account/Firn/client/go" \
  "$(head -n 1 "$published/client/go/go.mod")"
expect "other packages name it" yes \
  "$(grep -q '<url>https://github.com/some-account/Firn</url>' "$published/client/java/pom.xml" && echo yes)"

# refusal ARGUMENT...: prints why tools/release makes nothing there.
refusal() { { "$published/tools/release" "$@" "$work/release" 2>&1 && echo "made"; } | sed 's/^release: //; s/;.*//'; }
expect "a release contains only what is committed" "the work tree has uncommitted changes" "$(refusal --trial)"
"$published/tools/set-repository" firn.example/firn >/dev/null
git -C "$published" -c user.name=test -c user.email=test@localhost commit -q -a -m placeholder
expect "a release has the address of its repository" "the address of the repository is a placeholder" "$(refusal)"
expect "nothing of a refused release is left" no "$([[ -e $work/release ]] && echo yes || echo no)"

# shellcheck source=tools/lib.sh
source "$root/tools/lib.sh"

printf '# a comment\n\ncoreutils   is everywhere\nno-such-package-of-firn   is not\n' >"$work/packages"
expect "names are read from a list" "coreutils no-such-package-of-firn" \
  "$(package_names "$work/packages" | xargs)"
expect "only what is not installed is missing" "no-such-package-of-firn" \
  "$(package_names "$work/packages" | missing_packages)"

expect "a compiler's words are shown, every step is not" "warning: odd|  10 of 10" \
  "$(printf '[1/10] a.o\nwarning: odd\n[10/10] b\n' | thin_progress | tail -n 2 | paste -sd '|')"
coproc thinned { thin_progress; }
echo '[1/10] a.o' >&"${thinned[1]}"
read -r -t 30 line <&"${thinned[0]}" || line="nothing in 30 s"
exec {thinned[1]}>&-
expect "progress is shown while a build runs" "1 of 10" "$line"

# A project of tests with every outcome that ctest knows.
cat >"$work/CMakeLists.txt" <<'PROJECT'
cmake_minimum_required(VERSION 3.25)
project(outcomes NONE)
enable_testing()
add_test(NAME good COMMAND true)
add_test(NAME bad COMMAND false)
add_test(NAME away COMMAND /nowhere/program)
add_test(NAME skips COMMAND sh -c "exit 77")
add_test(NAME hangs COMMAND sleep 60)
add_test(NAME crashes COMMAND sh -c "kill -SEGV $$")
set_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 77)
set_tests_properties(hangs PROPERTIES TIMEOUT 1)
add_test(NAME unsafe COMMAND sh -c "echo 2 ids came twice; exit 1")
add_test(NAME counted COMMAND sh -c "echo '\"duplicates\": 0, duplicates 0, stall 5 ms'; exit 1")
add_test(NAME alarmed COMMAND sh -c "echo 'its ids from 12:00:00Z to 12:00:01Z may be duplicated'; exit 1")
add_test(NAME listed COMMAND sh -c "echo 'ok go an answer that has an id twice'; echo 'W20261126 01:02:03.456 1 a.cc:5] 2 ids came twice'; exit 1")
add_test(NAME summed COMMAND sh -c "echo '  duplicates         0'; echo 'a reboot loses it, and ids may be issued twice after it'; exit 1")
add_test(NAME named COMMAND sh -c "echo '# Subtest: gives no id twice'; echo 'not ok 2 - gives no id twice'; echo '    counts twice'; exit 1")
add_test(NAME titled COMMAND sh -c "echo '[ RUN      ] A.GetsNoDuplicateIds'; echo 'test duplicates_are_refused ... ok'; echo 'ok: duplicate found'; echo '  issued twice       0'; exit 1")
add_test(NAME numbered COMMAND sh -c "echo 'its answer contains id 1048577 twice'; exit 1")
add_test(NAME compared COMMAND sh -c "printf '  twice\\n    Which is: 3\\n'; exit 1")
add_test(NAME explains COMMAND sh -c "printf 'ok a\\nx.cc:5: Failure\\nExpected: 1\\n  Actual: 2\\nok b\\n'; exit 1")
add_test(NAME doubles COMMAND sh -c "echo ids 10, duplicates 7, stall 5 ms; exit 1")
PROJECT
cmake -S "$work" -B "$work/build" >/dev/null
ctest --test-dir "$work/build" --output-junit "$work/junit.xml" >/dev/null 2>&1 || true
expect "each outcome is counted as what it is" \
  "passed good|failed bad|failed away|skipped skips|failed hangs|failed crashes|failed unsafe|failed counted|failed alarmed|failed listed|failed summed|failed named|failed titled|failed numbered|failed compared|failed explains|failed doubles" \
  "$(junit_results "$work/junit.xml" | paste -sd '|')"
excused() { beyond_excuse "$work/junit.xml" "$1" && echo no || echo yes; }
expect "the failed lines of a test are printed" "|    x.cc:5: Failure|    Expected: 1|      Actual: 2" \
  "$(what_failed "$work/junit.xml" explains | paste -sd '|')"
expect "a failure without such lines prints nothing" "" "$(what_failed "$work/junit.xml" bad)"
cat >"$work/LastTest.log" <<'LOG'
1/2 Testing: door_test_tls
[  SKIPPED ] DoorTest.Opens (0 ms)
[       OK ] DoorTest.Closes (3 ms)
[  SKIPPED ] Codings/DoorTest.Counts/Binary (12 ms)
[  SKIPPED ] 2 tests, listed below:
[  SKIPPED ] DoorTest.Opens
[  SKIPPED ] Codings/DoorTest.Counts/Binary, where GetParam() = 4-byte object <00-00 00-80>
2/2 Testing: door_test_twice
[  SKIPPED ] DoorTest.Opens (0 ms)
LOG
expect "each case that a program skips is counted once for its test" \
  "door_test_tls Codings/DoorTest.Counts/Binary|door_test_tls DoorTest.Opens|door_test_twice DoorTest.Opens" \
  "$(skipped_cases "$work/LastTest.log" | paste -sd '|')"
expect "no log lists no case" "" "$(skipped_cases "$work/none.log")"

expect "a test that fails beside others may be run again" yes "$(excused bad)"
expect "one that saw an id twice is not run until it passes" no "$(excused unsafe)"
expect "nor one that counted some" no "$(excused doubles)"
expect "nor one that names the id" no "$(excused numbered)"
expect "nor one whose count of them is compared" no "$(excused compared)"
expect "one that counted none may be" yes "$(excused counted)"
expect "as may one whose cases are about them" yes "$(excused titled)"
expect "as may one whose summary says so" yes "$(excused summed)"
expect "as may one whose server raised an alarm" yes "$(excused alarmed)"
expect "as may one whose passed cases and server's log contain such words" yes "$(excused listed)"

expect "as may one whose failed case is named so, or that uses the word otherwise" yes "$(excused named)"

expect "a test that passes only by itself counts as passed" yes \
  "$(FIRN_STRICT='' excused_when_alone && echo yes)"
expect "but not in a strict run" no "$(FIRN_STRICT=true excused_when_alone || echo no)"

expect "a skipped test does not count as failed" yes "$(CI='' skip_allowed lost_toolchain_test && echo yes)"
expect "but one in CI, if no reason is listed" no \
  "$(CI=true skip_allowed lost_toolchain_test || echo no)"
expect "a listed reason allows it" yes "$(CI=true skip_allowed versions_test && echo yes)"

if ((faults > 0)); then
  echo "$faults expectations failed"
  exit 1
fi
