package firn

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Event is something about servers that somebody may want to log; the library itself logs nothing.
// Kind is one of: list, server out, server back, quarantined, draining, no server.
type Event struct {
	Kind, Server, Detail string
}

// TLS says how to speak TLS to servers. The files are read again when they change.
type TLS struct {
	CA   string // certificates of the authorities; empty: those of the system
	Cert string // what the client shows, with its Key
	Key  string
	Name string // what the server's certificate must name; empty: the listed host
}

// LocalTag is a tag whose ids are fetched ahead of need, so that one costs no call.
type LocalTag struct {
	Tag      string
	MaxAge   time.Duration // older ones are dropped; 0: ids keep
	Lasts    time.Duration // how long one fetch shall last at the rate of late
	FetchMax int           // of one fetch; 0: ten million
}

// SnowflakeTag is a tag of ids made of time: a second old at most. A fetch takes 25 ms of what a server
// can give.
func SnowflakeTag(tag string) LocalTag {
	return LocalTag{Tag: tag, MaxAge: time.Second, Lasts: time.Second / 4, FetchMax: 100_000}
}

// SegmentTag is a tag of ids made of counting: they keep.
func SegmentTag(tag string) LocalTag { return LocalTag{Tag: tag, Lasts: time.Second} }

// Options are decided once. A field that is 0 has the default that stands beside it.
type Options struct {
	ClusterUUID    string        // that of the first server that answers
	Rack           *int32        // none; else servers of this rack are asked while one is fit
	Failfast       bool          // false: another server is asked when one fails
	Deadline       time.Duration // 200 ms, of a whole call, unless its context has a deadline
	AttemptLimit   time.Duration // 80 ms, of one server's answer, connecting included
	AttemptsMax    int           // 3 requests that a call may send
	ConnectionsMax int           // 64 per server, one for each call at a time
	ServersMax     int           // 16 servers of a large cluster to keep to; below 0: all
	LocalRanges    []LocalTag
	TLS            *TLS
	OnEvent        func(Event) // must return soon; on any goroutine
}

func (o Options) withDefaults() Options {
	set := func(value *int, other int) {
		if *value == 0 {
			*value = other
		}
	}
	limit := func(value *time.Duration, other time.Duration) {
		if *value == 0 {
			*value = other
		}
	}
	limit(&o.Deadline, 200*time.Millisecond)
	limit(&o.AttemptLimit, 80*time.Millisecond)
	set(&o.AttemptsMax, 3)
	set(&o.ConnectionsMax, 64)
	set(&o.ServersMax, 16)
	return o
}

// faults names everything about the options that cannot be used.
func (o Options) faults() []string {
	var faults []string
	for _, one := range []struct {
		name  string
		value int64
		most  int64
	}{
		{"Deadline", int64(o.Deadline), int64(time.Hour)},
		{"AttemptLimit", int64(o.AttemptLimit), int64(time.Hour)},
		{"AttemptsMax", int64(o.AttemptsMax), 100},
		{"ConnectionsMax", int64(o.ConnectionsMax), 10_000},
	} {
		if one.value < 1 || one.value > one.most {
			faults = append(faults, fmt.Sprintf("%s is %d, not 1 to %d", one.name, one.value, one.most))
		}
	}
	return faults
}

// readServers takes firn://seed,seed or list://host:port,host:port apart.
func readServers(servers string) (addresses []string, listsChange bool, fault error) {
	scheme, rest, found := strings.Cut(servers, "://")
	if !found || (scheme != "firn" && scheme != "list") {
		return nil, false, fmt.Errorf("servers is '%s', neither firn://... nor list://...", servers)
	}
	seen := map[string]bool{}
	for _, address := range strings.Split(rest, ",") {
		if _, _, fault := splitAddress(address); fault != nil {
			return nil, false, fault
		}
		if !seen[address] {
			addresses = append(addresses, address)
		}
		seen[address] = true
	}
	return addresses, scheme == "firn", nil
}

func splitAddress(address string) (host, port string, fault error) {
	host, port, fault = net.SplitHostPort(address)
	number, wrong := strconv.ParseUint(port, 10, 16)
	if fault != nil || wrong != nil || number == 0 || host == "" || printable(host) != host {
		return "", "", fmt.Errorf("'%s' is not host:port", address)
	}
	return host, port, nil
}
