package firn

import (
	"fmt"
	"math"
)

// method is a method of firn.thrift, and how its result is read.
type method struct {
	name string
	kind byte // the Thrift type of the result
	read func(*reader, *answer)
}

var (
	methodID      = &method{"getId", typeI64, func(r *reader, a *answer) { a.ids = []int64{r.i64()} }}
	methodIDs     = &method{"getIds", typeList, func(r *reader, a *answer) { a.ids = r.ids() }}
	methodRuns    = &method{"getRuns", typeList, func(r *reader, a *answer) { a.runs = r.runs() }}
	methodText    = &method{"getText", typeString, func(r *reader, a *answer) { a.text = r.text() }}
	methodStatus  = &method{"status", typeStruct, func(r *reader, a *answer) { a.status = r.status() }}
	methodServers = &method{"servers", typeStruct, func(r *reader, a *answer) { a.list = r.list() }}
)

// ask is a method with its arguments.
type ask struct {
	method *method
	tag    string
	count  int64    // of servers: the version of the known list
	lease  leaseAsk // of the methods about leases
}

// answer holds the result of a method.
type answer struct {
	ids    []int64 // of runs: the first and the last of each
	runs   []idRun
	text   string
	status *serverStatus
	list   *serverList
	terms  *leaseTerms
	late   bool // to an earlier attempt of the call
}

func askID(tag string) *ask { return &ask{method: methodID, tag: tag, count: 1} }
func askIDs(tag string, count int) *ask {
	return &ask{method: methodIDs, tag: tag, count: int64(count)}
}
func askRuns(tag string, count int) *ask {
	return &ask{method: methodRuns, tag: tag, count: int64(count)}
}
func askText(tag string) *ask     { return &ask{method: methodText, tag: tag, count: 1} }
func askStatus() *ask             { return &ask{method: methodStatus} }
func askServers(known int64) *ask { return &ask{method: methodServers, count: known} }

// faultOf returns a sentence if this cannot be an answer to the request.
func (a *ask) faultOf(got *answer) (fault string) {
	switch a.method {
	case methodLease, methodRenewLease:
		return got.terms.faultOfTexts()
	case methodIDs:
		return faultOfIDs(got.ids, int(a.count))
	case methodRuns:
		got.ids, fault = readRuns(got.runs, a.count)
	case methodText:
		if got.text == "" {
			return "its text is empty"
		}
		if printable(got.text) != got.text {
			return "its text has a control character"
		}
	}
	return fault
}

func faultOfIDs(ids []int64, count int) string {
	if len(ids) != count {
		return fmt.Sprintf("it gave %d ids, not %d", len(ids), count)
	}
	for i := 1; i < len(ids); i++ {
		if ids[i] <= ids[i-1] { // only ids of an obfuscated tag do not ascend
			return faultOfUnordered(ids)
		}
	}
	return ""
}

func faultOfUnordered(ids []int64) string {
	seen := make(map[int64]struct{}, len(ids))
	for _, id := range ids {
		seen[id] = struct{}{}
	}
	if len(seen) < len(ids) {
		return "its answer contains an id twice"
	}
	return ""
}

// readRuns returns the first and last id of each run, and a sentence if they are not `count` ids in
// ascending order.
func readRuns(runs []idRun, count int64) (ends []int64, fault string) {
	got, last := int64(0), int64(math.MinInt64)
	for _, run := range runs {
		if run.count < 1 || run.stride < 1 || (len(ends) > 0 && run.first <= last) {
			return ends, "a run is empty, or does not ascend"
		}
		steps := int64(run.count) - 1
		if room := uint64(math.MaxInt64) - uint64(run.first); steps > 0 && uint64(run.stride) > room/uint64(steps) {
			return ends, "a run exceeds the largest 64-bit id"
		}
		last = run.first + steps*run.stride
		got += int64(run.count)
		ends = append(ends, run.first, last)
	}
	if got != count {
		fault = fmt.Sprintf("its runs hold %d ids, not %d", got, count)
	}
	return ends, fault
}
