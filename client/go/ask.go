package firn

import (
	"fmt"
	"math"

	"github.com/apache/thrift/lib/go/thrift"

	wire "firn.io/go/firn/internal/wire"
)

// result is the generated type of a method's result.
type result interface {
	thrift.TStruct
	IsSetSuccess() bool
	GetRefusal() *wire.Refusal
}

// ask is a method of the wire contract with its arguments, and the parser of its answer.
type ask struct {
	method    string
	tag       string
	arguments thrift.TStruct
	result    func() result
	answer    func(result) *answer // converts a successful result
}

// answer holds the result of a method; ids for the methods that return them.
type answer struct {
	ids    []int64
	runs   []*wire.IdRun
	text   string
	status *wire.ServerStatus
	list   *wire.ServerList
	fault  string // a sentence if it cannot be an answer to the request
}

// asking creates an ask from the generated types.
func asking[R result](method, tag string, arguments thrift.TStruct, made func() R,
	read func(R) *answer) *ask {
	return &ask{method, tag, arguments, func() result { return made() },
		func(got result) *answer { return read(got.(R)) }}
}

func askID(tag string) *ask {
	return asking("getId", tag, &wire.IdServiceGetIdArgs{Tag: tag}, wire.NewIdServiceGetIdResult,
		func(got *wire.IdServiceGetIdResult) *answer { return &answer{ids: []int64{*got.Success}} })
}

func askIDs(tag string, count int) *ask {
	return asking("getIds", tag, &wire.IdServiceGetIdsArgs{Tag: tag, Count: int32(count)},
		wire.NewIdServiceGetIdsResult, func(got *wire.IdServiceGetIdsResult) *answer {
			return &answer{ids: got.Success, fault: faultOfIDs(got.Success, count)}
		})
}

func askRuns(tag string, count int) *ask {
	return asking("getRuns", tag, &wire.IdServiceGetRunsArgs{Tag: tag, Count: int64(count)},
		wire.NewIdServiceGetRunsResult, func(got *wire.IdServiceGetRunsResult) *answer {
			ends, fault := readRuns(got.Success, count)
			return &answer{ids: ends, runs: got.Success, fault: fault}
		})
}

func askText(tag string) *ask {
	return asking("getText", tag, &wire.IdServiceGetTextArgs{Tag: tag}, wire.NewIdServiceGetTextResult,
		func(got *wire.IdServiceGetTextResult) *answer {
			if *got.Success == "" {
				return &answer{fault: "its text is empty"}
			}
			if printable(*got.Success) != *got.Success {
				return &answer{fault: "its text has a control character"}
			}
			return &answer{text: *got.Success}
		})
}

func askStatus() *ask {
	return asking("status", "", &wire.IdServiceStatusArgs{}, wire.NewIdServiceStatusResult,
		func(got *wire.IdServiceStatusResult) *answer { return &answer{status: got.Success} })
}

func askServers(known int64) *ask {
	return asking("servers", "", &wire.IdServiceServersArgs{KnownVersion: known},
		wire.NewIdServiceServersResult,
		func(got *wire.IdServiceServersResult) *answer { return &answer{list: got.Success} })
}

func faultOfIDs(ids []int64, count int) string {
	if len(ids) != count {
		return fmt.Sprintf("it gave %d ids, not %d", len(ids), count)
	}
	seen := make(map[int64]bool, count)
	for _, id := range ids {
		if seen[id] {
			return "its answer contains an id twice"
		}
		seen[id] = true
	}
	return ""
}

// readRuns returns the first and last id of each run, and a sentence if they are not `count` ids in
// ascending order.
func readRuns(runs []*wire.IdRun, count int) (ends []int64, fault string) {
	got, last := int64(0), int64(math.MinInt64)
	for _, run := range runs {
		if run.Count < 1 || run.Stride < 1 || (len(ends) > 0 && run.First <= last) {
			return ends, "a run is empty, or does not ascend"
		}
		steps := int64(run.Count) - 1
		if run.First > 0 && steps > 0 && run.Stride > (math.MaxInt64-run.First)/steps {
			return ends, "a run exceeds the largest 64-bit id"
		}
		last = run.First + steps*run.Stride
		got += int64(run.Count)
		ends = append(ends, run.First, last)
	}
	if got != int64(count) {
		fault = fmt.Sprintf("its runs hold %d ids, not %d", got, count)
	}
	return ends, fault
}
