package main

import (
	"context"
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"
)

func take(ctx context.Context, address string, protocol, count int) {
	client := redis.NewClient(&redis.Options{
		Addr: address, Protocol: protocol, ClientName: "go-redis",
		Username: os.Getenv("FIRN_USER"), Password: os.Getenv("FIRN_PASSWORD"),
		TLSConfig: tlsOf(os.Getenv("FIRN_CA")),
	})
	defer client.Close()
	for i := 0; i < count; i++ {
		id, err := client.Incr(ctx, "order").Result()
		check(err)
		fmt.Println(id)
	}
	increments := func(pipe redis.Pipeliner) error {
		for i := 0; i < count; i++ {
			pipe.Incr(ctx, "order")
		}
		return nil
	}
	for _, transaction := range []bool{false, true} {
		run := client.Pipelined
		if transaction {
			run = client.TxPipelined
		}
		commands, err := run(ctx, increments)
		check(err)
		for _, command := range commands {
			fmt.Println(command.(*redis.IntCmd).Val())
		}
	}
	if err := client.Incr(ctx, "nothing").Err(); err != nil {
		fmt.Println("refused:", err)
	}
}
