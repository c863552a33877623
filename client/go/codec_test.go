package firn

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"testing"
)

// frame is one of tests/contract/frames.json, which all hand-written codecs share.
type frame struct {
	Case, Method, Frame string
	Sequence            int32
	Arguments           struct {
		Tag          string
		Count        int64
		KnownVersion string `json:"known_version"`

		Token, Name, Lease, Turn, Acknowledged string
		ClockMs                                int64  `json:"clock_ms,string"`
		AheadMs                                *int32 `json:"ahead_ms"`
		Rack                                   *int32
		UsedTick                               *int64 `json:"used_tick,string"`
	}
	Answer       json.RawMessage
	Refusal      json.RawMessage
	LeaseRefusal json.RawMessage `json:"lease_refusal"`
	LacksMethod  bool            `json:"lacks_method"`
	Broken       bool
	Incomplete   bool
}

func (f *frame) ask() *ask {
	count := f.Arguments.Count
	if f.Arguments.KnownVersion != "" {
		count, _ = strconv.ParseInt(f.Arguments.KnownVersion, 10, 64)
	}
	said := f.Arguments
	lease := leaseAsk{token: said.Token, name: said.Name, lease: said.Lease, turn: said.Turn,
		acknowledged: said.Acknowledged, clockMs: said.ClockMs, aheadMs: said.AheadMs, rack: said.Rack,
		usedTick: said.UsedTick}
	for _, one := range []*method{methodID, methodIDs, methodRuns, methodText, methodStatus, methodServers, methodLease,
		methodRenewLease, methodReleaseLease} {
		if one.name == f.Method {
			return &ask{one, f.Arguments.Tag, count, lease}
		}
	}
	panic(f.Method)
}

func (f *frame) bytes(t *testing.T) []byte {
	bytes, err := hex.DecodeString(f.Frame)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// readTable reads a file beside the one that FIRN_FRAMES names. A published module does not contain it.
func readTable(t *testing.T, name string, into any) {
	path := os.Getenv("FIRN_FRAMES")
	if path == "" {
		path = "../../tests/contract/frames.json"
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(path), name))
	if errors.Is(err, os.ErrNotExist) && os.Getenv("FIRN_FRAMES") == "" {
		t.Skip(err)
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func frames(t *testing.T) (requests, answers []frame) {
	var read struct {
		Requests, Answers []frame
		LeaseRequests     []frame `json:"lease_requests"`
		LeaseAnswers      []frame `json:"lease_answers"`
	}
	readTable(t, "frames.json", &read)
	if len(read.LeaseRequests) == 0 || len(read.LeaseAnswers) == 0 {
		t.Fatal("the file has no frames of leases")
	}
	return append(read.Requests, read.LeaseRequests...), append(read.Answers, read.LeaseAnswers...)
}

// told returns a result as frames.json has it.
func told(f *frame, got *answer) any {
	text := func(number int64) string { return strconv.FormatInt(number, 10) }
	switch f.Method {
	case "getIds":
		ids := []any{}
		for _, id := range got.ids {
			ids = append(ids, text(id))
		}
		return ids
	case "getRuns":
		runs := []any{}
		for _, run := range got.runs {
			runs = append(runs, []any{text(run.first), run.count, text(run.stride)})
		}
		return runs
	case "getText":
		return got.text
	case "status":
		tags := []any{}
		for _, one := range got.status.tags {
			tags = append(tags, map[string]any{"tag": one.tag, "strategy": one.strategy, "as_issued": one.asIssued})
		}
		return map[string]any{"cluster_uuid": got.status.clusterUUID, "layout": got.status.layout,
			"state": got.status.state, "wall_ms": text(got.status.wallMs), "tags": tags}
	case "servers":
		servers := []any{}
		for _, one := range got.list.servers {
			servers = append(servers, map[string]any{"address": one.address, "rack": one.rack, "weight": one.weight,
				"online": one.online, "state": one.state, "tls": one.tls})
		}
		return map[string]any{"version": text(got.list.version), "ask_again_ms": got.list.askAgainMs,
			"servers": servers}
	case "releaseLease":
		return map[string]any{}
	case "lease", "renewLease":
		terms := got.terms
		return map[string]any{"lease": terms.lease, "number": text(terms.number), "machine": terms.machine,
			"worker": terms.worker, "rack": terms.rack, "base_bits": text(terms.baseBits), "tick_shift": terms.tickShift,
			"sequence_shift": terms.sequenceShift, "sequence_bits": terms.sequenceBits,
			"sequence_from": text(terms.sequenceFrom), "sequence_count": text(terms.sequenceCount),
			"tick_ms": terms.tickMs, "epoch_ms": text(terms.epochMs), "from_tick": text(terms.fromTick),
			"until_tick": text(terms.untilTick), "renew_in_ms": terms.renewInMs, "ending": terms.ending,
			"server": terms.server}
	}
	return text(got.ids[0])
}

// outcome returns what a connection makes of the bytes.
func outcome(f *frame, received []byte) (got any, problem *failure) {
	size, problem := frameSize(received)
	if problem != nil {
		return nil, problem
	}
	a := f.ask()
	found, problem := a.readAnswer(received[4:4+size], f.Sequence)
	if problem != nil {
		return nil, problem
	}
	if fault := (&idCheck{}).faultOf(a.tag, found.ids); fault != "" {
		return nil, failed(Broken, fault)
	}
	return told(f, found), nil
}

func sameJSON(t *testing.T, want json.RawMessage, got any) {
	t.Helper()
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var one, two any
	if json.Unmarshal(want, &one) != nil || json.Unmarshal(text, &two) != nil || !reflect.DeepEqual(one, two) {
		t.Errorf("got %s, want %s", text, want)
	}
}

func TestWritesTheRequests(t *testing.T) {
	requests, _ := frames(t)
	for _, one := range requests {
		if got := hex.EncodeToString(one.ask().appendRequest(nil, one.Sequence)); got != one.Frame {
			t.Errorf("%s: %s, not %s", one.Case, got, one.Frame)
		}
	}
}

func TestReadsTheAnswers(t *testing.T) {
	_, answers := frames(t)
	for _, one := range answers {
		if one.Incomplete {
			continue // TestReadsNoMoreThanHasArrived
		}
		t.Run(one.Case, func(t *testing.T) {
			got, problem := outcome(&one, one.bytes(t))
			switch {
			case one.Answer != nil && problem == nil:
				sameJSON(t, one.Answer, got)
			case one.Answer != nil || problem == nil:
				t.Errorf("got %v, %+v", got, problem)
			case one.Broken && problem.end != Broken, one.LacksMethod != problem.lacksMethod,
				(one.Refusal != nil || one.LeaseRefusal != nil) != (problem.end == WasRefused),
				(one.LeaseRefusal != nil) != (problem.leaseFault != 0):
				t.Errorf("the failure is %+v", problem)
			case one.LeaseRefusal != nil:
				sameJSON(t, one.LeaseRefusal, map[string]any{"fault": max(problem.leaseFault, 0), "message": problem.detail,
					"server": problem.leaseServer})
			case one.Refusal != nil:
				sameJSON(t, one.Refusal, map[string]any{"reason": problem.reason, "message": problem.detail,
					"retry_after_ms": problem.retryAfter.Milliseconds(), "another_server_may_help": problem.anotherMayHelp})
			}
		})
	}
}

func TestReadsNoFurtherThanTheEndOfAFrame(t *testing.T) {
	_, answers := frames(t)
	for _, one := range answers {
		bytes, a := one.bytes(t), one.ask()
		for end := 4; end < len(bytes); end++ {
			if got, problem := a.readAnswer(bytes[4:end:end], one.Sequence); problem == nil {
				t.Errorf("%s, cut at %d: %v", one.Case, end, got)
			}
		}
	}
}

func TestSurvivesEveryChangedByte(t *testing.T) {
	_, answers := frames(t)
	for _, one := range answers {
		bytes, a := one.bytes(t), one.ask()
		for at := 4; at < len(bytes); at++ {
			for _, value := range []byte{0, 1, 0x0b, 0x0c, 0x0f, 0x7f, 0x80, 0xff} {
				changed := append([]byte{}, bytes...)
				changed[at] = value
				_, _ = a.readAnswer(changed[4:], one.Sequence) // must return
			}
		}
	}
}

func TestAllocatesNoMoreThanHasArrived(t *testing.T) {
	_, answers := frames(t)
	for _, one := range answers {
		bytes, a := one.bytes(t), one.ask()
		if len(bytes) < 4 {
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = a.readAnswer(bytes[4:], one.Sequence)
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
			t.Errorf("%s: %d bytes", one.Case, grown)
		}
	}
}

func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte{0x80, 1, 0, 2, 0, 0, 0, 5, 'g', 'e', 't', 'I', 'd', 0, 0, 0, 1, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0})
	f.Fuzz(func(_ *testing.T, frame []byte) {
		for _, one := range []*ask{askID("t"), askIDs("t", 3), askRuns("t", 3), askText("t"), askStatus(), askServers(1),
			{method: methodLease}, {method: methodReleaseLease}} {
			_, _ = one.readAnswer(frame, 1)
		}
	})
}

func TestEventsAndFailuresHaveNoEmptyParts(t *testing.T) {
	for event, text := range map[Event]string{
		{"list", "", "3 servers"}:      "list: 3 servers",
		{"unhealthy", "a:1", "silent"}: "unhealthy a:1: silent",
		{"draining", "a:1", ""}:        "draining a:1",
	} {
		if event.String() != text {
			t.Error(event)
		}
	}
	if text := failed(Timeout, "").String(); text != "timeout" {
		t.Error(text)
	}
}
