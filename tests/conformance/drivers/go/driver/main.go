// The Go client, controlled by standard input and output as ../../../README.md describes.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	firn "firn.example/firn/client/go"
)

type words map[string]string
type told map[string]any

func (w words) number(key string, other int) int {
	if value, fault := strconv.Atoi(w[key]); fault == nil {
		return value
	}
	return other
}

func (w words) duration(key string) time.Duration {
	return time.Duration(w.number(key, 0)) * time.Millisecond
}

type driver struct {
	mutex  sync.Mutex
	events []string
	client *firn.Client
	load   *load
}

func (d *driver) open(w words) told {
	options := firn.Options{ClusterUUID: w["cluster_uuid"], Failfast: w["on_failure"] == "failfast",
		Deadline: w.duration("deadline_ms"), AttemptLimit: w.duration("attempt_limit_ms"),
		AttemptsMax: w.number("attempts_max", 0), ConnectionsMax: w.number("connections_max", 0),
		ServersMax: w.number("servers_max", 0)}
	if w["rack"] != "" {
		rack := int32(w.number("rack", 0))
		options.Rack = &rack
	}
	if w["segment"] != "" {
		options.LocalRanges = append(options.LocalRanges, firn.SegmentTag(w["segment"]))
	}
	if w["snowflake"] != "" {
		options.LocalRanges = append(options.LocalRanges, firn.SnowflakeTag(w["snowflake"]))
	}
	if w["tls_ca"] != "" {
		options.TLS = &firn.TLS{CA: w["tls_ca"], Cert: w["tls_cert"], Key: w["tls_key"], Name: w["tls_name"]}
	}
	d.events = []string{}
	options.OnEvent = func(event firn.Event) {
		d.mutex.Lock()
		d.events = append(d.events, event.Kind)
		d.mutex.Unlock()
		if w["on_event"] == "throws" {
			panic("as the case says")
		}
		if w["on_event"] == "closes" {
			_ = d.client.Close()
		}
	}
	client, fault := firn.New(w["servers"], options)
	if fault != nil {
		return told{"kind": "invalid", "failure": fault.Error()}
	}
	d.client = client
	return told{}
}

// ids are those of one call.
func (d *driver) ids(verb string, w words) ([]int64, error) {
	ctx := context.Background()
	if w["deadline_ms"] != "" {
		limited, cancel := context.WithTimeout(ctx, w.duration("deadline_ms"))
		defer cancel()
		ctx = limited
	}
	switch verb {
	case "ids":
		return d.client.NextIDs(ctx, w["tag"], w.number("count", 1))
	case "text":
		text, fault := d.client.NextText(ctx, w["tag"])
		id, _ := strconv.ParseInt(text, 10, 64)
		return []int64{id}, fault
	}
	id, fault := d.client.NextID(ctx, w["tag"])
	return []int64{id}, fault
}

func (d *driver) call(verb string, w words) told {
	var mutex sync.Mutex
	var group sync.WaitGroup
	result, ids, answered, failed, exceeded := told{}, []int64{}, 0, 0, true
	for i := 0; i < w.number("threads", 1); i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for j := 0; j < w.number("times", 1); j++ {
				got, fault := d.ids(verb, w)
				mutex.Lock()
				if fault == nil {
					answered++
					ids = append(ids, got...)
				} else if failed++; failed == 1 {
					tell(result, fault)
				}
				exceeded = exceeded && (fault == nil || errors.Is(fault, context.DeadlineExceeded))
				mutex.Unlock()
			}
		}()
	}
	group.Wait()
	result["answered"], result["failed"], result["ids"] = answered, failed, ids
	result["deadline_exceeded"] = exceeded // by all that failed
	return result
}

func tell(result told, fault error) {
	var failure *firn.Error
	if !errors.As(fault, &failure) {
		panic(fault)
	}
	attempts := []told{}
	for _, one := range failure.Attempts {
		attempts = append(attempts,
			told{"server": one.Server, "end": one.End, "reason": one.Reason.String()})
	}
	result["kind"], result["failure"] = failure.Kind, failure.Error()
	result["reason"], result["attempts"] = failure.Reason.String(), attempts
	result["retry_after_ms"] = failure.RetryAfter.Milliseconds()
}

func (d *driver) view() told {
	servers := told{}
	for _, one := range d.client.Servers() {
		servers[one.Address] = one.Health
	}
	return told{"servers": servers}
}

// load is calls without end; their ids go into a file.
type load struct {
	file    string
	ending  atomic.Bool
	group   sync.WaitGroup
	workers []*worker
}

type worker struct {
	calls   atomic.Int64
	ids     []int64
	failed  int
	first   told
	longest time.Duration
}

func (d *driver) start(w words) told {
	d.load = &load{file: w["file"]}
	for i := 0; i < w.number("threads", 4); i++ {
		one := &worker{first: told{}}
		d.load.workers = append(d.load.workers, one)
		d.load.group.Add(1)
		go func() {
			defer d.load.group.Done()
			for !d.load.ending.Load() && one.first["kind"] != firn.Closed {
				began := time.Now()
				id, fault := d.client.NextID(context.Background(), w["tag"])
				if took := time.Since(began); took > one.longest {
					one.longest = took
				}
				if fault == nil {
					one.ids = append(one.ids, id)
				} else if one.failed++; one.failed == 1 {
					tell(one.first, fault)
				}
				one.calls.Add(1)
			}
		}()
	}
	return told{}
}

func (l *load) soFar() told {
	least := l.workers[0].calls.Load()
	for _, one := range l.workers {
		if calls := one.calls.Load(); calls < least {
			least = calls
		}
	}
	return told{"calls": least}
}

func (l *load) end() told {
	l.ending.Store(true)
	l.group.Wait()
	result, answered, failed, longest := told{}, 0, 0, time.Duration(0)
	file, fault := os.Create(l.file)
	if fault != nil {
		panic(fault)
	}
	out := bufio.NewWriter(file)
	for _, one := range l.workers {
		answered, failed = answered+len(one.ids), failed+one.failed
		if one.longest > longest {
			longest = one.longest
		}
		for key, value := range one.first {
			result[key] = value
		}
		for _, id := range one.ids {
			fmt.Fprintln(out, id)
		}
	}
	_ = out.Flush()
	_ = file.Close()
	result["answered"], result["failed"], result["longest_us"] = answered, failed, longest.Microseconds()
	return result
}

// wrong passes wrong values for every parameter; it counts the calls that failed, and names those that did not.
func (d *driver) wrong() told {
	failed, taken, ctx, long := 0, []string{}, context.Background(), strings.Repeat("a", 129)
	try := func(name string, call func() error) {
		defer func() {
			if fault := recover(); fault != nil { // in the call
				failed++
			}
		}()
		if call() != nil {
			failed++
		} else {
			taken = append(taken, name)
		}
	}
	over, cancel := context.WithTimeout(ctx, -time.Second)
	defer cancel()
	for name, arguments := range map[string]struct {
		ctx context.Context
		tag string
	}{"tag": {ctx, long}, "nil context": {nil, "order"}, "ended context": {over, "order"}} {
		try(name, func() error { _, fault := d.client.NextID(arguments.ctx, arguments.tag); return fault })
		try(name, func() error { _, fault := d.client.NextIDs(arguments.ctx, arguments.tag, 1); return fault })
		try(name, func() error { _, fault := d.client.NextText(arguments.ctx, arguments.tag); return fault })
	}
	for _, count := range []int{0, -1, 100_001, math.MinInt, math.MaxInt} {
		try("count", func() error { _, fault := d.client.NextIDs(ctx, "order", count); return fault })
	}
	rack, soon := int32(-1), time.Now().Add(time.Millisecond)
	for name, options := range map[string]firn.Options{"Deadline": {Deadline: -1}, "AttemptLimit": {AttemptLimit: -1},
		"AttemptsMax": {AttemptsMax: -1}, "ConnectionsMax": {ConnectionsMax: -1}, "Rack": {Rack: &rack},
		"LocalRanges": {LocalRanges: []firn.LocalTag{{Tag: long}}}, "twice": {LocalRanges: []firn.LocalTag{
			firn.SegmentTag("a"), firn.SegmentTag("a")}}, "TLS": {TLS: &firn.TLS{Cert: "a"}}} {
		try(name, func() error { _, fault := firn.New("list://127.0.0.1:1", options); return fault })
	}
	for _, servers := range []string{"", "list://", "list://nowhere", "http://127.0.0.1:1", "list://127.0.0.1:0"} {
		try("servers", func() error { _, fault := firn.New(servers, firn.Options{}); return fault })
	}
	limited, end := context.WithDeadline(ctx, soon)
	defer end()
	for name, options := range map[string]firn.LeaseOptions{"Name": {}, "long Name": {Name: long}, "Ahead": {Name: "a", Ahead: 1},
		"negative Ahead": {Name: "a", Ahead: -1}, "Rack of a lease": {Name: "a", Rack: &rack}} {
		try(name, func() error { _, fault := firn.NewLocalGenerator(limited, d.client, options); return fault })
	}
	return told{"answered": len(taken), "failed": failed, "failure": strings.Join(taken, ",")}
}

func (d *driver) do(verb string, w words) told {
	switch verb {
	case "open":
		return d.open(w)
	case "view":
		return d.view()
	case "seen":
		d.mutex.Lock()
		defer d.mutex.Unlock()
		return told{"events": append([]string{}, d.events...)}
	case "start":
		return d.start(w)
	case "so_far":
		return d.load.soFar()
	case "stop":
		return d.load.end()
	case "burst":
		began := time.Now()
		w["threads"] = w["calls"]
		result := d.call("id", w)
		result["took_ms"] = time.Since(began).Milliseconds()
		return result
	case "wrong":
		return d.wrong()
	case "close":
		if d.client != nil {
			_ = d.client.Close()
		}
		return told{}
	}
	return d.call(verb, w)
}

func main() {
	driver, in := &driver{}, bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<20)
	for in.Scan() {
		parts, w := strings.Fields(in.Text()), words{}
		for _, word := range parts[1:] {
			key, value, _ := strings.Cut(word, "=")
			w[key] = value
		}
		answer, _ := json.Marshal(driver.do(parts[0], w))
		fmt.Println(string(answer))
	}
}
