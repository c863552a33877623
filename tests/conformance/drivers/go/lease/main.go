// The Go client's generator of local ids, controlled as ../../../README.md describes.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	firn "firn.example/firn/client/go"
)

const (
	pass  = 10 // ids
	pause = 10 * time.Millisecond
)

type words map[string]string
type told map[string]any

func (w words) number(key string) int {
	value, fault := strconv.Atoi(w[key])
	if fault != nil {
		panic(fault)
	}
	return value
}

type driver struct {
	client    *firn.Client
	generator *firn.LocalGenerator
	file      string
	issuers   sync.WaitGroup

	ids, failed, lost atomic.Int64
	mutex             sync.Mutex
	failure           string // the first since the last so_far
}

func (d *driver) open(w words) told {
	options := firn.Options{}
	if w["tls_ca"] != "" {
		options.TLS = &firn.TLS{CA: w["tls_ca"], Cert: w["tls_cert"], Key: w["tls_key"]}
	}
	client, fault := firn.New(w["servers"], options)
	if fault != nil {
		return told{"failure": fault.Error()}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(w.number("timeout_ms"))*time.Millisecond)
	defer cancel()
	d.client, d.file = client, w["file"]
	d.generator, fault = firn.NewLocalGenerator(ctx, client, firn.LeaseOptions{Name: w["name"],
		Ahead:  time.Duration(w.number("ahead_ms")) * time.Millisecond,
		OnLost: func(firn.LeaseLoss) { d.lost.Add(1) }})
	if fault != nil {
		return told{"failure": fault.Error()}
	}
	for i := 0; i < w.number("threads"); i++ {
		file, fault := os.Create(fmt.Sprintf("%s.%d", d.file, i))
		if fault != nil {
			return told{"failure": fault.Error()}
		}
		d.issuers.Add(1)
		go d.issue(file)
	}
	return told{}
}

// issue takes ids, and writes them into a file of its own.
func (d *driver) issue(file *os.File) {
	defer d.issuers.Done()
	for closed := false; !closed; time.Sleep(pause) {
		var taken []byte
		count, fault := 0, error(nil)
		for count < pass {
			var id int64
			if id, fault = d.generator.Next(); fault != nil {
				break
			}
			taken = append(strconv.AppendInt(taken, id, 10), '\n')
			count++
		}
		if _, failed := file.Write(taken); failed != nil {
			panic(failed)
		}
		d.ids.Add(int64(count))
		var why *firn.Error
		if closed = errors.As(fault, &why) && why.Kind == firn.Closed; fault != nil && !closed {
			d.failed.Add(1)
			d.mutex.Lock()
			if d.failure == "" {
				d.failure = fault.Error()
			}
			d.mutex.Unlock()
		}
	}
}

func (d *driver) soFar() told {
	d.mutex.Lock()
	failure := d.failure
	d.failure = ""
	d.mutex.Unlock()
	result := told{"ids": d.ids.Load(), "failed": d.failed.Load(), "failure": failure, "lost": d.lost.Load(),
		"machine_id": nil, "until_ms": 0}
	if machine, leased := d.generator.MachineID(); leased {
		result["machine_id"] = machine
	}
	if until := d.generator.Until(); !until.IsZero() {
		result["until_ms"] = until.UnixMilli()
	}
	return result
}

func (d *driver) burst(count int) told {
	taken, failure, began := make([]int64, 0, count), "", time.Now()
	for len(taken) < count && failure == "" {
		id, fault := d.generator.Next()
		if fault != nil {
			failure = fault.Error()
		} else {
			taken = append(taken, id)
		}
	}
	took := time.Since(began)
	file, fault := os.Create(d.file + ".burst")
	if fault != nil {
		panic(fault)
	}
	defer file.Close()
	out := bufio.NewWriter(file)
	defer out.Flush()
	for _, id := range taken {
		fmt.Fprintln(out, id)
	}
	return told{"ids": len(taken), "took_ms": took.Milliseconds(), "failure": failure}
}

func (d *driver) close() told {
	d.generator.Close()
	d.issuers.Wait()
	d.client.Close()
	result := told{"ids": d.ids.Load(), "failed": d.failed.Load(), "after_close": ""}
	if _, fault := d.generator.Next(); fault != nil {
		result["after_close"] = fault.Error()
	}
	return result
}

func (d *driver) answer(verb string, w words) told {
	switch verb {
	case "open":
		return d.open(w)
	case "so_far":
		return d.soFar()
	case "burst":
		return d.burst(w.number("count"))
	case "close":
		return d.close()
	}
	panic(verb)
}

func main() {
	d := &driver{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		parts, w := strings.Fields(lines.Text()), words{}
		for _, word := range parts[1:] {
			key, value, _ := strings.Cut(word, "=")
			w[key] = value
		}
		if fault := json.NewEncoder(os.Stdout).Encode(d.answer(parts[0], w)); fault != nil {
			panic(fault)
		}
	}
}
