package firn

import (
	cryptorand "crypto/rand"
	"encoding/binary"
	"math/rand"
	"sync"
	"time"
)

// lot draws random numbers that differ from process to process, unlike the default generator of
// math/rand before Go 1.20.
var lot struct {
	once   sync.Once
	mutex  sync.Mutex
	source *rand.Rand
}

// clamp returns the value, limited to the range.
func clamp[T int | time.Duration](value, least, most T) T {
	if value < least {
		return least
	}
	if value > most {
		return most
	}
	return value
}

// drawBelow returns a random number from 0 to most - 1.
func drawBelow(most int64) int64 {
	lot.once.Do(func() {
		var seed [8]byte
		_, _ = cryptorand.Read(seed[:])
		lot.source = rand.New(rand.NewSource(int64(binary.LittleEndian.Uint64(seed[:]))))
	})
	lot.mutex.Lock()
	defer lot.mutex.Unlock()
	return lot.source.Int63n(most)
}
