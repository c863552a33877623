// Takes ids with go-redis: see redis_clients_test.py and redis_ring_test.py.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strconv"
)

func number(text string) int {
	value, err := strconv.Atoi(text)
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func tlsOf(path string) *tls.Config {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	check(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: pool}
}

func main() {
	if os.Args[1] == "ring" {
		ring(os.Args[2:])
		return
	}
	take(context.Background(), os.Args[1]+":"+os.Args[2], number(os.Args[3]), number(os.Args[4]))
}
