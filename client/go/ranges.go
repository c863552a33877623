package firn

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	firstFetch = 128
	fetchMost  = 10_000_000
	pieces     = 32 // of a fetch, so that several goroutines get some of it
	pieceMost  = 1024
	lanesMost  = 256
	tooManyFor = time.Minute
)

// buffer holds the runs of one fetch; ids are taken from its front.
type buffer struct {
	runs       []idRun
	size, left int
	askedAt    time.Time
}

// piece takes the ids of one lane. The buffer must not be empty.
func (b *buffer) piece() idRun { return b.cut(clamp(b.size/pieces, 1, pieceMost)) }

// many takes exactly `count` ids, which the buffer must contain, in ascending order.
func (b *buffer) many(count int) []int64 {
	ids := make([]int64, 0, count)
	for len(ids) < count {
		for run := b.cut(count - len(ids)); run.count > 0; run.count-- {
			ids = append(ids, run.first)
			run.first += run.stride
		}
	}
	return ids
}

// cut takes at most `most` ids of the first run.
func (b *buffer) cut(most int) idRun {
	cut := b.runs[0]
	cut.count = int32(min(int(cut.count), most))
	b.left -= int(cut.count)
	if run := &b.runs[0]; run.count == cut.count {
		b.runs = b.runs[1:]
	} else {
		run.first += int64(cut.count) * run.stride
		run.count -= cut.count
	}
	return cut
}

// lane is a piece of ids that goroutines of one processor take, on cache lines of its own.
type lane struct {
	mutex     sync.Mutex
	run       idRun
	deletions int64
	endsAt    time.Time // when its ids are too old; zero: never
	_         [64]byte
}

// supply is the prefetched ids of one tag.
//
//	fetch -> next buffer -> buffer in use -> a lane for each processor -> id
//	         '------- under one mutex -------'   under its own mutex
//
// The next buffer is fetched when half of the one in use is gone, or at once if the other half would not last
// until the answer. If a fetch is used up too soon, the next one is larger; if it lasts too long, smaller. After
// a failure the next fetch waits 10 ms to 1 s, or 1 s to 30 s if the server's reason says that a retry will
// not help.
type supply struct {
	tag       LocalTag
	engine    *engine
	deletions atomic.Int64 // how often a server reported that the tag is deleted: earlier ids are dropped
	lanes     []lane
	near      sync.Pool // of lanes: the one that a goroutine of this processor used last
	nextLane  atomic.Uint32

	mutex              sync.Mutex
	fetched            chan struct{} // closed when the fetch in progress has ended; nil: no fetch
	inUse, next        buffer
	usedSince          time.Time
	lastUse, lastFetch time.Duration
	size, most         int
	mostUntil          time.Time
	starved            bool
	notBefore          time.Time
	soon, late         time.Duration
}

func newSupply(tag LocalTag, e *engine) *supply {
	if tag.FetchMax <= 0 {
		tag.FetchMax = fetchMost
	}
	if tag.Lasts <= 0 {
		tag.Lasts = time.Second
	}
	s := &supply{tag: tag, engine: e, size: firstFetch, lastUse: time.Hour,
		lanes: make([]lane, min(4*runtime.GOMAXPROCS(0), lanesMost))}
	s.near.New = func() any { return &s.lanes[int(s.nextLane.Add(1))%len(s.lanes)] }
	return s
}

// takeNow returns an id from memory, if there is one, and fetches the next ids in time.
func (s *supply) takeNow() (id int64, found bool) {
	mine := s.near.Get().(*lane)
	mine.mutex.Lock()
	found = mine.run.count > 0 && mine.deletions == s.deletions.Load() &&
		(mine.endsAt.IsZero() || time.Now().Before(mine.endsAt))
	if !found {
		found = s.fill(mine)
	}
	if found {
		id = mine.run.first
		mine.run.first += mine.run.stride
		mine.run.count--
	}
	mine.mutex.Unlock()
	s.near.Put(mine)
	return id, found
}

// take returns an id from memory, if there is one, after waiting for a fetch in progress.
func (s *supply) take(patience time.Duration) (id int64, found bool) {
	until := time.Now().Add(patience)
	for {
		s.mutex.Lock()
		fetched := s.fetched
		s.mutex.Unlock()
		if id, found = s.takeNow(); found || fetched == nil {
			return id, found
		}
		left := time.Until(until)
		if left <= 0 {
			return 0, false
		}
		s.engine.sleep(s.engine.ctx, left, fetched)
	}
}

// takeMany returns ids in ascending order, or nil if memory has fewer.
func (s *supply) takeMany(count int) []int64 {
	now := time.Now()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	defer s.fetchIfLow(now)
	s.prepare(now)
	first := min(count, s.inUse.left)
	if first+s.next.left < count {
		s.engine.fleet.counts.localMissed.Add(1)
		return nil
	}
	s.engine.fleet.counts.local.Add(int64(count))
	ids := s.inUse.many(first)
	if first < count { // of another fetch, and perhaps of another server
		ids = append(ids, s.next.many(count-first)...)
		slices.Sort(ids)
	}
	return ids
}

// fill cuts a piece from the buffer in use.
func (s *supply) fill(mine *lane) bool {
	now := time.Now()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	defer s.fetchIfLow(now)
	if mine.run.count = 0; !s.prepare(now) {
		s.engine.fleet.counts.localMissed.Add(1)
		return false
	}
	mine.run, mine.deletions, mine.endsAt = s.inUse.piece(), s.deletions.Load(), time.Time{}
	if s.tag.MaxAge > 0 {
		mine.endsAt = s.inUse.askedAt.Add(s.tag.MaxAge)
	}
	s.engine.fleet.counts.local.Add(int64(mine.run.count))
	return true
}

// prepare returns whether the current buffer has ids that may be taken. Under the mutex, as all below.
func (s *supply) prepare(now time.Time) bool {
	s.dropAged(&s.inUse, now)
	s.dropAged(&s.next, now)
	if s.inUse.left == 0 && s.next.left > 0 {
		if !s.usedSince.IsZero() {
			s.lastUse = now.Sub(s.usedSince)
			s.resize()
		}
		s.usedSince, s.starved = now, false
		s.inUse, s.next = s.next, buffer{}
	}
	s.starved = s.starved || s.inUse.left == 0
	return s.inUse.left > 0
}

func (s *supply) dropAged(b *buffer, now time.Time) {
	if b.left > 0 && s.tag.MaxAge > 0 && now.Sub(b.askedAt) > s.tag.MaxAge {
		*b = buffer{}
	}
}

func (s *supply) resize() {
	switch {
	case s.lastUse > 2*s.tag.Lasts:
		s.size /= 2
	case s.lastUse < s.tag.Lasts/16:
		s.size *= 8
	case s.starved || s.lastUse < s.tag.Lasts/2:
		s.size *= 2
	}
	s.size = clamp(s.size, 1, s.tag.FetchMax)
}

func (s *supply) fetchIfLow(now time.Time) {
	enough := s.inUse.size / 2
	if s.lastUse/2 < s.lastFetch {
		enough = s.inUse.size
	}
	if s.next.left > 0 || s.inUse.left > enough || s.fetched != nil || now.Before(s.notBefore) {
		return
	}
	count := s.size
	if now.Before(s.mostUntil) && count > s.most {
		count = s.most
	}
	s.fetched = make(chan struct{})
	go s.fetch(count, now)
}

func (s *supply) fetch(count int, askedAt time.Time) {
	got, fault := s.engine.call(s.engine.ctx, askRuns(s.tag.Tag, count),
		askedAt.Add(s.engine.options.Deadline))
	s.mutex.Lock()
	defer s.mutex.Unlock()
	close(s.fetched)
	s.fetched = nil
	now := time.Now()
	if fault != nil {
		s.failed(fault, count, now)
		return
	}
	s.lastFetch, s.soon, s.late = now.Sub(askedAt), 0, 0
	s.next = buffer{runs: got.runs, size: count, left: count, askedAt: askedAt}
}

func (s *supply) failed(fault error, count int, now time.Time) {
	var told *Error
	refused := errors.As(fault, &told) && told.Kind == Refused
	if refused && told.Reason == UnknownTag { // it was deleted: no more ids of it
		s.inUse, s.next = buffer{}, buffer{}
		s.deletions.Add(1)
	}
	tooMany := refused && told.Reason == BadRequest && count > 1
	if tooMany {
		s.most, s.mostUntil = count/2, now.Add(tooManyFor)
	}
	if tooMany || !refused {
		s.soon = clamp(2*s.soon, 10*time.Millisecond, time.Second)
		s.notBefore = now.Add(s.soon)
	} else {
		s.late = clamp(2*s.late, time.Second, 30*time.Second)
		s.notBefore = now.Add(s.late)
	}
}
