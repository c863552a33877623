package firn

import (
	"fmt"
	"math"

	"github.com/apache/thrift/lib/go/thrift"

	wire "firn.io/go/firn/internal/wire"
)

// ask is a method of the contract with its arguments, and reads its answer.
type ask struct {
	method    string
	tag       string
	arguments thrift.TStruct
	result    func() (thrift.TStruct, func() (*answer, *wire.Refusal))
}

// answer holds what the method gives; ids for the methods that give them.
type answer struct {
	ids    []int64
	runs   []*wire.IdRun
	text   string
	status *wire.ServerStatus
	list   *wire.ServerList
	fault  string // a sentence when it cannot be an answer to what was asked
}

func askID(tag string) *ask {
	return &ask{"getId", tag, &wire.IdServiceGetIdArgs{Tag: tag},
		func() (thrift.TStruct, func() (*answer, *wire.Refusal)) {
			result := wire.NewIdServiceGetIdResult()
			return result, func() (*answer, *wire.Refusal) {
				if result.Success == nil {
					return nil, result.Refusal
				}
				return &answer{ids: []int64{*result.Success}}, result.Refusal
			}
		}}
}

func askIDs(tag string, count int) *ask {
	return &ask{"getIds", tag, &wire.IdServiceGetIdsArgs{Tag: tag, Count: int32(count)},
		func() (thrift.TStruct, func() (*answer, *wire.Refusal)) {
			result := wire.NewIdServiceGetIdsResult()
			return result, func() (*answer, *wire.Refusal) {
				if result.Success == nil {
					return nil, result.Refusal
				}
				return &answer{ids: result.Success, fault: faultOfIDs(result.Success, count)},
					result.Refusal
			}
		}}
}

func askRuns(tag string, count int) *ask {
	return &ask{"getRuns", tag, &wire.IdServiceGetRunsArgs{Tag: tag, Count: int64(count)},
		func() (thrift.TStruct, func() (*answer, *wire.Refusal)) {
			result := wire.NewIdServiceGetRunsResult()
			return result, func() (*answer, *wire.Refusal) {
				if result.Success == nil {
					return nil, result.Refusal
				}
				ends, fault := readRuns(result.Success, count)
				return &answer{ids: ends, runs: result.Success, fault: fault}, result.Refusal
			}
		}}
}

func askText(tag string) *ask {
	return &ask{"getText", tag, &wire.IdServiceGetTextArgs{Tag: tag},
		func() (thrift.TStruct, func() (*answer, *wire.Refusal)) {
			result := wire.NewIdServiceGetTextResult()
			return result, func() (*answer, *wire.Refusal) {
				if result.Success == nil {
					return nil, result.Refusal
				}
				got := &answer{text: *result.Success}
				if got.text == "" {
					got.fault = "its text is empty"
				}
				return got, result.Refusal
			}
		}}
}

func askStatus() *ask {
	return &ask{"status", "", &wire.IdServiceStatusArgs{},
		func() (thrift.TStruct, func() (*answer, *wire.Refusal)) {
			result := wire.NewIdServiceStatusResult()
			return result, func() (*answer, *wire.Refusal) {
				if result.Success == nil {
					return nil, result.Refusal
				}
				return &answer{status: result.Success}, result.Refusal
			}
		}}
}

func askServers(known int64) *ask {
	return &ask{"servers", "", &wire.IdServiceServersArgs{KnownVersion: known},
		func() (thrift.TStruct, func() (*answer, *wire.Refusal)) {
			result := wire.NewIdServiceServersResult()
			return result, func() (*answer, *wire.Refusal) {
				if result.Success == nil {
					return nil, result.Refusal
				}
				return &answer{list: result.Success}, result.Refusal
			}
		}}
}

func faultOfIDs(ids []int64, count int) string {
	if len(ids) != count {
		return fmt.Sprintf("it gave %d ids, not %d", len(ids), count)
	}
	seen := make(map[int64]bool, count)
	for _, id := range ids {
		if seen[id] {
			return "one answer has an id twice"
		}
		seen[id] = true
	}
	return ""
}

// readRuns is the first and last id of each run, and a sentence when they are not `count` ids in
// ascending order.
func readRuns(runs []*wire.IdRun, count int) (ends []int64, fault string) {
	got, last := int64(0), int64(math.MinInt64)
	for _, run := range runs {
		if run.Count < 1 || run.Stride < 1 || (len(ends) > 0 && run.First <= last) {
			return ends, "a run is empty, or does not ascend"
		}
		steps := int64(run.Count) - 1
		if run.First > 0 && steps > 0 && run.Stride > (math.MaxInt64-run.First)/steps {
			return ends, "a run goes beyond what an id can be"
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
