package firn

import (
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The health of a server, in the order in which calls use servers: later ones only when no earlier one is left.
const (
	healthy = iota
	failing
	ejected
	disabled
	draining
	lastResort
	quarantined
)

var healthNames = []string{"healthy", "failing", "ejected", "disabled", "draining", "last resort", "quarantined"}

const (
	noAdvice   = 100 * time.Millisecond
	probeAgain = 30 * time.Second
	probeFirst = time.Second

	longestQuarantine = 5 * time.Minute
	firstDialPause    = 10 * time.Millisecond
	longestDialPause  = 100 * time.Millisecond

	outsideRack  = 4 // of 16 servers that a client uses
	healthyMin   = 3 // while fewer are healthy, calls can use all servers
	rememberMost = 1000
	hooksMost    = 1000
)

// SeenServer is one server as the client sees it; Why is a sentence, unless the server is healthy.
type SeenServer struct {
	Address      string
	Rack, Weight int
	Health, Why  string
	InFlight     int
}

// server is one server; the fleet's mutex guards all but its room.
type server struct {
	address               string
	rack, weight          int
	online, tls           bool
	state                 serverState
	lastResort            bool
	inFlight              int
	health                health
	why                   string
	notReadyUntil         time.Time
	downUntil             map[string]time.Time // by tag: its store is down
	closedUntil           map[string]time.Time // by tag: refused with DRAINING
	draining, quarantined bool
	drainsSince           time.Time // of the last refusal of a server that drained
	foreign               bool      // quarantined, as a server of another cluster or service
	quarantine            backoff   // between two probes of one in quarantine
	probeBackoff          backoff   // of any other
	answeredAt            time.Time // a call
	lostAt                time.Time // a call, by a timeout
	movesUntil            time.Time // calls fail over free of the retry budget
	movesAgainAt          time.Time
	spoke                 bool      // whether the last connection received its status
	connectAt             time.Time // no call opens a connection before this time
	dialFailed            bool      // the last connection could not be opened
	dialPause             backoff
	probeAt               time.Time     // time of the next probe; zero: none
	room                  chan struct{} // one for each call that uses a connection
	conns                 []*connection // that are open
	dialling              *dialling     // one more that is being opened
}

func (s *server) standing(tag string, needsMachine bool, now time.Time) int {
	leaves := s.state == stateDraining || s.state == stateOffline
	notReady := s.state == stateNotReady || now.Before(s.notReadyUntil)
	switch {
	case s.quarantined:
		return quarantined
	case s.lastResort:
		return lastResort
	case s.draining || leaves || now.Before(s.closedUntil[tag]):
		return draining
	case !s.online || s.weight <= 0:
		return disabled
	case s.health.ejected || (notReady && needsMachine) || now.Before(s.downUntil[tag]):
		return ejected
	case s.health.tooManyFailures() || s.health.out:
		return failing
	}
	return healthy
}

// mayServe returns whether a call has, or may open, a connection to it.
func (s *server) mayServe(now time.Time) bool { return !now.Before(s.connectAt) || len(s.conns) > 0 }

func (s *server) share() float64 { return math.Max(float64(s.weight), 1) }

// fleet is the servers of a client and its generators, with their standing. It picks the server that a call asks next.
type fleet struct {
	options     Options
	listsChange bool
	seeds       []string
	name        string // drawn by lot: decides which servers this client uses
	tls         *tlsFiles
	counts      counts
	closed      atomic.Bool // the client
	hooks       hooks
	keeper      chan struct{} // full while an engine does the background work
	wake        chan struct{} // that engine

	mutex        sync.Mutex
	news         chan struct{} // closed and replaced when servers were added or became healthy
	uuid, layout string
	version      int64
	servers      map[string]*server
	subset       []*server
	offered      []*server       // memory of offer
	ownNumbers   map[string]bool // tags that need no machine id
	budget       retryBudget
	listDue      time.Time // zero: never
	listAsked    time.Time
}

func newFleet(options Options, seeds []string, listsChange bool) *fleet {
	f := &fleet{options: options, listsChange: listsChange, seeds: seeds, uuid: options.ClusterUUID,
		name: strconv.FormatInt(rand.Int64N(math.MaxInt64), 36), news: make(chan struct{}),
		servers: map[string]*server{}, ownNumbers: map[string]bool{}, tls: &tlsFiles{},
		keeper: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
	if options.TLS != nil {
		f.tls.said = *options.TLS
	}
	if listsChange {
		f.listDue = time.Now()
	}
	for _, seed := range seeds {
		f.servers[seed] = f.made(seed)
	}
	f.choose()
	return f
}

func (f *fleet) made(address string) *server {
	secure := f.options.TLS != nil && !strings.HasPrefix(address, unixPrefix)
	return &server{address: address, weight: 100, online: true, tls: secure,
		state: stateReady, downUntil: map[string]time.Time{},
		closedUntil: map[string]time.Time{}, room: make(chan struct{}, inFlightMax*f.options.ConnectionsMax)}
}

// apply takes a list if it is newer, or if only a last resort answers; the connections to servers that
// left it.
func (f *fleet) apply(list *serverList, toldBy *server) (gone []*connection) {
	f.mutex.Lock()
	lower := list.version < f.version && !toldBy.lastResort
	if len(list.servers) == 0 || list.version == f.version || lower {
		f.mutex.Unlock()
		return nil
	}
	before := f.servers
	f.servers = map[string]*server{}
	for _, entry := range list.servers {
		f.merge(entry, before)
	}
	for _, seed := range f.seeds {
		if f.servers[seed] == nil {
			one := before[seed]
			if one == nil {
				one = f.made(seed)
			}
			one.lastResort = true
			f.servers[seed] = one
		}
	}
	for address, one := range before {
		if f.servers[address] == nil {
			gone = append(gone, one.conns...)
			one.conns = nil
		}
	}
	f.version = list.version
	f.counts.lists.Add(1)
	f.choose()
	f.tellNews()
	f.mutex.Unlock()
	f.tell("list", "", strconv.Itoa(len(list.servers))+" servers")
	return gone
}

func (f *fleet) merge(entry serverEntry, before map[string]*server) {
	if _, _, fault := splitAddress(entry.address); fault != nil {
		return
	}
	one := before[entry.address]
	if one == nil {
		one = f.made(entry.address)
	}
	one.rack, one.weight, one.online = int(entry.rack), int(entry.weight), entry.online
	one.state, one.tls = entry.state, entry.tls || f.options.TLS != nil
	one.lastResort, one.draining, one.quarantined, one.foreign = false, false, false, false
	one.closedUntil = map[string]time.Time{}
	f.servers[entry.address] = one
}

// pick returns a server that is not among `tried`, or nil. Of those with the best standing, and of these in the
// client's rack, it draws two by weight, and takes the second if that is clearly less busy. The server counts as
// busy until giveBack.
func (f *fleet) pick(tag string, tried map[*server]bool) *server {
	now := time.Now()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	best, offered := f.offer(f.subset, tag, tried, now)
	if best > healthy || (len(offered) < healthyMin && len(offered) < len(f.subset)) {
		all := make([]*server, 0, len(f.servers))
		for _, one := range f.servers {
			all = append(all, one)
		}
		_, offered = f.offer(all, tag, tried, now)
	}
	if len(offered) == 0 {
		return nil
	}
	if f.options.Rack != nil {
		var mine []*server
		for _, one := range offered {
			if one.rack == int(*f.options.Rack) {
				mine = append(mine, one)
			}
		}
		if len(mine) > 0 {
			offered = mine
		}
	}
	picked := lessBusy(offered)
	picked.inFlight++
	return picked
}

// offer returns the best standing among the servers, and the servers that have it. Quarantined servers are among
// them only while fewer than half of the servers are healthy, and foreign ones never. Under the mutex; the next call
// reuses the memory.
func (f *fleet) offer(servers []*server, tag string, tried map[*server]bool,
	now time.Time) (best int, offered []*server) {
	best, offered = quarantined, f.offered[:0]
	for _, one := range servers {
		if tried[one] || !one.mayServe(now) {
			continue
		}
		standing := one.standing(tag, !f.ownNumbers[tag], now)
		if standing == quarantined {
			if one.foreign || !f.panics(now) {
				continue
			}
			standing = ejected
		}
		if standing < best {
			best, offered = standing, offered[:0]
		}
		if standing == best {
			offered = append(offered, one)
		}
	}
	f.offered = offered
	return best, offered
}

// panics returns whether fewer than half of the servers are healthy. Under the mutex.
func (f *fleet) panics(now time.Time) bool {
	members, healthyOnes := 0, 0
	for _, one := range f.servers {
		if !one.online || one.foreign || one.lastResort {
			continue
		}
		members++
		if one.standing("", false, now) == healthy {
			healthyOnes++
		}
	}
	return healthyOnes*2 < members
}

func (f *fleet) giveBack(one *server) {
	f.mutex.Lock()
	one.inFlight--
	f.mutex.Unlock()
}

func (f *fleet) view() []SeenServer {
	now, seen := time.Now(), []SeenServer{}
	f.mutex.Lock()
	for _, one := range f.servers {
		standing := one.standing("", true, now)
		why := one.why
		if standing == healthy {
			why = ""
		}
		seen = append(seen, SeenServer{one.address, one.rack, one.weight, healthNames[standing], why,
			one.inFlight})
	}
	f.mutex.Unlock()
	sort.Slice(seen, func(i, j int) bool { return seen[i].Address < seen[j].Address })
	return seen
}

// newsChannel is closed at the next news of servers.
func (f *fleet) newsChannel() <-chan struct{} {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.news
}

// tellNews is called under the mutex.
func (f *fleet) tellNews() {
	close(f.news)
	f.news = make(chan struct{})
}

// tell reports an event, unless the client is closed.
func (f *fleet) tell(kind, server, detail string) {
	if f.options.OnEvent != nil && !f.closed.Load() {
		f.hooks.call(func() { f.options.OnEvent(Event{kind, server, detail}) })
	}
}

// hooks calls functions of the program one after another, on a goroutine of its own. A function that blocks delays only
// later ones. While hooksMost wait, further ones are dropped.
type hooks struct {
	mutex   sync.Mutex
	waiting []func()
	running bool
}

func (h *hooks) call(one func()) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if len(h.waiting) < hooksMost {
		h.waiting = append(h.waiting, one)
	}
	if !h.running {
		h.running = true
		go h.run()
	}
}

func (h *hooks) run() {
	ended := false
	defer func() {
		if !ended { // a function has called runtime.Goexit
			go h.run()
		}
	}()
	for {
		h.mutex.Lock()
		if h.running = len(h.waiting) > 0; !h.running {
			h.mutex.Unlock()
			ended = true
			return
		}
		one := h.waiting[0]
		h.waiting = h.waiting[1:]
		h.mutex.Unlock()
		func() {
			defer func() { _ = recover() }() // a panic must not end the program
			one()
		}()
	}
}
